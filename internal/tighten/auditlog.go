package tighten

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// LogCounts say what a log has. Except Lines, Broken, TooLong and Truncated they are about lines that name the subject and a verb of an
// update, because all other lines are skipped before they are decoded.
type LogCounts struct {
	Lines int64
	// Broken are lines that are no JSON objects, and events without a stage, a verb or the code of the response. TooLong are events longer
	// than maxEvent, without the objects in them. Both are skipped.
	Broken, TooLong int64
	// Truncated: the log ends in the middle of a line, or of its compressed data.
	Truncated bool
	// OtherStage are events of other stages of a request, Failed are requests that were refused or failed.
	OtherStage, Failed int64
	// Writes are the updates of the subject. DryRuns, Created and Unobserved are among them.
	Writes, DryRuns, Created, Unobserved int64
}

// String returns the counts for a text.
func (c *LogCounts) String() string {
	out := fmt.Sprintf("%d lines, %d writes", c.Lines, c.Writes)
	for _, part := range []struct {
		n    int64
		text string
	}{
		{c.DryRuns, "of them dry runs"}, {c.Created, "of them created the object"}, {c.Unobserved, "of them not observed by fieldperm"},
		{c.OtherStage, "events of other stages"}, {c.Failed, "refused or failed requests"},
		{c.Broken, "broken lines skipped"}, {c.TooLong, "events longer than 32 MiB skipped"},
	} {
		if part.n > 0 {
			out += fmt.Sprintf(", %d %s", part.n, part.text)
		}
	}
	if c.Truncated {
		out += ", the end is truncated"
	}
	return out
}

// Gaps say what a log does not show, because it could not be read.
func (c *LogCounts) Gaps() []string {
	var out []string
	if c.Broken > 0 {
		out = append(out, fmt.Sprintf("%d broken lines, which may be writes: look at the log, or give the log of another API server", c.Broken))
	}
	if c.TooLong > 0 {
		out = append(out, fmt.Sprintf("%d events longer than 32 MiB, which may be writes: look at the log", c.TooLong))
	}
	if c.Truncated {
		out = append(out, "its end is truncated, so that its last events are not known: give the whole log")
	}
	return out
}

const (
	// maxLine is the longest line that is read as a whole. The events of a longer one, an EventList of a webhook, are read one by one.
	maxLine = 4 << 20
	// maxEvent is the longest event, without the objects in it.
	maxEvent = 32 << 20
)

// Log reads the updates of a subject from an audit log: audit.k8s.io/v1 events or EventLists as JSON lines, compressed by gzip or not, or
// indented JSON documents. Broken lines are counted, not errors.
type Log struct {
	Subject Subject
	// Visit is called for each update. The event is valid until Visit returns.
	Visit  func(ev *Event)
	Counts LogCounts

	event  Event
	filter []byte
	// within: the events of one line are read one by one.
	within bool
}

// Read reads the log until its end. Its memory does not grow with the log. An error is one of the reader, or of the context.
func (l *Log) Read(ctx context.Context, r io.Reader) error {
	l.filter = longestPlain(l.Subject.filterName())
	in := bufio.NewReaderSize(r, 1<<20)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("audit log is no gzip: %w: correct the file", err)
		}
		in = bufio.NewReaderSize(unzipped, 1<<20)
	}
	err := l.lines(ctx, in)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) {
		l.Counts.Truncated = true
		err = nil
	}
	return err
}

// filterName is what every event of the subject contains.
func (s Subject) filterName() string {
	if name := s.Username(); name != "" {
		return name
	}
	return s.Name
}

// longestPlain returns the longest part of a text that JSON never escapes.
func longestPlain(name string) []byte {
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == ':' || c == '_' || c == '-' || c == '@' || c == ' '
	}
	best, begin := "", 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && plain(name[i]) {
			continue
		}
		if i-begin > len(best) {
			best = name[begin:i]
		}
		begin = i + 1
	}
	return []byte(best)
}

