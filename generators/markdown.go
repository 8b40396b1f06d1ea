package generators

import (
	"strings"

	"github.com/fieldperm/fieldperm/internal/printable"
)

// CodeSpan returns a text as code in a cell of a table in Markdown. Authors of definitions choose the names of fields and write the conditions:
// neither ends the code, the cell or the line, so that nothing else of it gets into the page.
func CodeSpan(text string) string {
	text = strings.ReplaceAll(printable.Text(text), "|", `\|`)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// cellText returns a text as text in a cell of a table in Markdown.
func cellText(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "&#96;").Replace(printable.Text(text))
}
