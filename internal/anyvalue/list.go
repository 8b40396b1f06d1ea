package anyvalue

import (
	"context"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
)

// Row is a field of a list, with the fields below it that have no row of their own.
type Row struct {
	// Path is the path of the field, "" for the object itself.
	Path   string
	Answer Answer
}

// Located is a place with its path in the object.
type Located struct {
	Path  string
	Place *fieldtree.Place
}

// Lister lists the fields that the user may change.
type Lister struct {
	Judge *Judge
	// Items returns the items of a list or the entries of a map that the object has.
	Items func(of Located) []Located
	// Skips reports whether the endpoint does not write the field.
	Skips func(path string) bool

	leads map[*fieldtree.Node]bool
	left  int
	rows  []Row
}

// List returns a row for each field whose answer differs from that of the field above. A field without a row has the answer of the nearest row above,
// and may not be changed if there is none.
func (l *Lister) List(ctx context.Context, k *fieldtree.Kind) ([]Row, error) {
	l.leads, l.left = k.Leading(), maxPlaces
	err := l.visit(ctx, Located{Place: k.Place()}, No)
	return l.rows, err
}

func (l *Lister) visit(ctx context.Context, at Located, above Outcome) error {
	if l.left--; l.left < 0 || at.Place.Repeats() != nil || l.Skips(at.Path) {
		return nil
	}
	n := at.Place.Node()
	if n.Role == schema.RoleServerWritten {
		return nil
	}
	if at.Path == "" || hasVerbs(n) {
		answer, err := l.Judge.own(ctx, at.Place)
		if err != nil {
			return err
		}
		if answer.Outcome != above {
			l.rows = append(l.rows, Row{at.Path, answer})
			above = answer.Outcome
		}
	}
	for _, c := range n.Children {
		if !l.leads[c.Node] {
			continue
		}
		below := []Located{{at.Path + c.Element.String(), at.Place.Child(c)}}
		switch {
		case c.Any && (n.Emits != "" || len(n.KeyEmits) > 0 || c.Emits != ""):
			below = l.Items(at)
		case n.Emits != "" && !c.Any && (strings.HasSuffix(c.Name, "/") || l.isItem(at, below[0].Path)):
			continue // The entries of the object have rows of their own.
		}
		for _, b := range below {
			if err := l.visit(ctx, b, above); err != nil {
				return err
			}
		}
	}
	return nil
}

// isItem reports whether the object has an entry of a map.
func (l *Lister) isItem(of Located, path string) bool {
	return slices.ContainsFunc(l.Items(of), func(item Located) bool { return item.Path == path })
}
