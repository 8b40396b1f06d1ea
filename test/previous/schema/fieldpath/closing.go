package fieldpath

// Closing returns the index of the bracket that closes the first one, outside of quotes, -1 if there is none.
func Closing(text string) int {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ']' && !quoted:
			return i
		}
	}
	return -1
}
