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
	// Kinds are the kinds of the recipes, by a name that is used in the table only.
	Kinds map[string]*Kind `json:"kinds"`
	// Holders are the users that try the writes.
	Holders []Holder `json:"holders"`
}

// Kind is an object and the writes to try on it.
type Kind struct {
	Resource corpus.Resource `json:"resource"`
	Kind     string          `json:"kind"`
	// ClusterScoped says that the objects have no namespace.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Object is created by an administrator, and then its status. An object without a name gets the name of the holder.
	Object map[string]any `json:"object"`
	// Writes are sent as dry runs, so that none changes what the next one finds.
	Writes map[string]Write `json:"writes"`
}

// Write is one attempt.
type Write struct {
	corpus.Request `json:",inline"`
	// Subresource is the subresource of the object.
	Subresource string `json:"subresource,omitempty"`
	// Post is a body that is posted to the subresource.
	Post map[string]any `json:"post,omitempty"`
}

// Holder is a user with the permissions of a recipe.
type Holder struct {
	// Recipe is the key of a recipe.
	Recipe string `json:"recipe"`
	// Rules are the indexes of the recipe's rules that the holder has. If it is missing: all.
	Rules []int `json:"rules,omitempty"`
	// Holds are verbs on the resource, and all its subresources, that replace the recipe's rules: for a user that a barrier stops.
	Holds []string `json:"holds,omitempty"`
	// Of is the name of the kind.
	Of string `json:"of"`
	// May are the writes that the recipe promises. Every other write is refused. MayNot is the opposite.
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
			errs = append(errs, fmt.Errorf("recipe %q has no holder that tries it: add a holder", r.Key))
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
