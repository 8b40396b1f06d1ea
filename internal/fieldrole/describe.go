package fieldrole

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Surplus is what a verb covers besides the fields of its rule: a path with what is below it, as far as Text says.
type Surplus struct {
	Verb string
	Path fieldpath.Pattern
	Text string

	region *region
	where  string
}

// describe says what the verbs of a rule cover besides the fields, in every version that clients may send, and which powers they have.
func (r *Rule) describe(tree *fieldtree.Kind) {
	for _, verb := range r.Verbs[1:] {
		c := &coverage{rule: r, verb: verb}
		c.base, c.value, c.ofOne = parts(verb)
		c.in(tree, "")
		if r.Subresource == "" || tree.GroupKind() == r.Target.GroupKind() {
			for _, gvk := range r.Target.others {
				if other, err := fieldtree.Of(r.Target.kinds.compiled, gvk, r.Target.ref(gvk, r.Subresource)); err == nil {
					c.in(other, " in version "+gvk.Version)
				}
			}
		}
		r.Also = append(r.Also, widest(c.also)...)
		for _, p := range schema.AllPowers() {
			if slices.Contains(c.powers, p) {
				r.Powers = append(r.Powers, fmt.Sprintf("%s: %s. %s", verb, p, p.Sentence()))
			}
		}
	}
}

// parts returns a verb without its parameter, and the value that the parameter stands for.
func parts(verb string) (base, value string, ofOne bool) {
	v, err := verbs.Parse(verb)
	if err != nil {
		return verb, "", false
	}
	value, ofOne = v.Parameter()
	return v.WithoutParameter().String(), value, ofOne
}

// coverage collects what one verb covers besides the fields of its rule.
type coverage struct {
	rule *Rule
	verb string
	// base is the verb without its parameter, value the parameter.
	base, value string
	ofOne       bool
	powers      []schema.Power
	also        []Surplus
	seen        []string
}

// in adds the places at which the verb is in one version.
func (c *coverage) in(tree *fieldtree.Kind, where string) {
	var paths []string
	for text, at := range tree.Verbs() {
		if base, _, _ := strings.Cut(text, "("); base == c.base {
			paths = append(paths, at...)
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		at, err := tree.Find(path)
		if err != nil {
			continue
		}
		for _, v := range at.Node().Verbs {
			if v.Base.String() != c.base || c.ofOne && v.Parameter == "" {
				continue // A verb with a parameter covers nothing where the verb takes none.
			}
			regions := covered(at, v, c.value, c.ofOne)
			if len(regions) > 0 {
				c.powers = append(c.powers, v.Powers...)
			}
			for _, r := range regions {
				if text := c.besides(r); text != "" && !slices.Contains(c.seen, text) {
					c.seen = append(c.seen, text)
					c.also = append(c.also, Surplus{c.verb, at.Path, text + where, r, where})
				}
			}
		}
	}
}

// widest leaves out what is a part of another surplus of the same verb and version.
func widest(all []Surplus) []Surplus {
	var out []Surplus
	for i := range all {
		s := &all[i]
		if !slices.ContainsFunc(all, func(o Surplus) bool {
			return o.where == s.where && len(o.region.steps) == len(s.region.steps) && o.region.contains(s.region) && !s.region.contains(o.region)
		}) {
			out = append(out, *s)
		}
	}
	return out
}

// besides says what the verb covers in a region besides the fields, "" for nothing. It says more rather than less: a region that is not certainly
// a part of a field counts as more.
func (c *coverage) besides(r *region) string {
	if len(r.steps) == 0 {
		return r.String()
	}
	out := r.String()
	for i := range c.rule.Fields {
		f := &c.rule.Fields[i]
		isOf := slices.Contains(f.Verbs, c.verb)
		if f.unplaced {
			continue
		}
		switch asked := askedFor(f); {
		case asked.contains(r) && (isOf || len(asked.steps) == len(r.steps)):
			return ""
		case isOf && len(asked.steps) > len(r.steps) && r.contains(asked):
			out = "all of " + r.path()
		}
	}
	return out
}
