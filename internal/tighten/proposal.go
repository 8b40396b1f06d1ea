package tighten

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Reach says how far granular verbs reach.
type Reach string

const (
	// HeldReach is as far as update and patch reach now.
	HeldReach Reach = "held"
	// Seen is no further than the evidence.
	Seen Reach = "seen"
)

const (
	// SubjectLabel is on every object to add, with the subject's ID as its value. It is for readers: everybody who may create Roles can set it,
	// so that no decision depends on it.
	SubjectLabel = "fieldperm.dev/tighten"
	// autoupdateAnnotation makes kube-apiserver write a default role or binding again when it starts.
	autoupdateAnnotation = "rbac.authorization.kubernetes.io/autoupdate"
	// subjectAnnotation has the subject, for readers.
	subjectAnnotation = "fieldperm.dev/tighten-subject"
	// sourceAnnotation of a copy names the role that it was made from.
	sourceAnnotation = "fieldperm.dev/tighten-source"
)

// Options of a proposal. The zero Options deny: no resource is decided by fieldperm, and nothing new is granted.
type Options struct {
	Namespaces, Names Reach
	// Resources is HeldReach to grant on "*" where the subject holds update or patch on "*" and on nothing more specific. Otherwise verbs are
	// granted on the resources of the evidence.
	Resources Reach
	// Keep are resources on which the subject keeps update and patch, for example the Lease by which it stays the leader while fieldperm is down.
	Keep []Resource
	// Also are verbs that the subject needs and that are not in the evidence. Evidence without any write stays without a proposal.
	Also []Also
	// AllowNew also proposes what was seen and what no update or patch of the subject covers.
	AllowNew bool
	// Decides says whether granular verbs can take the place of update and patch.
	Decides func(r Resource) Decides
	// Undecided are the resources with update or patch for which Decides returns DecidesNot, as far as they are known. A name may be "*". The
	// subject keeps update and patch on them where a rule with "*" grants these.
	Undecided []Resource
	// Barriers are those that update and patch do not pass. Nil: every granular verb may pass one.
	Barriers *Barriers
	// Policies are all ConditionalPolicies. They are not changed.
	Policies []v1alpha1.ConditionalPolicy
	// Groups are those of a user, besides those in the evidence.
	Groups []string
}

// Proposal says which RBAC objects to add, and which to change, so that a subject needs no update and patch.
type Proposal struct {
	Subject Subject
	// Add has the objects to add. Granular roles come before copies, roles before bindings.
	Add rbac.Grants
	// Change has the objects to change afterwards.
	Change []Change
	// Gaps say why the evidence, and so the proposal, is incomplete.
	Gaps []string
	// New are verbs that were seen and that no update or patch of the subject covers, because it has none there or because of a barrier.
	// They are not in Add, unless Options.AllowNew.
	New []string
	// Losses are rights besides update and patch that the changes take away.
	Losses []string
	// Unused are resources on which update or patch is taken away, and on which no verb takes their place.
	Unused []string
	// Pointless are those of Options.Also that the proposal does not have, with the reason.
	Pointless []string
	// Remaining are update and patch that the subject keeps.
	Remaining []string
	// Policies are ConditionalPolicies that decide on writes of the subject where update and patch are taken away.
	Policies []string
	// Notes explain decisions.
	Notes []string

	before, after []Grant
	// guarded are RBAC objects whose writes kube-apiserver may refuse after the changes. Losses says which rights are missing.
	guarded []guard
}

// Change is an object before and after. Exactly one pair is set.
type Change struct {
	Ref Ref
	// Role of a Role or a ClusterRole, Binding of a RoleBinding or a ClusterRoleBinding. A Role of all namespaces is a ClusterRole.
	Role, RoleAfter       *rbacv1.ClusterRole
	Binding, BindingAfter *rbacv1.ClusterRoleBinding
	Why                   string
}

// Propose makes a proposal from the evidence. The objects are all Roles, ClusterRoles and bindings of the cluster.
func Propose(s Subject, objects *rbac.Grants, evidence *Evidence, options Options) (*Proposal, error) {
	if options.Decides == nil {
		options.Decides = func(Resource) Decides { return DecidesNot }
	}
	if decides := options.Decides; len(options.Keep) > 0 {
		options.Decides = func(r Resource) Decides {
			if slices.Contains(options.Keep, r) {
				return DecidesNot
			}
			return decides(r)
		}
	}
	if evidence.Empty() {
		return nil, errors.New("the evidence has no write of the subject: observe it for longer, or give an audit log of a time in which it wrote")
	}
	c := newCluster(objects)
	groups := slices.Concat(options.Groups, slices.Sorted(maps.Keys(evidence.Groups)))
	p := &Proposal{Subject: s, before: c.held(s, groups)}
	p.gaps(evidence, options.Decides)
	p.also(evidence, &options)

	granting := &granting{subject: s, options: &options, evidence: evidence, grants: p.before, verbs: map[place]map[string]bool{}}
	if err := granting.collect(); err != nil {
		return nil, err
	}
	granting.keep(p.granularName())
	p.New = granting.missing
	p.addGranular(granting.rules())
	p.change(c, &options, granting)
	if err := p.unique(); err != nil {
		return nil, err
	}
	p.policies(&options, granting, groups)
	if evidence.Denied > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d observed writes were refused by fieldperm: they are no evidence", evidence.Denied))
	}
	p.after = p.applied(c, groups)
	p.remaining()
	p.guards()
	return p, nil
}

