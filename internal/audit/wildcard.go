package audit

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// wildcards applies the rule wildcard-satisfies-barrier to a role, and reports whether the role passes a barrier by "*". A role of Kubernetes
// itself is counted.
func (s *Scan) wildcards(r *Role, is *keptRole) bool {
	passes := false
	for i := range r.Rules {
		rule := &r.Rules[i]
		at := slices.Index(rule.Verbs, rbacv1.VerbAll)
		if at < 0 {
			continue
		}
		one := keptRule{groups: rule.APIGroups, resources: rule.Resources}
		behind := s.Known.behind(&one, r.Namespace != "")
		if len(behind) == 0 {
			continue
		}
		passes = true
		switch {
		case is.aggregated:
		case is.builtIn && isKubernetes(r.Ref) && !s.All:
			if !slices.Contains(s.defaults, is) {
				s.defaults = append(s.defaults, is)
			}
		default:
			s.about(r.at(Finding{
				Rule: wildcardBarrier, Level: Warning, Object: r.Ref, Path: verbPath(i, at), About: strings.Join(rule.Resources, ","),
				Message: fmt.Sprintf("verb \"*\" on %s passes %s", strings.Join(rule.Resources, ", "), barriersOf(behind)),
				Cure:    "name the verbs that the role needs",
			}))
		}
	}
	return passes
}

// isKubernetes reports whether a ClusterRole or a binding has a name of those that kube-apiserver creates. The label alone is not enough:
// users can set it. The names that begin with system: are reserved.
func isKubernetes(r Ref) bool {
	return (r.Kind == clusterRoleKind || r.Kind == clusterRoleBindingKind) && (r.Name == "cluster-admin" || strings.HasPrefix(r.Name, "system:"))
}

// isOwn reports whether a subject of a binding is one of Kubernetes itself: system:masters, or by a binding that kube-apiserver creates a
// component of the control plane. A binding that only says so has no effect for other subjects.
func (b *keptBinding) isOwn(of subject) bool {
	if of.kind == rbacv1.GroupKind && of.name == user.SystemPrivilegedGroup {
		return true
	}
	isComponent := strings.HasPrefix(of.name, "system:") && of.kind != rbacv1.ServiceAccountKind || of.kind == rbacv1.ServiceAccountKind && of.namespace == "kube-system"
	return b.builtIn && isKubernetes(b.Ref) && isComponent && !of.isEverybody()
}

// barriersOf describes barriers: of many the first.
func barriersOf(behind []*Barrier) string {
	var out []string
	for _, b := range behind {
		text := fmt.Sprintf("%s of %s", b.Verb, listOf(b.Resources))
		if !b.BuiltIn {
			text += fmt.Sprintf(" (%s)", b.Object)
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	const most = 3
	text := "the barrier " + strings.Join(out[:min(len(out), most)], ", ")
	if len(out) > most {
		text += fmt.Sprintf(" and %d more", len(out)-most)
	}
	return text
}

// defaultRoles reports the roles of Kubernetes with wildcards in one note, and their bindings to subjects other than Kubernetes' own.
func (s *Scan) defaultRoles(report func(Finding)) {
	if len(s.defaults) == 0 || s.Namespace != "" {
		return
	}
	var names []string
	for _, r := range s.defaults {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	report(s.roles[Ref{Kind: clusterRoleKind, Name: names[0]}].at(Finding{
		Rule: wildcardBarrier, Level: Note, Object: Ref{Kind: clusterRoleKind, Name: names[0]}, About: "defaults",
		Message: fmt.Sprintf("%s of Kubernetes itself with the verb \"*\" on resources with barriers: %s", count(len(names), "role"), strings.Join(names, ", ")),
		Cure:    "do nothing if only administrators hold them, and list them with --all",
	}))
}

// defaultBindings reports further bindings of the roles of Kubernetes.
func (s *Scan) defaultBindings(report func(Finding)) {
	for i := range s.bindings {
		b := &s.bindings[i]
		if !slices.Contains(s.defaults, s.roles[b.role]) || s.Namespace != "" && b.Namespace != s.Namespace {
			continue
		}
		for j, of := range b.subjects {
			if b.isOwn(of) {
				continue
			}
			report(b.at(Finding{
				Rule: wildcardBarrier, Level: Warning, Object: b.Ref, Path: fmt.Sprintf("subjects[%d]", j), About: of.String(),
				Message: fmt.Sprintf("%s holds %s, whose verb \"*\" passes every barrier of its resources", of, b.role),
				Cure:    "bind a role that names its verbs, if the subject is to be stopped by barriers",
			}))
		}
	}
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
