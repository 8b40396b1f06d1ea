package page

import (
	"bytes"
	_ "embed" // The import embeds the parts of the page.
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

var (
	//go:embed static/tree_controls.html
	treeControls string
	//go:embed static/tree.html
	tree string
	//go:embed static/model.js
	model string
	//go:embed static/access.js
	access string
	//go:embed static/view.js
	view string
)

// Render returns the page of a forest. The title is text. Equal forests give equal
// bytes.
func Render(title string, notes Notes, f *fieldtree.Forest) ([]byte, error) {
	var out bytes.Buffer
	err := Write(&out, title, notes, f)
	return out.Bytes(), err
}

// RenderAccess returns the page of a forest in which each field of the kind of a has the subjects that may change it.
func RenderAccess(title string, notes Notes, f *fieldtree.Forest, a *Access) ([]byte, error) {
	e := newEncoder(title)
	e.forest(f)
	lost, err := e.access(f, a)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	notes.Lacks = slices.Concat(notes.Lacks, lost)
	err = writeTree(&out, title, notes, &e.data)
	return out.Bytes(), err
}

// Write writes the page that Render returns. It writes in parts, so that a writer which fails ends the work.
func Write(w io.Writer, title string, notes Notes, f *fieldtree.Forest) error {
	e := newEncoder(title)
	e.forest(f)
	return writeTree(w, title, notes, &e.data)
}

func writeTree(w io.Writer, title string, notes Notes, d *data) error {
	// Names of others cannot end the script that holds the data: json.Marshal escapes <, > and &.
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return frame{
		title: title, notes: notes, skip: "Skip to the tree", controls: treeControls, content: tree, data: string(text), scripts: []string{model, access, view},
	}.write(w)
}
