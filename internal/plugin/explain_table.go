package plugin

import (
	"strings"
	"unicode/utf8"

	"github.com/fieldperm/fieldperm/internal/printable"
)

// paint adds colours and marks on a terminal. The words are the same without it.
type paint struct{ on bool }

func (p paint) with(code, mark, words string) string {
	if !p.on {
		return words
	}
	return "\x1b[" + code + "m" + mark + words + "\x1b[0m"
}

func (p paint) title(words string) string   { return p.with("1", "", words) }
func (p paint) faint(words string) string   { return p.with("2", "", words) }
func (p paint) barrier(words string) string { return p.with("31", "■ ", words) }
func (p paint) power(words string) string   { return p.with("33", "", words) }

// cell is a part of a row: its text, which has a width, and the text with colours.
type cell struct{ plain, painted string }

func plainCell(words string) cell {
	words = printable.Text(words)
	return cell{words, words}
}

// table writes rows in columns. The last column is not aligned.
func (t *text) table(rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.plain))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		line.WriteString("  ")
		for i, c := range row {
			line.WriteString(c.painted)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.plain)+2))
			}
		}
		t.line("%s", strings.TrimRight(line.String(), " "))
	}
}
