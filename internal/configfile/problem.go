package configfile

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one fault of a configuration file. File and Line (1 or more) are always set; Key is the
// path of the field, "" where the fault is not about one.
type Problem struct {
	File    string
	Line    int
	Key     string
	Message string
	// Cure says what to write instead. It is "" only where Message says so itself.
	Cure string
}

// Error returns "file:line: key: message: cure", on one line.
func (p Problem) Error() string {
	parts := []string{fmt.Sprintf("%s:%d", p.File, p.Line)}
	for _, part := range []string{p.Key, p.Message, p.Cure} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Problems are all faults of a file, in the order of lines. It is an error if there is any.
type Problems []Problem

// Error returns one fault per line.
func (p Problems) Error() string { return errors.Join(p.Unwrap()...).Error() }

// Unwrap returns the faults one by one.
func (p Problems) Unwrap() []error {
	out := make([]error, 0, len(p))
	for i := range p {
		out = append(out, p[i])
	}
	return out
}
