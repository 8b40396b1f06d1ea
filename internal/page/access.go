package page

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

// Access is who may change what in one object, or in all objects of a kind in a namespace.
type Access struct {
	// Kind is a kind of the forest.
	Kind *fieldtree.Kind
	// Object is the namespace and the name (shop/web), or what the answer is about in place of an object.
	Object   string
	Subjects []Subject
	// Paths has the subjects that may change the field at a path of the kind. "" is the object itself. A field that is not a key has those of
	// the nearest key above it.
	Paths map[string][]Holder
}

// Subject is a user, a group or a service account. The Name of a ServiceAccount has its namespace: shop/deployer.
type Subject struct{ Kind, Name string }

// Holder is how a subject may change a field.
type Holder struct {
	// Subject is the index of the subject.
	Subject int
	// How is generic, granular, wildcard or conditional.
	How string
	// Through says more, such as the verb and the condition; "" for nothing.
	Through string
}

// hows are the values of Holder.How. The data has their indexes.
var hows = []string{"generic", "granular", "wildcard", "conditional"}

// accessData is an Access. Paths with the same holders share a list.
type accessData struct {
	Kind     int           `json:"kind"`
	Object   string        `json:"object"`
	Subjects []subjectData `json:"subjects"`
	// Lists have an entry for each holder: the index of the subject, the index of how in hows, and, if it is not "", the index of through.
	Lists [][][]int `json:"lists"`
	// Paths have the indexes of lists.
	Paths map[string]int `json:"paths"`
}

type subjectData struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// access adds who may change what. It returns notes about the paths that the tree cannot show.
func (e *encoder) access(f *fieldtree.Forest, a *Access) (notes []string, err error) {
	out := &accessData{Kind: slices.Index(f.Kinds, a.Kind), Object: a.Object, Subjects: []subjectData{}, Lists: [][][]int{}, Paths: map[string]int{}}
	if out.Kind < 0 {
		return nil, fmt.Errorf("page: access to %q: its kind is not in the forest: add it", a.Object)
	}
	for _, s := range a.Subjects {
		out.Subjects = append(out.Subjects, subjectData(s))
	}
	known := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(a.Paths)) {
		list := [][]int{}
		for _, h := range a.Paths[path] {
			how := slices.Index(hows, h.How)
			if how < 0 || h.Subject < 0 || h.Subject >= len(a.Subjects) {
				return nil, fmt.Errorf("page: access to %q: holder %+v of path %q: use a subject of the list, and one of %q", a.Object, h, path, hows)
			}
			one := []int{h.Subject, how}
			if h.Through != "" {
				one = append(one, e.text(h.Through))
			}
			list = append(list, one)
		}
		// A page that takes a path for another would give a wrong answer, so it says what it cannot show.
		if place, err := a.Kind.Find(path); err != nil || place.Path.String() != path {
			notes = append(notes, fmt.Sprintf("This page does not show the subjects that may change %s: the tree has no field with this path.", path))
			continue
		}
		key := fmt.Sprint(list)
		i, isKnown := known[key]
		if !isKnown {
			i = len(out.Lists)
			known[key] = i
			out.Lists = append(out.Lists, list)
		}
		out.Paths[path] = i
	}
	e.Access = out
	return notes, nil
}
