package fieldpath

import "strings"

// Pointer returns a JSON pointer (RFC 6901) with more steps.
func Pointer(pointer string, steps ...string) string {
	for _, step := range steps {
		// This runs for every keyword of every schema, and almost no keyword needs an escape.
		if strings.ContainsAny(step, "~/") {
			step = strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
		}
		pointer += "/" + step
	}
	return pointer
}
