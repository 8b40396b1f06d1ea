package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The columns of a step: number, user, expected, seen, command.
const (
	columns = "%3d  %-13s %s %s %s\n"
	heading = "%3s  %-13s %-9s %-9s %s\n"
	// indent is the column of the commands.
	indent = 39
	// width is the width at which messages are wrapped.
	width = 132
)

const (
	plain  = ""
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

// printer writes the demo's output, with colours on a terminal only.
type printer struct {
	io.Writer
	coloured bool
}

func newPrinter(file *os.File) *printer {
	info, err := file.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &printer{Writer: file, coloured: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (p *printer) paint(colour, text string) string {
	if !p.coloured || colour == plain {
		return text
	}
	return colour + text + reset
}

// line writes a line. Errors of writing are ignored, here and below.
func (p *printer) line(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

func (p *printer) header() {
	_, _ = fmt.Fprintf(p, "\n"+heading, "#", "user", "expected", "seen", "command")
}

func (p *printer) story(s *Story) {
	p.line("\n%s", p.paint(bold, s.Title))
}

func (p *printer) action(action string) {
	text := map[string]string{
		actionStop:      "fieldperm is stopped",
		actionStart:     "fieldperm is started again",
		actionUnenforce: "the webhook granular is taken away, and fieldperm notices",
		actionEnforce:   "the webhook granular is put back",
	}[action]
	p.line("     %s", p.paint(yellow, "– "+text+" –"))
}

func (p *printer) step(number int, step *Step, r *result) {
	if step.Note != "" {
		p.line("     %s", p.paint(dim, step.Note))
	}
	colour := green
	if !r.asExpected() {
		colour = red
	}
	expected := word(len(step.Allowed) > 0)
	_, _ = fmt.Fprintf(p, columns, number, step.User, pad(expected), p.paint(colour, pad(word(r.allowed))), step.Run)
	if !r.allowed {
		p.wrapped(dim, r.message)
	}
	if r.covering != "" {
		p.wrapped(dim, "covered by "+r.covering)
	}
	for _, fault := range r.faults {
		p.wrapped(red, "NOT AS EXPECTED: "+fault)
	}
}

// wrapped writes a long text below the commands.
func (p *printer) wrapped(colour, text string) {
	line := ""
	flush := func() { p.line("%s%s", strings.Repeat(" ", indent), p.paint(colour, line)) }
	for _, w := range strings.Fields(text) {
		if line != "" && indent+len(line)+1+len(w) > width {
			flush()
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	flush()
}

func (p *printer) log(name, tail string) {
	p.line("\nThe log of %s ends in:\n%s", name, tail)
}

func (p *printer) sum(t tally, took time.Duration) {
	colour := green
	if !t.good() {
		colour = red
	}
	p.line("all: done after %s", took.Round(10*time.Millisecond))
	p.line("%s", p.paint(colour, fmt.Sprintf("demo: %d steps, %d as expected", t.total, t.expected)))
}

func word(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "refused"
}

func pad(s string) string { return fmt.Sprintf("%-9s", s) }
