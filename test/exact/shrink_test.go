package exact

import (
	"fmt"
	"slices"
	"strings"
)

// shrink removes as much as possible from both objects, as long as the pair is judged wrong in the same way.
func (j judges) shrink(p *pair) *pair {
	want := j.judge(p).wrong
	if p.broken != "" {
		return p
	}
	still := func(q *pair) bool {
		got := j.judge(q).wrong
		return got != "" && strings.HasPrefix(got, want[:min(len(want), 12)])
	}
	if q := p.with(p.old, p.new); still(q) {
		p = q
	}
	if q := *p; p.uncovered != nil {
		s := *p.subject
		s.uncovered = nil
		if q.subject = &s; still(&q) {
			p = &q
		}
	}
	for again, budget := true, 1500; again && budget > 0; {
		again = false
		for n := 0; budget > 0; n++ {
			budget--
			q, ok := p.without(n)
			if !ok {
				break
			}
			if q != p && still(q) {
				p, again, n = q, true, n-1
			}
		}
	}
	return p
}

func (p *pair) with(old, new *value) *pair {
	q := &pair{subject: p.subject, old: old, new: new, edits: p.edits, newText: new.compact()}
	if old != nil {
		q.oldText = old.compact()
	}
	return q
}

// without returns the pair with the nth simplification: a path of either object, or of both, removed or shortened.
func (p *pair) without(n int) (*pair, bool) {
	paths := positions(p.new, nil, nil)
	for _, at := range positions(p.old, nil, nil) {
		if !slices.ContainsFunc(paths, func(other []int) bool { return slices.Equal(at, other) }) {
			paths = append(paths, at)
		}
	}
	// Try whole containers first.
	slices.SortStableFunc(paths, func(a, b []int) int { return len(a) - len(b) })
	way := n % 4
	if n /= 4; n >= len(paths) {
		return nil, false
	}
	old, new := p.old.clone(), p.new.clone()
	done := false
	switch way {
	case 0:
		name, ok := nameAt(new, paths[n])
		done = dropAt(new, paths[n])
		if !ok || dropNamed(old, new, paths[n], name) {
			done = true
		}
	case 1:
		done = dropAt(new, paths[n])
	case 2:
		done = dropAt(old, paths[n])
	case 3:
		done = simplify(old, new, paths[n])
	}
	if !done {
		return p, true
	}
	return p.with(old, new), true
}

func positions(v *value, at []int, out [][]int) [][]int {
	if v == nil {
		return out
	}
	for i, m := range v.members {
		next := append(slices.Clone(at), i)
		out = positions(m.value, next, append(out, next))
	}
	for i, item := range v.items {
		next := append(slices.Clone(at), i)
		out = positions(item, next, append(out, next))
	}
	return out
}

func descend(v *value, at []int) *value {
	for _, i := range at {
		switch {
		case v.is(object) && i < len(v.members):
			v = v.members[i].value
		case v.is(list) && i < len(v.items):
			v = v.items[i]
		default:
			return nil
		}
	}
	return v
}

func nameAt(v *value, at []int) (string, bool) {
	up, i := descend(v, at[:len(at)-1]), at[len(at)-1]
	if up.is(object) && i < len(up.members) {
		return up.members[i].name, true
	}
	return "", false
}

func dropAt(v *value, at []int) bool {
	up, i := descend(v, at[:len(at)-1]), at[len(at)-1]
	switch {
	case up.is(object) && i < len(up.members):
		up.members = slices.Delete(up.members, i, i+1)
	case up.is(list) && i < len(up.items):
		up.items = slices.Delete(up.items, i, i+1)
	default:
		return false
	}
	return true
}

// dropNamed removes the value at the same position of the old object. A member must also have the same name.
func dropNamed(old, new *value, at []int, name string) bool {
	up := descend(old, at[:len(at)-1])
	if !up.is(object) {
		return dropAt(old, at)
	}
	before := len(up.members)
	up.unset(name)
	return len(up.members) < before
}

// simplify shortens a scalar on both sides, if it is equal there.
func simplify(old, new *value, at []int) bool {
	was, is := descend(old, at), descend(new, at)
	if !is.is(text) || len(is.text) < 2 {
		return false
	}
	if was.is(text) && was.text == is.text {
		was.text = "a"
	}
	is.text = "a"
	return true
}

// report shows a pair that is judged wrong.
func (j judges) report(p *pair, seed uint64) string {
	small := j.shrink(p)
	v := j.judge(small)
	var verbs []string
	for verb := range small.uncovered {
		verbs = append(verbs, verb.String())
	}
	out := fmt.Sprintf("%s\nseed %d, %s, edits: %s\nuncovered: %q\nold: %s\nnew: %s\nfast:   %s\noracle: %s",
		v.wrong, seed, small.kind.GroupVersionKind, p.operation(), verbs, small.oldText, small.newText, v.fast, v.oracle)
	if small.source != "" {
		out += "\nfrom: " + small.source
	}
	return out
}
