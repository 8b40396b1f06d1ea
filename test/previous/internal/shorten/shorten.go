// Package shorten bounds the length of texts in messages, such as names that a caller chose. It imports nothing of fieldperm.
package shorten

import "strings"

const more = "…"

// Text returns a text of at most a number of bytes unchanged. Of a longer one it returns the beginning, and a mark that there is more.
// It does not split a character.
func Text(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + more
}

// Within is Text with a result of at most a number of bytes, the mark included.
func Within(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return Text(text, bytes-len(more))
}
