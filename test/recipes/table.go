package recipes

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// Table is testdata/writes.yaml.
type Table struct {
	// Kinds are what the recipes are about, by a name of the table's own.
	Kinds map[string]*Kind `json:"kinds"`
	// Holders are those who try the writes.
	Holders []Holder `json:"holders"`
}

// Kind is an object and what may be tried on it.
type Kind struct {
	Resource corpus.Resource `json:"resource"`
	Kind     string          `json:"kind"`
	// ClusterScoped objects have no namespace.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Object is made by an administrator, its status after it. An object without a name has the holder's.
	Object map[string]any `json:"object"`
	// Writes are sent as dry runs, so that none changes what the next one finds.
	Writes map[string]Write `json:"writes"`
}

// Write is one attempt.
type Write struct {
	corpus.Request `json:",inline"`
	// Subresource of the object.
	Subresource string `json:"subresource,omitempty"`
	// Post is a body that is posted to the subresource.
	Post map[string]any `json:"post,omitempty"`
}

// Holder is somebody who has what a recipe gives.
type Holder struct {
	// Recipe is the key of a recipe.
	Recipe string `json:"recipe"`
	// Rules are the numbers of those rules of the recipe that the holder has. Left out: all.
	Rules []int `json:"rules,omitempty"`
	// Holds are verbs on the resource, and all its subresources, instead of the recipe's rules: one whom a barrier is for.
	Holds []string `json:"holds,omitempty"`
	// Of is the kind.
	Of string `json:"of"`
	// May are the writes that the recipe promises, and every other one is refused. MayNot is the opposite.
	May    []string `json:"may,omitempty"`
	MayNot []string `json:"mayNot,omitempty"`
}

// ReadTable reads a table and checks it against the recipes: each has a holder, and each name is known.
func ReadTable(raw []byte, recipes []Recipe) (*Table, error) {
	t := &Table{}
	if err := yaml.UnmarshalStrict(raw, t); err != nil {
		return nil, err
	}
	var errs []error
	tried := map[string]bool{}
	for i, h := range t.Holders {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("holder %d, of recipe %q: %s", i, h.Recipe, fmt.Sprintf(format, args...)))
		}
		tried[h.Recipe] = true
		at := slices.IndexFunc(recipes, func(r Recipe) bool { return r.Key == h.Recipe })
		if at < 0 {
			fault("the page has no such recipe")
			continue
		}
		if slices.ContainsFunc(h.Rules, func(n int) bool { return n < 0 || n >= len(recipes[at].Rules) }) {
			fault("rules %v: the recipe has %d", h.Rules, len(recipes[at].Rules))
		}
		if (len(h.May) == 0) == (len(h.MayNot) == 0) {
			fault("give it one of may and mayNot")
		}
		kind := t.Kinds[h.Of]
		if kind == nil {
			fault("kind %q is not in the table", h.Of)
			continue
		}
		for _, name := range slices.Concat(h.May, h.MayNot) {
			if _, known := kind.Writes[name]; !known {
				fault("write %q is none of %v", name, slices.Sorted(maps.Keys(kind.Writes)))
			}
		}
	}
	for _, r := range recipes {
		if !tried[r.Key] {
			errs = append(errs, fmt.Errorf("recipe %q is tried by nobody: add a holder", r.Key))
		}
	}
	return t, errors.Join(errs...)
}

// Promised reports whether the recipe promises the write.
func (h *Holder) Promised(write string) bool {
	if len(h.MayNot) > 0 {
		return !slices.Contains(h.MayNot, write)
	}
	return slices.Contains(h.May, write)
}
