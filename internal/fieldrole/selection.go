package fieldrole

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
)

// selects returns an error for a path that names an item of a list by what does not tell items apart: no verb is for such an item alone, and no
// denial names it so.
func (w *way) selects(p *fieldtree.Place, path string) error {
	n := w.root
	for i, e := range p.Path {
		of, has := p.Selection(i)
		if has {
			if fault := selectsOf(n, of, p.Path[:i].String()); fault != "" {
				return fmt.Errorf("path %q of %s: %s", path, p.Kind.Kind, fault)
			}
		}
		if n != nil {
			n = n.Step(e)
		}
	}
	return nil
}

// selectsOf says what is wrong with the item that a path names in a list, "" for nothing.
func selectsOf(n *schema.Node, of fieldtree.Selection, list string) string {
	switch {
	case n == nil, n.List() == nil && n.Map() == nil:
		return fmt.Sprintf("[%s] is in %q, which is not known as a list: write [*]", of.Text, list)
	case n.List() == nil:
		return fmt.Sprintf(`[%s] is in %q, which is a map: write [%q] for one key, or [*] for all`, of.Text, list, strings.Trim(of.Text, `="`))
	case n.List().Atomic():
		return fmt.Sprintf("[%s] is an item of %q, which changes as a whole: name %s", of.Text, list, list)
	}
	var keys []string
	for _, key := range n.List().Keys() {
		keys = append(keys, key.Name)
	}
	cure := `write [="…"] for one item, or [*] for all`
	if len(keys) > 0 {
		cure = fmt.Sprintf("write [%s], or [*] for all", strings.Join(quoted(keys), ","))
	}
	if len(of.Keys) == 0 {
		return fmt.Sprintf("[%s] is an index, and an index tells no items of %q apart: %s", of.Text, list, cure)
	}
	for _, name := range slices.Sorted(maps.Keys(of.Keys)) {
		if len(keys) == 0 && name == "" || slices.Contains(keys, name) {
			continue
		}
		return fmt.Sprintf("[%s] names no key of the items of %q: %s", of.Text, list, cure)
	}
	return ""
}

// quoted returns keys as they stand in a path.
func quoted(keys []string) []string {
	out := make([]string, 0, len(keys))
	for _, key := range keys {
		out = append(out, key+"="+strconv.Quote("…"))
	}
	return out
}
