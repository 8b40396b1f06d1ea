package audit

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/fieldperm/fieldperm/verbs"
)

// right is a role that a subject holds by a binding.
type right struct {
	of    subject
	role  *keptRole
	scope string // the namespace, "" for all
	// binding has the place of the subject in it.
	binding *keptBinding
	at      int
}

// joint judges what each subject holds in total.
type joint struct {
	*Scan
	rights   map[subject][]right
	subjects []subject
	// lacking are subjects with a binding of a role that was not read.
	lacking map[subject]bool
	faults  map[faultKey]*fault
	found   []Finding
}

func newJoint(s *Scan) *joint {
	j := &joint{Scan: s, rights: map[subject][]right{}, lacking: map[subject]bool{}, faults: map[faultKey]*fault{}}
	for i := range s.bindings {
		b := &s.bindings[i]
		role := s.roles[b.role]
		for at, of := range b.subjects {
			if role == nil {
				j.lacking[of] = true
				continue
			}
			if j.rights[of] == nil {
				j.subjects = append(j.subjects, of)
			}
			j.rights[of] = append(j.rights[of], right{of, role, b.Namespace, b, at})
		}
	}
	slices.SortFunc(j.subjects, func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return j
}

// held returns the rights of a subject, with those of the groups to which it always belongs.
func (j *joint) held(of subject) []right {
	out := slices.Clone(j.rights[of])
	for _, group := range of.groups() {
		out = append(out, j.rights[group]...)
	}
	return out
}

// target is what a rule grants a verb on: a resource, which may have wildcards, in a scope and for names, none of which means all.
type target struct {
	Resource
	scope string
	names []string
}

// extent says how much of a target rights cover.
type extent int

const (
	none extent = iota
	part
	full
)

// covered returns how much of a target rights cover by rules that a function accepts.
func covered(rights []right, t target, accepts func(*keptRule) bool) extent {
	out := none
	names := map[string]bool{}
	for i := range rights {
		r := &rights[i]
		if r.scope != "" && t.scope != "" && r.scope != t.scope {
			continue
		}
		for k := range r.role.rules {
			rule := &r.role.rules[k]
			if !rule.meets(t.Resource) || !accepts(rule) {
				continue
			}
			out = max(out, part)
			if r.scope != "" && r.scope != t.scope || !rule.covers(t.Resource) {
				continue
			}
			if len(rule.names) == 0 {
				return full
			}
			for _, name := range rule.names {
				names[name] = true
			}
		}
	}
	if out == none {
		return none
	}
	within := func(name string) bool { return names[name] }
	switch {
	case len(t.names) == 0:
		return part
	case !slices.ContainsFunc(t.names, func(name string) bool { return !names[name] }):
		return full
	case slices.ContainsFunc(t.names, within) || len(names) == 0:
		return part
	}
	return none
}

// generic reports whether a rule grants the generic permission of an update.
func generic(r *keptRule) bool { return r.has("update") || r.has("patch") }

// creates reports whether a rule grants the generic permission of a creation.
func creates(r *keptRule) bool { return r.has("create") }

// withMarker reports whether a rule grants the marker.
func withMarker(r *keptRule) bool { return r.has(verbs.Marker) }

// wild reports whether a rule grants every verb.
func wild(r *keptRule) bool { return slices.Contains(r.verbs, "*") }

// gets reports whether a rule grants get.
func gets(r *keptRule) bool { return r.has("get") }

// withVerb reports whether a rule grants a granular verb.
func withVerb(r *keptRule) bool {
	return wild(r) || slices.ContainsFunc(r.verbs, func(text string) bool {
		_, is := classify(text)
		return is == granular
	})
}

// ofMember reports whether a subject that surely belongs to a group holds a right on a target. Then the group's own rights are not alone.
func (j *joint) ofMember(group subject, t target, is func(*keptRule) bool) bool {
	return group.kind == groupKind && slices.ContainsFunc(j.subjects, func(of subject) bool {
		return slices.Contains(of.groups(), group) && covered(j.rights[of], t, is) != none
	})
}

// others returns a subject that a member or a user may also be, and that holds a right on a target, nil for none. A user may belong to any
// group; members of a group may hold anything. Of ServiceAccounts all groups are known.
func (j *joint) others(of subject, t target, is func(*keptRule) bool) *subject {
	if of.kind == groupKind && (of.name == serviceaccount.AllServiceAccountsGroup || strings.HasPrefix(of.name, serviceaccount.ServiceAccountGroupPrefix)) {
		return nil
	}
	own := append(of.groups(), of)
	for i := range j.subjects {
		other := j.subjects[i]
		if slices.Contains(own, other) || of.kind == userKind && other.kind != groupKind || of.kind != userKind && of.kind != groupKind {
			continue
		}
		if covered(j.rights[other], t, is) != none {
			return &other
		}
	}
	return nil
}

// barred reports whether a verb is at or below a barrier on a target, or may be.
func (j *joint) barred(v verbs.Verb, t target) bool {
	if t.wildcard() {
		one := keptRule{groups: []string{t.Group}, resources: []string{t.Name}}
		return len(j.Known.behind(&one, false)) > 0
	}
	w := j.Known.of(t.Resource)
	return w == nil || w.verbs[v.Name()] == nil || w.verbs[v.Name()].barred
}

// useful returns the targets of a rule on which a verb has an effect, or may have one. The other rules report those on which it has none.
func (j *joint) useful(v verbs.Verb, r *keptRule, scope string) []target {
	var out []target
	for _, at := range r.targets() {
		if scope != "" && !inNamespace(at) {
			continue
		}
		if !at.wildcard() {
			resource, subresource := at.split()
			if w := j.Known.of(at); w != nil {
				u := w.verbs[v.Name()]
				if u == nil || !j.Known.effective(at, u) {
					continue
				}
				if _, takes := u.takes(v); !takes {
					continue
				}
			} else if j.Known.groups[at.Group] && !j.Known.serves(at.Group, resource, subresource) {
				continue
			}
		}
		out = append(out, target{at, scope, r.names})
	}
	return out
}