// gaps lists what the evidence does not show.
func (p *Proposal) gaps(evidence *Evidence, decides func(Resource) Decides) {
	p.Gaps = slices.Clone(evidence.Gaps)
	gap := func(format string, args ...any) { p.Gaps = append(p.Gaps, fmt.Sprintf(format, args...)) }
	for _, r := range evidence.sorted() {
		w := evidence.Resources[r]
		if decides(r) == DecidesUnserved {
			gap("%s: the evidence has writes, and the API server does not serve it: nothing is proposed for it", r)
			continue
		}
		if w.Unobserved > 0 && decides(r) == DecidesYes {
			gap("%s: %d writes were not observed: their events have no annotation of fieldperm", r, w.Unobserved)
		}
		if w.Cut > 0 {
			gap("%s: annotations left out %d verbs, because they were too long: use a PermissionObservation", r, w.Cut)
		}
		if w.None > 0 {
			gap("%s: %d writes have a change that no granular verb covers: they need update or patch", r, w.None)
		}
	}
	if evidence.Omitted > 0 {
		gap("%d uses of verbs are omitted, because the evidence has too many: narrow it", evidence.Omitted)
	}
}

func (p *Proposal) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{SubjectLabel: p.Subject.ID()},
		Annotations: map[string]string{subjectAnnotation: p.Subject.String()},
	}
}

// granularName is the name of the roles with granular verbs.
func (p *Proposal) granularName() string { return p.Subject.objectName("granular-") }

// addGranular adds one role and one binding for each scope.
func (p *Proposal) addGranular(rules map[string][]rbacv1.PolicyRule) {
	name := p.granularName()
	for _, scope := range slices.Sorted(maps.Keys(rules)) {
		p.addRole(p.meta(scope, name), rules[scope])
		p.bind(p.meta(scope, name), Ref{kindIn(scope), scope, name})
	}
}

func kindIn(scope string) string {
	if scope == "" {
		return clusterRoleKind
	}
	return roleKind
}

func (p *Proposal) addRole(meta metav1.ObjectMeta, rules []rbacv1.PolicyRule) {
	if meta.Namespace == "" {
		p.Add.ClusterRoles = append(p.Add.ClusterRoles, rbacv1.ClusterRole{TypeMeta: typeMeta(clusterRoleKind), ObjectMeta: meta, Rules: rules})
		return
	}
	p.Add.Roles = append(p.Add.Roles, rbacv1.Role{TypeMeta: typeMeta(roleKind), ObjectMeta: meta, Rules: rules})
}

func (p *Proposal) bind(meta metav1.ObjectMeta, role Ref) {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}
	subjects := []rbacv1.Subject{p.Subject.RBAC()}
	if meta.Namespace == "" {
		p.Add.ClusterRoleBindings = append(p.Add.ClusterRoleBindings, rbacv1.ClusterRoleBinding{TypeMeta: typeMeta(clusterRoleBindingKind), ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	p.Add.RoleBindings = append(p.Add.RoleBindings, rbacv1.RoleBinding{TypeMeta: typeMeta(roleBindingKind), ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// unique returns an error if two objects to add have one name, because the second would overwrite the first.
func (p *Proposal) unique() error {
	seen := map[Ref]bool{}
	for _, named := range p.Added() {
		if seen[named.Ref] {
			return fmt.Errorf("%s is twice in the proposal: rename one of the roles or bindings that it is a copy of", named.Ref)
		}
		seen[named.Ref] = true
	}
	return nil
}

// Complete reports whether the evidence has no gap.
func (p *Proposal) Complete() bool { return len(p.Gaps) == 0 && len(p.New) == 0 }

// remaining lists what the subject may still update through groups after the changes.
func (p *Proposal) remaining() {
	for i := range p.after {
		grant := &p.after[i]
		if grant.Group == "" {
			continue
		}
		for _, rule := range grant.writes() {
			names := withoutFinalizers(rule.Resources)
			if len(names) == 0 {
				continue
			}
			p.Remaining = append(p.Remaining, fmt.Sprintf("update or patch on %s through group %q, by %s: take the subject out of the group, or change %s", strings.Join(names, ", "), grant.Group, grant.Binding, grant.Role))
		}
	}
	slices.Sort(p.Remaining)
	p.Remaining = slices.Compact(p.Remaining)
}

func withoutFinalizers(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasSuffix(name, finalizersSuffix) })
}
