package configfile

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one fault of a configuration file. File and Line (1 or more) are always set. Key is the path of the field, "" if the
// fault is not about a field.
type Problem struct {
	File    string
	Line    int
	Key     string
	Message string
	// Cure is the correction. It is "" only if Message contains the cure.
	Cure string
}

// NewProblem returns a Problem about a key of a file that is valid, for faults that appear only when the file is put in force. Its
// line is the line of the key, or of the nearest parent.
func NewProblem(file string, data []byte, key, message, cure string) Problem {
	out := Problem{File: file, Line: 1, Key: key, Message: message, Cure: cure}
	if r := newReading(file, data, language{compiles: func(string) bool { return false }}); r.places != nil {
		out.Line = r.places.line(key)
	}
	return out
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

// Problems are all faults of a file, in the order of lines. Loaders return it as an error only if it is not empty.
type Problems []Problem

// Error returns one fault per line.
func (p Problems) Error() string { return errors.Join(p.Unwrap()...).Error() }

// Unwrap returns the faults.
func (p Problems) Unwrap() []error {
	out := make([]error, 0, len(p))
	for i := range p {
		out = append(out, p[i])
	}
	return out
}
