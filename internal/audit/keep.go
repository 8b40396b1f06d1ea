package audit

import (
	"fmt"
	"slices"
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// keptBinding is what the audit keeps of a binding.
type keptBinding struct {
	Ref
	Location
	role     Ref
	subjects []subject
	builtIn  bool
}

// subject is a subject of bindings. The namespace is that of a ServiceAccount.
type subject struct{ kind, namespace, name string }

// String returns the subject for messages.
func (s subject) String() string {
	if s.kind == rbacv1.ServiceAccountKind {
		return fmt.Sprintf("ServiceAccount %q", s.namespace+"/"+s.name)
	}
	return fmt.Sprintf("%s %q", s.kind, s.name)
}

// everybody are the groups that stand for every user, or for every ServiceAccount.
func everybody() []string {
	return []string{user.AllAuthenticated, user.AllUnauthenticated, serviceaccount.AllServiceAccountsGroup}
}

func (s subject) isEverybody() bool {
	return s.kind == rbacv1.GroupKind && slices.Contains(everybody(), s.name)
}

// groups returns the subjects that are groups to which the subject always belongs. Those of a user come from its authentication and are not
// known.
func (s subject) groups() []subject {
	var names []string
	switch {
	case s.kind == rbacv1.ServiceAccountKind:
		names = append(serviceaccount.MakeGroupNames(s.namespace), user.AllAuthenticated)
	case s.kind == rbacv1.UserKind && s.name == user.Anonymous:
		names = []string{user.AllUnauthenticated}
	case s.kind == rbacv1.UserKind, s.kind == rbacv1.GroupKind && s.name != user.AllUnauthenticated && s.name != user.AllAuthenticated:
		names = []string{user.AllAuthenticated}
	}
	var out []subject
	for _, name := range names {
		if name != s.name {
			out = append(out, subject{kind: rbacv1.GroupKind, name: name})
		}
	}
	return out
}

// subjectOf returns the subject of a binding in a namespace. A user with the name of a ServiceAccount is the ServiceAccount.
func subjectOf(s *rbacv1.Subject, namespace string) subject {
	out := subject{kind: s.Kind, name: s.Name}
	if s.Kind == rbacv1.ServiceAccountKind {
		out.namespace = s.Namespace
		if out.namespace == "" {
			out.namespace = namespace
		}
	} else if home, name, err := serviceaccount.SplitUsername(s.Name); s.Kind == rbacv1.UserKind && err == nil {
		out = subject{rbacv1.ServiceAccountKind, home, name}
	}
	return out
}

func (s subject) interned() subject {
	return subject{unique.Make(s.kind).Value(), unique.Make(s.namespace).Value(), unique.Make(s.name).Value()}
}

func internedRef(r Ref) Ref {
	return Ref{Kind: unique.Make(r.Kind).Value(), Namespace: unique.Make(r.Namespace).Value(), Name: unique.Make(r.Name).Value()}
}

// keep returns what is kept of a binding. With wanted, of the subjects only these are kept.
func keep(b *Binding, wanted ...map[subject]bool) keptBinding {
	out := keptBinding{Ref: b.Ref, Location: b.Location, role: b.Role, builtIn: b.Labels[bootstrapping] == rbacDefaults}
	for i := range b.Subjects {
		if s := subjectOf(&b.Subjects[i], b.Namespace); len(wanted) == 0 || wanted[0][s] {
			out.subjects = append(out.subjects, s.interned())
		}
	}
	if len(out.subjects) > 0 {
		out.Ref, out.role = internedRef(b.Ref), internedRef(b.Role)
	}
	return out
}

// The label of the roles and bindings that kube-apiserver creates.
const (
	bootstrapping = "kubernetes.io/bootstrapping"
	rbacDefaults  = "rbac-defaults"
)

// role reviews a role, and keeps it if it is about fieldperm.
func (s *Scan) role(r *Role) {
	if r.Aggregation != nil {
		s.selectors = append(s.selectors, selectorsOf(r)...)
	}
	if r.Aggregation == nil {
		c := &reviewer{known: s.Known, incomplete: s.Incomplete || s.Files, files: s.Files, report: s.about}
		c.review(r)
	}
	ofInterest := func(verb string) bool { return verb == rbacv1.VerbAll || isGranular(verb) }
	if !slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool { return slices.ContainsFunc(rule.Verbs, ofInterest) }) {
		return // Most roles. Nothing of them is interned.
	}
	is := keepRole(r)
	if passes := s.wildcards(r, is); is.granular || passes {
		s.roles[is.Ref] = is
	}
}

// keepRole returns what is kept of a role.
func keepRole(r *Role) *keptRole {
	out := &keptRole{Location: r.Location, aggregated: r.Aggregation != nil, builtIn: r.Labels[bootstrapping] == rbacDefaults}
	for i := range r.Rules {
		rule := &r.Rules[i]
		isGranular := slices.ContainsFunc(rule.Verbs, isGranular)
		if isGranular || slices.ContainsFunc(rule.Verbs, isOfInterest) {
			out.rules = append(out.rules, kept(i, rule))
		}
		out.granular = out.granular || isGranular
	}
	if len(out.rules) > 0 {
		out.Ref = internedRef(r.Ref)
	}
	if out.granular && r.Kind == clusterRoleKind {
		out.labels = r.Labels
	}
	return out
}

// isGranular reports whether a verb is the marker or a valid granular verb.
func isGranular(verb string) bool {
	_, is := classify(verb)
	return is == marker || is == granular
}

// isOfInterest reports whether a verb counts beside granular verbs: the generic permission, and get, without which the marker lets in no update.
func isOfInterest(verb string) bool {
	return verb == rbacv1.VerbAll || verb == "create" || verb == "update" || verb == "patch" || verb == "get"
}

// selector is one selector of an aggregated ClusterRole.
type selector struct{ labels.Selector }

func selectorsOf(r *Role) []selector {
	var out []selector
	for i := range r.Aggregation.ClusterRoleSelectors {
		if one, err := metav1.LabelSelectorAsSelector(&r.Aggregation.ClusterRoleSelectors[i]); err == nil {
			out = append(out, selector{one})
		}
	}
	return out
}

// about reports a finding in a role. In an audit of one namespace, one in a ClusterRole waits until it is known whether the namespace uses it.
func (s *Scan) about(f Finding) {
	if s.Namespace != "" && f.Object.Kind == clusterRoleKind {
		s.later[f.Object] = append(s.later[f.Object], f)
		return
	}
	s.Report(f)
}

// subjectsOfGranular returns the subjects of roles with granular verbs, with the groups to which they always belong.
func (s *Scan) subjectsOfGranular() map[subject]bool {
	out := map[subject]bool{}
	for i := range s.bindings {
		if role := s.roles[s.bindings[i].role]; role == nil || !role.granular {
			continue
		}
		for _, of := range s.bindings[i].subjects {
			out[of] = true
			for _, group := range of.groups() {
				out[group] = true
			}
		}
	}
	return out
}
