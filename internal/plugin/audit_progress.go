package plugin

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// scanProgress says on a terminal how many objects were read, how fast, and how long the rest takes. A nil scanProgress says nothing.
type scanProgress struct {
	out   io.Writer
	begin time.Time
	said  time.Time
	done  int64
	kind  string
	// doneOf are the objects of the kind in this pass.
	doneOf int64

	mutex  sync.Mutex // guards totals
	totals map[string]int64
}

func newScanProgress(out io.Writer) *scanProgress {
	return &scanProgress{out: out, begin: time.Now(), totals: map[string]int64{}}
}

// total takes the number of objects of a kind.
func (p *scanProgress) total(kind string, n int64) {
	if p == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.totals[kind] = n
}

// object takes an object that was read, and says so at most every 200 ms.
func (p *scanProgress) object(pass int, kind string) {
	if p == nil {
		return
	}
	p.done++
	if of := fmt.Sprint(pass, kind); of != p.kind {
		p.kind, p.doneOf = of, 0
	}
	p.doneOf++
	now := time.Now()
	if now.Sub(p.said) < 200*time.Millisecond {
		return
	}
	p.said = now
	p.mutex.Lock()
	total := p.totals[kind]
	p.mutex.Unlock()
	_, _ = fmt.Fprint(p.out, "\r\x1b[K"+progressText(kind, p.doneOf, total, p.done, now.Sub(p.begin)))
}

// progressText is the line of progress. total is 0 if the API server does not say it.
func progressText(kind string, doneOf, total, done int64, since time.Duration) string {
	rate := float64(done) / max(since.Seconds(), 0.001)
	text := fmt.Sprintf("%ss: %d", kind, doneOf)
	if total > 0 {
		text += fmt.Sprintf(" of %d", total)
	}
	text += fmt.Sprintf(", %.0f objects/s", rate)
	if left := total - doneOf; total > 0 && left >= 0 {
		text += fmt.Sprintf(", %s left", time.Duration(float64(left)/max(rate, 1)*float64(time.Second)).Round(time.Second))
	}
	return text
}

// clear removes the line, so that other output can be written.
func (p *scanProgress) clear() {
	if p != nil {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *scanProgress) end() { p.clear() }
