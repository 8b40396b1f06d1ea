package fieldrole

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// companions finds the fields that the API server may write because of a change of the fields, or into a new object, and that the verbs do not
// cover: a request that names none of them may be refused for them (D13). What the API server writes predictably is free and not among them.
func (r *Rule) companions(ctx context.Context, tree *fieldtree.Kind) error {
	by := map[string][]string{}
	var causes []string
	for _, w := range endpoint.Companions(endpoint.Kind{Group: tree.Group, Kind: tree.Kind}, tree.Version) {
		place, err := tree.Find(w.Field)
		if err != nil || len(place.Path) == 0 {
			continue // The subresource does not write it.
		}
		answers, err := judge(ctx, r.Verbs[1:], []Field{{place: place}})
		if err != nil {
			return err
		}
		cause := r.causes(&w)
		field := companionText(place)
		switch {
		case answers[0].Outcome == anyvalue.Yes:
		case w.Creates() && (cause != "" || len(w.CausedBy()) == 0):
			r.Creates = distinct(append(r.Creates, field))
		case !w.Creates() && cause != "":
			causes = distinct(append(causes, cause))
			by[cause] = distinct(append(by[cause], field))
		}
	}
	for _, cause := range causes {
		r.Notes = append(r.Notes, fmt.Sprintf("with a change of %s the API server may write %s. The verbs do not cover that, and such a change is refused: name these fields too", cause, strings.Join(by[cause], ", ")))
	}
	return nil
}

// causes returns the field whose change causes a write, if it is, contains or is in one of the fields of the rule.
func (r *Rule) causes(w *endpoint.Write) string {
	for _, cause := range w.CausedBy() {
		of, err := fieldpath.ParsePattern(cause)
		if err == nil && slices.ContainsFunc(r.Fields, func(f Field) bool { return of.Meets(f.place.Path) }) {
			return cause
		}
	}
	return ""
}

// companionText returns the path of a field. The keys of a map that runs have observed, except for those of the metadata, stand for every key.
func companionText(p *fieldtree.Place) string {
	last := len(p.Path) - 1
	if p.Path[0].Name != "metadata" && strings.HasPrefix(p.Above(last).Node().Type, "map[") {
		return p.Path[:last].Child(fieldpath.Element{Any: true}).String()
	}
	return p.Path.String()
}

// createsText says what else a new object needs, "" for nothing.
func (r *Rule) createsText() string {
	if len(r.Creates) == 0 {
		return ""
	}
	return fmt.Sprintf("In a new object the API server may set %s. The verbs on %s do not cover that, and such an object is refused: name these fields too.", strings.Join(r.Creates, ", "), r.resource())
}
