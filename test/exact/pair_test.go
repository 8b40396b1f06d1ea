package exact

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// pair is two objects and the edits that made the second one from the first.
type pair struct {
	*subject
	// old is nil on CREATE.
	old, new *value
	edits    []string
	// oldText and newText are the texts of the two objects.
	oldText, newText []byte
	// broken is the reason why one of the texts is no JSON object.
	broken string
}

// drawPair draws an object and edits it.
func drawPair(d *draw, s *subject) *pair {
	o := &objects{draw: d, subject: s}
	p := &pair{subject: s, old: o.object()}
	if meta := p.old.get("metadata"); meta.is(object) && d.oneIn(3) {
		meta.set("managedFields", o.owners(p.old))
	}
	switch {
	case len(p.old.members) > 0 && d.oneIn(12): // No API server accepts an object without a field.
		p.new, p.old, p.edits = p.old, nil, []string{"create"}
	case d.oneIn(25):
		p.new, p.edits = o.object(), []string{"another object"}
	default:
		p.new = p.old.clone()
		p.edit(o)
	}
	if s.kind.IsBuiltIn() {
		// A null of an API server is an absent field there, and the types of these kinds know no other (TestD8_ANullOfABuiltInKindIsAnAbsentField).
		p.old, p.new = p.old.withoutNulls(), p.new.withoutNulls()
	}
	p.uncovered = d.uncovered(s.kind)
	p.spell(style{draw: d, spaces: pick(d, []int{0, 0, 0, 10, 60}), escapes: pick(d, []int{0, 0, 0, 10, 100})})
	return p
}

func (p *pair) edit(o *objects) {
	all := edits()
	n := 1 + o.IntN(3)
	if o.oneIn(15) {
		n = 0
	}
	for range n {
		o.left = 20
		places := p.spots(p.new, p.root, nil)
		if len(places) == 0 {
			break
		}
		e := pick(o.draw, all)
		at := pick(o.draw, places)
		for range 3 {
			// Every kind has metadata, so that edits below it are frequent enough.
			if inMetadata(p.new, at) {
				at = pick(o.draw, places)
			}
		}
		if e.do(o, places, at) {
			p.edits = append(p.edits, e.name)
		}
	}
	if meta := p.new.get("metadata"); meta.is(object) && (meta.get("managedFields") != nil && !o.oneIn(4) || o.oneIn(20)) {
		for range 1 + o.IntN(2) {
			if o.editOwners(p.old, p.new) {
				p.edits = append(p.edits, "ownership")
			}
		}
	}
	if len(p.edits) == 0 {
		p.edits = []string{"none"}
	}
}

func inMetadata(root *value, s spot) bool {
	meta := root.get("metadata")
	return meta != nil && (s.v == meta || s.up == meta || meta.holds(s.up))
}

func (v *value) holds(other *value) bool {
	if v == other {
		return true
	}
	return slices.ContainsFunc(v.items, func(i *value) bool { return i.holds(other) }) ||
		slices.ContainsFunc(v.members, func(m member) bool { return m.value.holds(other) })
}

// spell writes both texts. Mostly both have the same style, as with one serializer. Sometimes the new one has a style of its own.
func (p *pair) spell(s style) {
	p.oldText, p.newText = nil, p.new.compact()
	if p.old != nil {
		p.oldText = p.old.compact()
	}
	if s.spaces+s.escapes > 0 {
		p.newText = s.write(p.new)
		p.edits = append(p.edits, "respell")
	}
	if s.oneIn(25) {
		p.damage(s.draw)
	}
}

// damage changes bytes of the new object. The result may still be JSON, with another meaning.
func (p *pair) damage(d *draw) {
	p.edits = append(p.edits, "damage")
	for range 1 + d.IntN(2) {
		at := d.IntN(len(p.newText))
		scrap := []byte(pick(d, []string{"", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e1", "\xff", "\x00", "\xed\xa0\x80", `\ud800`, `\u0000`, "null", "\u00a0", " ", "//"}))
		p.newText = slices.Replace(p.newText, at, min(at+d.IntN(3), len(p.newText)), scrap...)
	}
	if d.oneIn(4) {
		p.newText = append(p.newText, pick(d, []string{" ", "{}", "x", "\x00", "\n"})...)
	}
	v, err := parseWhole(p.newText)
	switch {
	case err != nil:
		p.broken = err.Error()
	case v.kind != object:
		p.broken = "no object"
	default:
		p.new = v
	}
}

func (p *pair) operation() string {
	return strings.Join(p.edits, ", ")
}

// uncovered draws the verbs that are barriers for one request, from the verbs of the kind.
func (d *draw) uncovered(k *schema.Kind) schema.VerbSet {
	if !d.oneIn(5) {
		return nil
	}
	var all []verbs.Verb
	k.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			v := p.Base()
			if p.ParameterName() != "" {
				v, _ = v.WithParameter(pick(d, []string{"a", "b", "80", "TCP", "example.com", "true"}))
			}
			all = append(all, v)
		}
	})
	slices.SortFunc(all, func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
	out := schema.VerbSet{}
	for range 1 + d.IntN(3) {
		out[pick(d, all)] = schema.Extent{}
	}
	return out
}
