package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// Fragment is a fragment of the catalogue that a document includes, and the path of the field at which it does so. The zero Fragment is
// none.
type Fragment struct{ Name, At string }

// Contained is a fragment of the catalogue that a document includes, itself or in another fragment. IsPart means that the field may lack fields of it.
type Contained struct {
	Fragment
	IsPart bool
}

// placeFragments replaces each document about a fragment by one for each document that contains it, so that what it says holds in each of their kinds.
// It also returns the documents about fragments, and the faults of documents that include them at too many fields.
func placeFragments(docs []PermissionDocument) (placed, about []PermissionDocument, faults []error) {
	for _, d := range docs {
		if d.Fragment == "" {
			placed = append(placed, d)
		} else {
			about = append(about, d)
		}
	}
	kinds := slices.Clip(placed)
	for i := range about {
		for j := range kinds {
			k := &kinds[j]
			one := about[i]
			one.Entries = one.within(k.Contains)
			switch {
			case len(one.Entries) > v1alpha1.MaxExpandedPermissions:
				faults = append(faults, tooManyPlaces(k.Source, one.Fragment))
			case len(one.Entries) > 0:
				one.Group, one.Kind, one.Versions = k.Group, k.Kind, k.Versions
				if k.Rank > RankCatalogue {
					one.includer = k.Source
				}
				placed = append(placed, one)
			}
		}
	}
	return placed, about, faults
}

// tooManyPlaces returns the fault of a document that includes a fragment at too many fields.
func tooManyPlaces(source, fragment string) *schema.Error {
	return &schema.Error{Source: source, Message: fmt.Sprintf("includes fragment %q at so many fields that a document about it has more than %d entries: include it at fewer fields", fragment, v1alpha1.MaxExpandedPermissions)}
}

// KindsWith returns the kinds that contain a fragment, sorted. If nothing contains it, so that its name is wrong, it returns those that contain any.
func (d *Documents) KindsWith(fragment string) []runtimeschema.GroupKind {
	containing := d.containing()
	if kinds := containing[fragment]; len(kinds) > 0 {
		return kinds
	}
	var out []runtimeschema.GroupKind
	for _, kinds := range containing {
		out = append(out, kinds...)
	}
	slices.SortFunc(out, compareKinds)
	return slices.Compact(out)
}

func compareKinds(a, b runtimeschema.GroupKind) int { return strings.Compare(a.String(), b.String()) }

// containing returns the kinds that contain each fragment.
func (d *Documents) containing() map[string][]runtimeschema.GroupKind {
	containers := slices.DeleteFunc(slices.Clone(d.Permissions), func(p PermissionDocument) bool { return len(p.Contains) == 0 })
	found := map[string]map[runtimeschema.GroupKind]bool{}
	add := func(contains []Contained, kind runtimeschema.GroupKind) {
		for _, f := range contains {
			if found[f.Name] == nil {
				found[f.Name] = map[runtimeschema.GroupKind]bool{}
			}
			found[f.Name][kind] = true
		}
	}
	for i := range d.Topologies {
		t := &d.Topologies[i]
		for gvk := range t.Kinds {
			for _, contains := range t.TypeContains {
				add(contains, gvk.GroupKind())
			}
			for j := range containers {
				if containers[j].matchesKind(gvk) {
					add(containers[j].Contains, gvk.GroupKind())
				}
			}
		}
	}
	out := map[string][]runtimeschema.GroupKind{}
	for name, kinds := range found {
		out[name] = slices.SortedFunc(maps.Keys(kinds), compareKinds)
	}
	return out
}

// within returns the entries of a document about a fragment, at each place of the fragment. Where a list has no keys, their verbs have no parameter.
func (d *PermissionDocument) within(contains []Contained) []Entry {
	isPart := map[string]bool{}
	var places []string
	for _, f := range contains {
		if f.Name != d.Fragment {
			continue
		}
		was, known := isPart[f.At]
		if !known {
			places = append(places, f.At)
		}
		isPart[f.At] = f.IsPart && (was || !known)
	}
	var out []Entry
	for _, at := range places {
		for _, e := range d.Entries {
			e.Path, e.Optional, e.Bare = at+e.Path, isPart[at], true
			out = append(out, e)
		}
	}
	return out
}

// reportMisfits reports the includes of a document whose field lacks every field of the fragment in each version of the kind, because
// such an include guards nothing. lost reports whether no version has the path of a statement.
func (c *compiler) reportMisfits(said []statement, lost func(statement) bool) {
	type inclusion struct {
		Fragment
		pointer string
	}
	below, root := map[inclusion][]statement{}, map[inclusion]error{}
	var order []inclusion
	for _, s := range said {
		e := s.guard.entry
		of := inclusion{e.Fragment, e.Pointer}
		switch {
		case e.Fragment == Fragment{} || e.Verb == "" && e.ParameterSource == "":
		case normalPath(s) != e.Fragment.At:
			if below[of] == nil {
				order = append(order, of)
			}
			below[of] = append(below[of], s)
		case lost(s):
			root[of] = s.guard.fault("path %q does not exist in any version: include the fragment at a field that exists", e.Fragment.At)
		}
	}
	for _, of := range order {
		if slices.ContainsFunc(below[of], func(s statement) bool { return !lost(s) }) {
			continue
		}
		if root[of] != nil {
			c.report(root[of])
			continue
		}
		c.report(below[of][0].guard.fault("%q: fragment %q does not fit the field, which has none of %s: include it at the field that has them",
			of.At, of.Name, firstSteps(of.At, below[of])))
	}
}

// reportLostInFragments reports the paths of documents about fragments that no kind has, of those that the catalogue says contain the fragment.
func (c *compiler) reportLostInFragments() {
	for i := range c.fragments {
		d := &c.fragments[i]
		has := map[string]bool{}
		for j, said := range c.statements {
			if placed := &c.docs.Permissions[j]; placed.Fragment != d.Fragment || placed.Source != d.Source {
				continue
			}
			for _, s := range said {
				if !s.guard.entry.Optional {
					has[s.guard.entry.Pointer] = has[s.guard.entry.Pointer] || len(c.lost[s.guard]) < c.matched[j]
				}
			}
		}
		for _, e := range d.Entries {
			if there, isRead := has[e.Pointer]; isRead && !there {
				c.report(&schema.Error{Source: d.Source, Pointer: e.Pointer, Message: fmt.Sprintf("path %q does not exist in fragment %q: name a field of it, by a path that begins there", e.Path, d.Fragment)})
			}
		}
	}
}

func normalPath(s statement) string { return s.path.String() }

// firstSteps returns the fields of a fragment directly below the field that includes it.
func firstSteps(at string, said []statement) string {
	var out []string
	for _, s := range said {
		for i := range s.path {
			if s.path[:i].String() == at {
				if step := s.path[i : i+1].String(); !slices.Contains(out, step) {
					out = append(out, step)
				}
			}
		}
	}
	if len(out) > 3 {
		out = append(out[:3], "…")
	}
	return strings.Join(out, ", ")
}
