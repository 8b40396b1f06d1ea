package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// These are the kinds of subjects.
const (
	userKind  = rbacv1.UserKind
	groupKind = rbacv1.GroupKind
)

// faultKey is a verb of a rule of a role with a fault. The fault is reported once for all subjects and resources.
type faultKey struct {
	rule string
	role Ref
	at   int
	verb string
}

// fault gathers the subjects and resources of a fault.
type fault struct {
	role      *keptRole
	path      string
	level     Level
	subjects  []string
	resources []Resource
	unless    string
	by        string
}

// finish reports what the rules about subjects and barriers find.
func (s *Scan) finish() {
	j := newJoint(s)
	for _, of := range j.subjects {
		for i := range j.rights[of] {
			r := &j.rights[of][i]
			if r.role.granular && (s.Namespace == "" || r.scope == s.Namespace) {
				j.pairs(of, r)
				j.unread(of, r)
				j.outOfScope(r)
			}
		}
	}
	if s.complete() && s.Namespace == "" {
		j.unbound()
	}
	j.gathered()
	report := func(f Finding) { j.found = append(j.found, f) }
	j.powers(report)
	s.defaultRoles(report)
	s.defaultBindings(report)
	if s.Namespace == "" {
		j.holders(report)
	}
	for i := range s.bindings {
		if b := &s.bindings[i]; b.Namespace != "" {
			j.found = append(j.found, s.later[b.role]...)
			delete(s.later, b.role)
		}
	}
	finding.Sort(j.found)
	for _, f := range j.found {
		s.Report(f)
	}
}

// pairs applies the rules about the marker and granular verbs to a right of a subject.
func (j *joint) pairs(of subject, r *right) {
	held := j.held(of)
	r.role.eachVerb(func(rule *keptRule, path, text string, v verbs.Verb, is about) {
		key := faultKey{role: r.role.Ref, at: rule.index, verb: text}
		switch is {
		case granular:
			for _, t := range j.useful(v, rule, r.scope) {
				j.verb(of, r, key, path, v, t, held)
			}
		case marker:
			for _, t := range j.opened(rule, r.scope) {
				j.markerAlone(of, r, key, path, t, held)
			}
		case foreign, invalid, misspelt:
		}
	})
}

// eachVerb calls f for each verb that the role grants by its name: not those of a rule with "*".
func (r *keptRole) eachVerb(f func(rule *keptRule, path, text string, v verbs.Verb, is about)) {
	for k := range r.rules {
		rule := &r.rules[k]
		if wild(rule) {
			continue
		}
		for at, text := range rule.verbs {
			v, is := classify(text)
			f(rule, verbPath(rule.index, at), text, v, is)
		}
	}
}

// outOfScope applies cluster-scoped-resource-in-role to ClusterRoles: a RoleBinding grants nothing of a rule that is only about resources
// without a namespace.
func (j *joint) outOfScope(r *right) {
	for k := range r.role.rules {
		rule := &r.role.rules[k]
		targets := rule.targets()
		if r.at > 0 || r.scope == "" || r.role.Kind != clusterRoleKind || len(targets) == 0 || !slices.ContainsFunc(rule.verbs, isGranular) || slices.ContainsFunc(targets, inNamespace) {
			continue
		}
		j.found = append(j.found, r.binding.at(Finding{
			Rule: clusterInRole, Level: Error, Object: r.binding.Ref, Path: "roleRef", About: fmt.Sprintf("%s %d", r.role, rule.index),
			Message: fmt.Sprintf("%s grants verbs on %s, which have no namespace, so that a RoleBinding grants none of them", r.role, listOf(targets)),
			Cure:    "use a ClusterRoleBinding",
		}))
	}
}

// isClosed reports whether the marker opens no write of a resource. Verbs of barriers count there all the same.
func isClosed(r Resource) bool {
	resource, subresource := r.split()
	return endpoint.BuiltIn(r.Group, resource) && !endpoint.TakesMarker(r.Group, resource, subresource)
}

// opened returns the targets of a rule that the marker opens, or may open.
func (j *joint) opened(r *keptRule, scope string) []target {
	var out []target
	for _, at := range r.targets() {
		resource, subresource := at.split()
		isUnknown := !at.wildcard() && j.Known.groups[at.Group] && !j.Known.serves(at.Group, resource, subresource)
		if !isClosed(at) && !isUnknown && (scope == "" || inNamespace(at)) {
			out = append(out, target{at, scope, r.names})
		}
	}
	return out
}