func (l *Log) lines(ctx context.Context, in *bufio.Reader) error {
	var long []byte // a line that is longer than the buffer
	for {
		part, err := in.ReadSlice('\n')
		ended := err == nil
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
			if len(long) <= maxLine {
				continue
			}
			rest := &restOfLine{in: in}
			if err := l.longLine(ctx, long, rest); err != nil {
				return err
			}
			if !rest.ended {
				return nil
			}
			long = nil
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		trimmed := bytes.TrimSpace(line)
		if l.Counts.Lines == 0 && (string(trimmed) == "{" || string(trimmed) == "[") {
			return l.documents(ctx, io.MultiReader(bytes.NewReader(bytes.Clone(line)), in))
		}
		if len(trimmed) > 0 {
			l.Counts.Lines++
			if l.Counts.Lines%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			l.line(trimmed, ended)
		}
		if !ended {
			return nil
		}
		long = long[:0]
	}
}

// longLine reads the events of a line one by one. begin is what was read of it.
func (l *Log) longLine(ctx context.Context, begin []byte, rest *restOfLine) error {
	l.Counts.Lines++
	l.within = true
	defer func() { l.within = false }()
	if err := l.documents(ctx, io.MultiReader(bytes.NewReader(begin), rest)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return err
	}
	if rest.ended && l.Counts.Truncated {
		l.Counts.Truncated = false // The line is cut, not the log.
		l.Counts.Broken++
	}
	return nil
}

// count counts an event as a line, unless it is a part of one.
func (l *Log) count() {
	if !l.within {
		l.Counts.Lines++
	}
}

// restOfLine reads until the end of a line, or of the log.
type restOfLine struct {
	in    *bufio.Reader
	part  []byte
	ended bool
}

// Read implements io.Reader.
func (r *restOfLine) Read(b []byte) (int, error) {
	for len(r.part) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		part, err := r.in.ReadSlice('\n')
		if r.part = part; err == nil {
			r.ended = true
		} else if !errors.Is(err, bufio.ErrBufferFull) && len(part) == 0 {
			return 0, err
		}
	}
	n := copy(b, r.part)
	r.part = r.part[n:]
	return n, nil
}

// line reads one line. A line that cannot be an update of the subject is not decoded: only its first and last byte are looked at, unless it
// is the last of the log and has no line break.
func (l *Log) line(line []byte, ended bool) {
	broken := line[0] != '{' || line[len(line)-1] != '}'
	// A last line without a line break may be cut before the name of the subject.
	if !broken && ended && !(bytes.Contains(line, l.filter) && (bytes.Contains(line, []byte(`"update"`)) || bytes.Contains(line, []byte(`"patch"`)))) {
		return
	}
	if !broken {
		document, err := rawjson.Scan(line)
		if err == nil {
			l.value(document.Root())
			document.Release()
			return
		}
	}
	if !ended {
		l.Counts.Truncated = true
		return
	}
	l.Counts.Broken++
}

// value reads an event, or the events of a list.
func (l *Log) value(v rawjson.Value) {
	items := v.Get("items")
	if !items.IsList() {
		l.one(v)
		return
	}
	for i := items.Items(); i.Next(); {
		l.one(i.Value())
	}
}

func (l *Log) one(v rawjson.Value) {
	ev := &l.event
	switch ev.read(v, l.Subject) {
	case isBroken:
		l.Counts.Broken++
	case isOtherStage:
		l.Counts.OtherStage++
	case isFailed:
		l.Counts.Failed++
	case isWrite:
		ev.Line = l.Counts.Lines
		l.Counts.Writes++
		if ev.DryRun {
			l.Counts.DryRuns++
		}
		if ev.Created {
			l.Counts.Created++
		}
		if !ev.Observed && !ev.Created {
			l.Counts.Unobserved++
		}
		l.Visit(ev)
	case isOther:
	}
}
