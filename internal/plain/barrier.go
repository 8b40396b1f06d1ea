package plain

// barriersWithin charges the barriers strictly inside something that is charged as a whole: the
// verbs of the whole do not count for what a barrier guards (D2, D4). Lists are compared by position,
// because what is atomic has no keys to go by.
func (d *differ) barriersWithin(s scope, old, new *value) {
	if d.err != nil || equal(old, new) {
		return
	}
	if m := s.node.Map(); m != nil && (isObject(old) || isObject(new)) {
		if ambiguous(old) || ambiguous(new) {
			d.eachMember(s, old, new)
			return
		}
		for _, name := range unionKeys(old, new) {
			was, is := old.get(name), new.get(name)
			if !equal(was, is) {
				d.key(s, name, was, is, d.guarded(s))
			}
		}
	}
	if s.node.List() != nil && (isList(old) || isList(new)) {
		d.pairwise(s, listItems(old), listItems(new))
	}
}

// guarded charges the node if it is a barrier of its own, and goes on below it.
func (d *differ) guarded(above scope) func(scope, *value, *value) {
	return func(s scope, old, new *value) {
		if s.barrier > above.barrier {
			d.charge(s, operation(old, new))
		}
		d.barriersWithin(s, old, new)
	}
}

// pairwise looks for barriers in items by position. Items whose keys differ are different items.
func (d *differ) pairwise(s scope, old, new []*value) {
	for i := range max(len(old), len(new)) {
		var was, is *value
		if i < len(old) {
			was = old[i]
		}
		if i < len(new) {
			is = new[i]
		}
		if equal(was, is) {
			continue
		}
		if was != nil && is != nil && !sameKeys(s, was, is) {
			d.positioned(s, i, was, nil)
			d.positioned(s, i, nil, is)
			continue
		}
		d.positioned(s, i, was, is)
	}
}

func (d *differ) positioned(s scope, i int, old, new *value) {
	v := new
	if v == nil {
		v = old
	}
	_, emitted := itemStep(s, v)
	d.child(s, s.node.List().Item(), s.path.Index(i), emitted, old, new, d.guarded(s))
}

func sameKeys(s scope, a, b *value) bool {
	for _, k := range s.node.List().Keys() {
		if !equal(keyValue(k, a), keyValue(k, b)) {
			return false
		}
	}
	return true
}

// eachMember looks for barriers where a name occurs twice: every occurrence counts, on both sides.
func (d *differ) eachMember(s scope, old, new *value) {
	if isObject(old) {
		for _, m := range old.members {
			d.key(s, m.name, m.value, nil, d.guarded(s))
		}
	}
	if isObject(new) {
		for _, m := range new.members {
			d.key(s, m.name, nil, m.value, d.guarded(s))
		}
	}
}

func isObject(v *value) bool { return v != nil && v.kind == kindObject }

func isList(v *value) bool { return v != nil && v.kind == kindList }

func ambiguous(v *value) bool { return isObject(v) && v.duplicate }

func listItems(v *value) []*value {
	if !isList(v) {
		return nil
	}
	return v.items
}
