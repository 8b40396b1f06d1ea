package livefield

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// written is a step of a path as the user wrote it.
type written struct {
	// name is the name of a field or the key of a map.
	name string
	// inBrackets means that the step is in brackets: ["key"], [*], [0], [name="web"] or [="member"].
	inBrackets bool
	// isItem means that the step selects items of a list or entries of a map: all, the one at an index, or those with keys.
	isItem bool
	// index is the index, -1 for none.
	index int
	// keys are the keys of an item, as texts. "" is the member of a set.
	keys map[string]string
}

// parse parses a path that fieldtree.Kind.Find has accepted.
func parse(text string) ([]written, error) {
	fault := func() ([]written, error) {
		return nil, fmt.Errorf(`path %q: cannot be read: write it as in .spec.containers[name="web"].image`, text)
	}
	var out []written
	rest := strings.TrimSuffix(text, ".")
	for rest != "" {
		if rest[0] == '[' {
			end := fieldpath.Closing(rest)
			if end < 2 {
				return fault()
			}
			step, ok := bracket(rest[1:end])
			if !ok {
				return fault()
			}
			out, rest = append(out, step), rest[end+1:]
			continue
		}
		rest = strings.TrimPrefix(rest, ".")
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			out = append(out, written{name: rest[:end], index: -1})
		} else if rest == "" || rest[0] != '[' {
			return fault()
		}
		rest = rest[end:]
	}
	return out, nil
}

// bracket parses the text between brackets.
func bracket(text string) (written, bool) {
	out := written{inBrackets: true, isItem: true, index: -1}
	if text == "*" {
		return out, true
	}
	if name, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return written{inBrackets: true, name: name, index: -1}, true
	}
	if i, err := strconv.Atoi(text); err == nil {
		out.index = i
		return out, i >= 0
	}
	out.keys = map[string]string{}
	for {
		name, rest, found := strings.Cut(text, "=")
		if !found {
			return out, false
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil || quoted[0] != '"' {
			// A number or a boolean.
			var more bool
			if out.keys[name], text, more = strings.Cut(rest, ","); !more {
				return out, out.keys[name] != ""
			}
			continue
		}
		if out.keys[name], err = strconv.Unquote(quoted); err != nil {
			return out, false
		}
		if rest = rest[len(quoted):]; rest == "" {
			return out, true
		}
		if text, found = strings.CutPrefix(rest, ","); !found {
			return out, false
		}
	}
}