// verb applies granular-verb-without-marker and generic-permission-makes-verb-idle.
func (j *joint) verb(of subject, r *right, key faultKey, path string, v verbs.Verb, t target, held []right) {
	if covered(held, t, wild) == full || covered(held, t, generic) == full {
		// Without the marker the verb is meant for a barrier. A barrier of a set for all resources is at granular:*.
		forBarrier := covered(held, t, withMarker) == none
		if covered(held, t, wild) == full || !j.barred(v, t) && !(forBarrier && v == verbs.All()) {
			level := Warning
			if forBarrier {
				level = Note
			}
			key.rule = idleVerb
			j.add(key, r, path, level, of, t.Resource).by = j.grantedBy(held, t)
		}
		return
	}
	m := covered(held, t, withMarker)
	if m == full || !j.complete() || isClosed(t.Resource) || j.barred(v, t) && covered(held, t, creates) == full {
		return // Creations, too, need the verb of a barrier and no marker beside the generic permission.
	}
	key.rule = verbWithoutMarker
	level, unless := Error, ""
	enough := func(rule *keptRule) bool { return withMarker(rule) || generic(rule) }
	other := j.others(of, t, enough)
	switch {
	case j.ofMember(of, t, enough):
		return // A member has the marker, and this verb with it.
	case m == part:
		level, unless = Note, "it holds the marker for a part of these"
	case other != nil:
		level, unless = Warning, fmt.Sprintf("unless it has the rights of %s as well", other)
	case j.lacking[of] && j.Files:
		level, unless = Warning, "unless a role grants it that is not among the files"
	case of.kind != rbacv1.ServiceAccountKind && j.barred(v, t):
		level, unless = Note, "unless it holds update by another group"
	case of.namespace == metav1.NamespaceSystem && j.barred(v, t):
		level, unless = Note, "unless another version of Kubernetes gives update to this controller"
	}
	f := j.add(key, r, path, level, of, t.Resource)
	f.unless = cmp.Or(f.unless, unless)
}

// markerAlone applies marker-without-granular-verb, and the rule about idle verbs to the marker.
func (j *joint) markerAlone(of subject, r *right, key faultKey, path string, t target, held []right) {
	if covered(held, t, withVerb) != none || !j.complete() {
		return
	}
	if covered(held, t, generic) == full {
		key.rule = idleVerb
		j.add(key, r, path, Warning, of, t.Resource).by = j.grantedBy(held, t)
		return
	}
	key.rule = markerWithoutVerb
	level, unless := Warning, ""
	other := j.others(of, t, withVerb)
	switch {
	case j.ofMember(of, t, withVerb):
		return
	case other != nil:
		level, unless = Note, fmt.Sprintf("unless it has the rights of %s as well", other)
	}
	f := j.add(key, r, path, level, of, t.Resource)
	f.unless = cmp.Or(f.unless, unless)
}

// grantedBy names the role by which a subject holds the generic permission on a target.
func (j *joint) grantedBy(held []right, t target) string {
	for i := range held {
		for k := range held[i].role.rules {
			if rule := &held[i].role.rules[k]; rule.covers(t.Resource) && generic(rule) && (held[i].scope == "" || held[i].scope == t.scope) {
				return held[i].role.String()
			}
		}
	}
	return ""
}

// add records a fault of a verb. Its level is the gravest of all subjects and resources.
func (j *joint) add(key faultKey, r *right, path string, level Level, of subject, at Resource) *fault {
	f := j.faults[key]
	if f == nil {
		f = &fault{role: r.role, path: path, level: level}
		j.faults[key] = f
	}
	if level.AtLeast(f.level) {
		f.level = level
	}
	if name := of.String(); !slices.Contains(f.subjects, name) {
		f.subjects = append(f.subjects, name)
	}
	if !slices.Contains(f.resources, at) {
		f.resources = append(f.resources, at)
	}
	return f
}

