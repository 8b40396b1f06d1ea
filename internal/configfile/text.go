package configfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

const (
	// longestValue and longestText bound the text of the file that one fault repeats, in characters. The file comes from an
	// administrator, but may be the wrong file.
	longestValue = 100
	longestText  = 400
)

// quoted returns a value as it appears in a message.
func quoted(value string) string {
	return strconv.Quote(shortened(value, longestValue))
}

func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}

// oneLine returns text on one line of bounded length, for a log.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, strings.TrimSpace(text))
	return shortened(text, longestText)
}

// oneOf lists the values that may be written.
func oneOf(values []string) string {
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}

// child and item return the path of a key or an item below a path.
func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parent returns the parent of a path, "" at the root.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}
