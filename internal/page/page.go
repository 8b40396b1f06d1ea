package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // The import embeds the parts of the page.
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

var (
	//go:embed static/page.html
	frame string
	//go:embed static/style.css
	style string
	//go:embed static/model.js
	model string
	//go:embed static/view.js
	view string
)

// Render returns the page of a forest. The title is text, and so are the notes, which say what the page lacks. Equal forests give equal
// bytes.
//
// The policy in the page (CSP) allows the style sheet and the scripts of this package by their hashes, and no request. Whoever names a
// field cannot add to them: the data is JSON without the characters that end a script, and the scripts show it as text.
func Render(title string, notes []string, f *fieldtree.Forest) ([]byte, error) {
	text, err := json.Marshal(encode(title, notes, f))
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	var escaped bytes.Buffer
	json.HTMLEscape(&escaped, text)
	policy := fmt.Sprintf("default-src 'none'; style-src %s; script-src %s %s; base-uri 'none'; form-action 'none'", hash(style), hash(model), hash(view))
	return []byte(strings.NewReplacer(
		"{{policy}}", policy, "{{title}}", html.EscapeString(title),
		"{{style}}", style, "{{model}}", model, "{{view}}", view, "{{data}}", escaped.String(),
	).Replace(frame)), nil
}

// hash returns a script or style sheet as a source of a policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