// unread applies marker-without-get.
func (j *joint) unread(of subject, r *right) {
	held := j.held(of)
	for k := range r.role.rules {
		rule := &r.role.rules[k]
		at := slices.Index(rule.verbs, verbs.Marker)
		if at < 0 || wild(rule) || !j.complete() {
			continue
		}
		for _, t := range j.opened(rule, r.scope) {
			got := covered(held, t, gets)
			if got == full || covered(held, t, generic) == full || j.ofMember(of, t, gets) {
				continue
			}
			level, unless := Warning, ""
			if other := j.others(of, t, gets); got == part {
				level, unless = Note, "it holds get for a part of these"
			} else if other != nil {
				level, unless = Note, fmt.Sprintf("unless it has the rights of %s as well", other)
			}
			f := j.add(faultKey{markerWithoutGet, r.role.Ref, rule.index, verbs.Marker}, r, verbPath(rule.index, at), level, of, t.Resource)
			f.unless = cmp.Or(f.unless, unless)
		}
	}
}

// unbound judges roles with granular verbs that no binding names, each by itself.
func (j *joint) unbound() {
	bound := map[Ref]bool{}
	for i := range j.bindings {
		bound[j.bindings[i].role] = true
	}
	for _, role := range j.roles {
		if !role.granular || bound[role.Ref] || role.aggregated || j.isAggregated(role) {
			continue
		}
		alone := []right{{role: role, scope: role.Namespace}}
		for k := range role.rules {
			rule := &role.rules[k]
			for at, text := range rule.verbs {
				v, is := classify(text)
				key := faultKey{role: role.Ref, at: rule.index, verb: text}
				switch {
				case wild(rule):
				case is == granular:
					for _, t := range j.useful(v, rule, role.Namespace) {
						if covered(alone, t, withMarker) == none && covered(alone, t, generic) == none && !j.barred(v, t) && !isClosed(t.Resource) {
							key.rule = verbWithoutMarker
							j.alone(key, role, verbPath(rule.index, at), t)
						}
					}
				case is == marker:
					for _, t := range j.opened(rule, role.Namespace) {
						if covered(alone, t, withVerb) == none {
							key.rule = markerWithoutVerb
							j.alone(key, role, verbPath(rule.index, at), t)
						}
					}
				}
			}
		}
	}
}

// isAggregated reports whether an aggregated ClusterRole has the rules of the role.
func (j *joint) isAggregated(role *keptRole) bool {
	return slices.ContainsFunc(j.selectors, func(s selector) bool { return role.labels != nil && s.Matches(labelsOf(role)) })
}

func (j *joint) alone(key faultKey, role *keptRole, path string, t target) {
	f := j.faults[key]
	if f == nil {
		f = &fault{role: role, path: path, level: Note}
		j.faults[key] = f
	}
	f.resources = append(f.resources, t.Resource)
}

// gathered makes findings of the faults.
func (j *joint) gathered() {
	for key, f := range j.faults {
		holders := "the role is not bound, and by itself it"
		if len(f.subjects) > 0 {
			holders = listTexts(f.subjects)
		}
		on := listOf(f.resources)
		message, cure := "", ""
		switch key.rule {
		case verbWithoutMarker:
			message = fmt.Sprintf("%s lacks the marker on %s, without which verb %q has no effect", holders, on, key.verb)
			cure = fmt.Sprintf("add verb %q to the rule, or remove %q", verbs.Marker, key.verb)
		case markerWithoutVerb:
			message = fmt.Sprintf("%s holds the marker on %s and no granular verb", holders, on)
			cure = "add granular verbs, or remove the marker"
			if len(f.subjects) == 0 {
				message = fmt.Sprintf("the role is not bound, and by itself it has the marker on %s and no granular verb", on)
			}
		case idleVerb:
			message = fmt.Sprintf("verb %q on %s is idle for %s, because %s grants the generic permission", key.verb, on, holders, f.by)
			cure = "take update and patch away, for example with kubectl fieldperm tighten, or remove the verb"
		case markerWithoutGet:
			message = fmt.Sprintf("%s holds the marker on %s and not get, without which the marker lets in no update and no patch", holders, on)
			cure = "add get, unless these only create objects"
		}
		if f.unless != "" {
			message += ", " + f.unless
		}
		j.found = append(j.found, f.role.at(Finding{Rule: key.rule, Level: f.level, Object: key.role, Path: f.path, Message: message, Cure: cure, About: key.verb + " " + on}))
	}
}

// listTexts returns texts with commas between them, of many the first.
func listTexts(texts []string) string {
	const most = 3
	out := strings.Join(texts[:min(len(texts), most)], ", ")
	if more := len(texts) - most; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
