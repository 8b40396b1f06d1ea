package page

import (
	"crypto/sha256"
	_ "embed" // The import embeds the parts of the page.
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

var (
	//go:embed static/frame.html
	frameHTML string
	//go:embed static/style.css
	style string
)

// Notes stand above the content of a page. All of them are text.
type Notes struct {
	// Lacks say what the page lacks, and Facts what else its readers have to know.
	Lacks, Facts []string
}

// frame is what every page has. Title, skip and notes are text. Controls and content are HTML, and data is JSON without the characters
// that end a script.
//
// The policy in the page (CSP) allows the style sheet and the scripts of this package by their hashes, and no request. A name in a cluster
// cannot add to them: pages show names as text.
type frame struct {
	title string
	notes Notes
	// skip is the name of the link that leads past the header.
	skip              string
	controls, content string
	data              string
	scripts           []string
}

func (f frame) write(w io.Writer) error {
	var scripts, sources, notes, data strings.Builder
	for _, script := range f.scripts {
		fmt.Fprintf(&scripts, "<script>%s</script>\n", script)
		sources.WriteString(" " + hash(script))
	}
	if len(f.notes.Lacks)+len(f.notes.Facts) > 0 {
		notes.WriteString(`<section id="notes" aria-label="Notes">` + "\n")
		for _, note := range f.notes.Lacks {
			fmt.Fprintf(&notes, "<p><b class=\"barrier\">■ Incomplete:</b> %s</p>\n", shown(note))
		}
		if len(f.notes.Facts) > 0 {
			notes.WriteString("<ul>\n")
			for _, note := range f.notes.Facts {
				fmt.Fprintf(&notes, "<li>%s</li>\n", shown(note))
			}
			notes.WriteString("</ul>\n")
		}
		notes.WriteString("</section>\n")
	}
	if f.data != "" {
		data.WriteString(`<script type="application/json" id="data">` + f.data + "</script>\n")
	}
	policy := "default-src 'none'; style-src " + hash(style) + "; script-src" + sources.String() + "; base-uri 'none'; form-action 'none'"
	_, err := strings.NewReplacer(
		"{{policy}}", policy, "{{title}}", shown(f.title), "{{skip}}", shown(f.skip), "{{style}}", style, "{{controls}}", f.controls,
		"{{notes}}", notes.String(), "{{content}}", f.content, "{{data}}", data.String(), "{{scripts}}", scripts.String(),
	).WriteString(w, frameHTML)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// hash returns a script or style sheet as a source of a policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// shown returns a text as HTML. Characters that are not printable, such as overrides of the direction of text, are escaped as in Go.
func shown(text string) string {
	var out strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			out.WriteRune(r)
		} else {
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return html.EscapeString(out.String())
}
