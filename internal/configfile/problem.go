package configfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// longestValue and longestText bound what one fault repeats of the file, in bytes: it may be the wrong file.
const (
	longestValue = 100
	longestText  = 400
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
	var root yaml.Node
	if yaml.Unmarshal(data, &root) == nil && len(root.Content) > 0 {
		_, out.Line, _ = find(root.Content[0], root.Content[0].Line, key)
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

// quoted returns a value as it appears in a message.
func quoted(value string) string { return strconv.Quote(shortened(value, longestValue)) }

func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// oneLine returns text on one line of bounded length, for a log.
func oneLine(text string) string {
	return shortened(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		} else if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.TrimSpace(text)), longestText)
}
