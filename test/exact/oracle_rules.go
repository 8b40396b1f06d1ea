package exact

import (
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// interpret turns the result of Compare into charges.
func (o *oracle) interpret(root place, c *typed.Comparison) error {
	for said, set := range map[string]*fieldpath.Set{added: c.Added, removed: c.Removed, modified: c.Modified} {
		var err error
		set.Iterate(func(path fieldpath.Path) {
			if err == nil {
				err = o.difference(root, path, said)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// difference follows one path of Compare's result, and adds the charges that the rules require.
func (o *oracle) difference(p place, path fieldpath.Path, said string) error {
	for i, e := range path {
		if e.FieldName != nil {
			old, new := p.forms()
			p = o.member(p, *e.FieldName, memberOf(p.old, old, *e.FieldName), memberOf(p.new, new, *e.FieldName))
			if o.free(p) {
				return nil
			}
			continue
		}
		old, new, err := o.itemsOf(p, e)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		case len(old) > 1 || len(new) > 1:
			// D5: the old and new items cannot be matched. The list is charged once.
			if !o.lists[p.id] {
				o.lists[p.id] = true
				// If the other side is not a list, the list has disappeared or appeared.
				o.charge(p, operationOf(listOf(p.old), listOf(p.new)))
			}
			if key := p.id + " " + e.String(); !o.lists[key] {
				o.lists[key] = true
				o.guardedItems(p, old, new)
			}
			return nil
		case len(old)+len(new) == 1:
			// D2: the item is charged as a whole, and the result of Compare for its inside is ignored.
			if i == len(path)-1 {
				p = o.item(p, first(append(new, old...)), first(old), first(new))
				o.charge(p, operationOf(p.old, p.new))
				o.guarded(p)
			}
			return nil
		default:
			p = o.item(p, new[0], old[0], new[0])
		}
	}
	return o.valueDiffers(p, said)
}

func listOf(v *value) *value {
	if v.is(list) {
		return v
	}
	return nil
}

// memberOf returns a member of a value. A value that is compared as a leaf has no members.
func memberOf(v *value, f form, name string) *value {
	if f != members {
		return nil
	}
	return v.get(name)
}

func (o *oracle) valueDiffers(p place, said string) error {
	oldForm, newForm := p.forms()
	if want := operationOf(p.old, p.new); want != said {
		return fmt.Errorf("%s: Compare says %s, it is %s", p.shown(), said, want)
	}
	switch {
	case oldForm <= leaf && newForm <= leaf:
		o.leafCharge(p)
	case oldForm == absent || newForm == absent || oldForm == newForm:
		// D1: the leaves below are charged. D5: a list without keys is treated as a leaf.
		if o.unkeyed(p) {
			o.leafCharge(p)
		}
	default:
		// One value is a leaf or has no keys, and the other one is not: the one disappears and the other one appears.
		for _, half := range []place{p.half(p.old, nil), p.half(nil, p.new)} {
			if f, g := half.forms(); f <= leaf && g <= leaf || o.unkeyed(half) {
				o.leafCharge(half)
			}
		}
	}
	return nil
}

// unkeyed reports whether a keyed list is to be charged as a whole.
func (o *oracle) unkeyed(p place) bool {
	if old, new := p.forms(); old != keyed && new != keyed {
		return false
	}
	_, _, was := o.byKey(p.atom.List, p.old)
	_, _, is := o.byKey(p.atom.List, p.new)
	return !was || !is
}

// leafCharge charges a value that is compared as a whole, and the guarded places inside it (D4). A scalar that is a parameter gives two
// charges: the old value disappears and the new one appears, each with its own verb.
func (o *oracle) leafCharge(p place) {
	for _, half := range o.halves(p) {
		o.charge(half, operationOf(half.old, half.new))
		o.guarded(half)
	}
}

func (o *oracle) halves(p place) []place {
	if p.node.Emits() == "" || !p.old.isScalar() || !p.new.isScalar() {
		return []place{p}
	}
	return []place{p.emitting(p.old).half(p.old, nil), p.emitting(p.new).half(nil, p.new)}
}

// itemsOf returns the items of both sides with the keys of a path element.
func (o *oracle) itemsOf(p place, e fieldpath.PathElement) (old, new []*value, err error) {
	id, err := o.idOf(p, e)
	if err != nil {
		return nil, nil, err
	}
	was, _, wasKeyed := o.byKey(p.atom.List, p.old)
	is, _, isKeyed := o.byKey(p.atom.List, p.new)
	if !wasKeyed || !isKeyed || len(was[id])+len(is[id]) == 0 {
		return nil, nil, fmt.Errorf("oracle: Compare found an item %s that is not there", e)
	}
	return was[id], is[id], nil
}

// idOf is the identity that a path element names, with the original numbers in place of tokens.
func (o *oracle) idOf(p place, e fieldpath.PathElement) (string, error) {
	switch {
	case p.atom.List == nil:
		return "", fmt.Errorf("oracle: Compare found an item %s where no list fits", e)
	case e.Value != nil:
		return o.shownText(*e.Value), nil
	case e.Key != nil:
		var parts []string
		for _, k := range p.atom.List.Keys {
			part := k + "="
			for _, f := range *e.Key {
				if f.Name == k {
					part += o.shownText(f.Value)
				}
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ";"), nil
	}
	return "", fmt.Errorf("oracle: Compare names an item by %s", e)
}

// shownText is the canonical text of a value that was passed to Compare.
func (o *oracle) shownText(v smdvalue.Value) string {
	switch {
	case v.IsInt():
		if literal, ok := o.tokens.back[v.AsInt()]; ok {
			return numberValue(literal).canonical()
		}
		return numberValue(numberText(v.AsInt())).canonical()
	case v.IsFloat():
		return numberValue(fmt.Sprintf("%g", v.AsFloat())).canonical()
	case v.IsBool():
		return boolValue(v.AsBool()).canonical()
	}
	if token, ok := strings.CutPrefix(v.AsString(), tokenPrefix); ok {
		return token
	}
	return textValue(v.AsString()).canonical()
}

// appeared charges the parts of a new object that would have no charge. C5 leaves a part free that is its declared default, also where that has
// defaults in it, and one that the API server wrote as a whole. Any other part did appear, as a leaf.
func (o *oracle) appeared(root place) {
	if o.create {
		o.appearedBelow(root)
	}
}

// why is the reason for which a part has no charge of its own.
type why int

const (
	charged why = iota
	byServer
	byDefault
)

// appearedBelow charges the parts at and below the place, and returns why the place is free.
func (o *oracle) appearedBelow(p place) why {
	if p.path != "" && o.free(p) {
		if p.node.Role() == "" && o.isDefault(p) && !(p.node.Written() != nil && o.caused(p.node.Written(), p)) {
			return byDefault
		}
		return byServer
	}
	if _, f := p.forms(); f != members {
		return charged
	}
	found := map[why]bool{}
	for _, name := range p.new.names() {
		found[o.appearedBelow(o.member(p, name, nil, p.new.get(name)))] = true
	}
	switch {
	case found[charged], p.path == "":
	case found[byServer] && !found[byDefault]:
		return byServer
	case found[byDefault] && !found[byServer] && string(p.node.Default()) == "{}":
		return byDefault
	default:
		o.charge(p, added)
	}
	return charged
}
