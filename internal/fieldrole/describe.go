package fieldrole

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Surplus is what a verb covers besides the fields of its rule: a path with what is below it, as far as Text says.
type Surplus struct {
	Verb string
	Path fieldpath.Pattern
	Text string
}

// describe says what the verbs of a rule cover besides the fields, in every version that clients may send, and which powers they have.
func (r *Rule) describe(tree *fieldtree.Kind) {
	for _, verb := range r.Verbs[1:] {
		c := &coverage{rule: r, verb: verb}
		c.base, c.value, c.ofOne = strings.Cut(strings.TrimSuffix(verb, ")"), "(")
		c.in(tree, "")
		if r.Subresource == "" || tree.GroupKind() == r.Target.GroupKind() {
			for _, gvk := range r.Target.others {
				if other, err := fieldtree.Of(r.Target.kinds.compiled, gvk, r.Target.ref(gvk, r.Subresource)); err == nil {
					c.in(other, " in version "+gvk.Version)
				}
			}
		}
		r.Also = append(r.Also, c.also...)
		for _, p := range schema.AllPowers() {
			if slices.Contains(c.powers, p) {
				r.Powers = append(r.Powers, fmt.Sprintf("%s: %s. %s", verb, p, p.Sentence()))
			}
		}
	}
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

// in adds the paths at which the verb is in one version.
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
		if err != nil || c.isOfOther(at.Path) {
			continue
		}
		takesPrefix := false
		for _, v := range at.Node().Verbs {
			if v.Base.String() == c.base {
				c.powers = append(c.powers, v.Powers...)
				takesPrefix = takesPrefix || v.TakesPrefix
			}
		}
		text := c.besides(at.Path, takesPrefix)
		if text == "" || slices.Contains(c.seen, text) {
			continue
		}
		c.seen = append(c.seen, text)
		c.also = append(c.also, Surplus{c.verb, at.Path, text + where})
	}
}

// isOfOther reports whether a path ends at a key that gives the verb another parameter.
func (c *coverage) isOfOther(at fieldpath.Pattern) bool {
	if !c.ofOne || len(at) == 0 || at[len(at)-1].Any || !strings.HasPrefix(at[len(at)-1].String(), "[") {
		return false
	}
	key, _, _ := strings.Cut(at[len(at)-1].Name, "/")
	return key != c.value && at[len(at)-1].Name != c.value
}

// besides says what the verb covers at a path besides the fields, "" for nothing.
func (c *coverage) besides(at fieldpath.Pattern, takesPrefix bool) string {
	if len(at) == 0 {
		return "every field that no barrier guards"
	}
	out := at.String()
	switch {
	case c.ofOne && takesPrefix:
		out = fmt.Sprintf("every key of %s with the prefix %s/", at[:len(at)-1], c.value)
	case !c.ofOne && at[len(at)-1].Any:
		out = "every entry of " + at[:len(at)-1].String()
	}
	for i := range c.rule.Fields {
		f := &c.rule.Fields[i]
		switch asked := f.place.Path; {
		case !slices.Contains(f.Verbs, c.verb) && !slices.Equal(asked, at):
		case slices.Equal(asked, at), c.ofOne && !takesPrefix && at.Covers(asked), strings.HasSuffix(f.Path, `/*"]`) && at.Covers(asked):
			return ""
		case len(asked) > len(at) && at.Covers(asked[:len(at)]) && !c.ofOne:
			out = "all of " + at.String()
		}
	}
	return out
}
