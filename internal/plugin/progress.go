package plugin

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress says on a terminal how much was done, how fast, and how long the rest takes. A nil progress says nothing.
type progress struct {
	out io.Writer
	// unit is what is counted. size is how many counts make one unit.
	unit string
	size int64

	what        string
	done        int64
	begin, said time.Time

	mutex  sync.Mutex // guards totals
	totals map[string]int64
}

// newProgress returns nil if standard error is no terminal.
func (o *options) newProgress(unit string, size int64) *progress {
	if !terminal(o.streams.ErrOut) {
		return nil
	}
	return &progress{out: o.streams.ErrOut, unit: unit, size: size, totals: map[string]int64{}}
}

// terminal reports whether a stream is a terminal.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// total takes the number of what there is. It may be called from other goroutines.
func (p *progress) total(what string, n int64) {
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.totals[what] = n
}

// step takes n more of what was done, and says so at most every 200 ms.
func (p *progress) step(what string, n int64) {
	if p == nil {
		return
	}
	now := time.Now()
	if what != p.what {
		p.what, p.done, p.begin = what, 0, now
	}
	p.done += n
	if now.Sub(p.said) < 200*time.Millisecond {
		return
	}
	p.said = now
	p.mutex.Lock()
	total := p.totals[what]
	p.mutex.Unlock()
	_, _ = io.WriteString(p.out, "\r\x1b[K"+printf("%s", p.text(total, now.Sub(p.begin)))+" ")
}

// text is the line of progress. total is 0 if it is not known.
func (p *progress) text(total int64, since time.Duration) string {
	rate := float64(p.done) / max(since.Seconds(), 0.001)
	text := fmt.Sprintf("%s: %d", p.what, p.done/p.size)
	if total > 0 {
		text += fmt.Sprintf(" of %d", total/p.size)
	}
	if p.size > 1 {
		text += " " + p.unit
	}
	text += fmt.Sprintf(", %.0f %s/s", rate/float64(p.size), p.unit)
	if left := total - p.done; total > 0 && left >= 0 {
		text += fmt.Sprintf(", %s left", time.Duration(float64(left)/max(rate, 1)*float64(time.Second)).Round(time.Second))
	}
	return text
}

// clear removes the line, so that other output can be written.
func (p *progress) clear() {
	if p != nil && !p.said.IsZero() {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}

// reader returns a reader with progress. size is 0 if it is not known.
func (p *progress) reader(in io.Reader, what string, size int64) io.Reader {
	if p == nil {
		return in
	}
	p.total(what, size)
	return &progressReader{in, p, what}
}

type progressReader struct {
	in   io.Reader
	to   *progress
	what string
}

// Read reads, and says how much.
func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.to.step(r.what, int64(n))
	return n, err
}
