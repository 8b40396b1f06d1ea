package tighten

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// change takes update and patch from the roles that bindings of the subject itself name. A role that others share is left as it is: the
// subject gets a copy without update and patch, and is taken out of the binding.
func (p *Proposal) change(c *cluster, options *Options, granting *granting) {
	evidence, stripping := granting.evidence, &stripping{decides: options.Decides, asked: options.Keep, staying: slices.Concat(options.Keep, options.Undecided), impersonates: impersonates(p.before)}
	for _, r := range evidence.sorted() {
		if options.Decides(r) == DecidesNot && len(evidence.Resources[r].Verbs) > 0 {
			stripping.staying = append(stripping.staying, r)
		}
	}
	byRole := map[Ref][]*Grant{}
	for i := range p.before {
		if grant := &p.before[i]; grant.Group == "" {
			byRole[grant.Role] = append(byRole[grant.Role], grant)
		}
	}
	for _, role := range slices.SortedFunc(maps.Keys(byRole), compareRefs) {
		grants := byRole[role]
		rules, changed := stripping.rules(role, grants[0].Rules)
		if !changed {
			continue
		}
		p.unused(granting, options, grants[0])
		if why := c.sharing(role, p.Subject); why != "" {
			p.copy(c, role, grants, rules, why)
			continue
		}
		p.inPlace(c, role, rules)
	}
	p.Losses = stripping.losses
	p.Notes = append(p.Notes, stripping.kept...)
	p.Notes = append(p.Notes, "the verbs create, delete and deletecollection are left as they are")
}

// unused lists the resources that a role names for update and patch, of which no write was seen, and on which no earlier proposal granted a
// verb.
func (p *Proposal) unused(granting *granting, options *Options, grant *Grant) {
	for _, rule := range grant.writes() {
		for _, group := range rule.APIGroups {
			for _, name := range withoutFinalizers(rule.Resources) {
				one := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}}
				seen := slices.ContainsFunc(granting.evidence.sorted(), func(r Resource) bool { return matches(&one, r) })
				if options.Decides(Resource{group, name}) == DecidesNot {
					continue // It keeps update and patch.
				}
				for at := range granting.verbs {
					seen = seen || matches(&one, at.resource)
				}
				if text := (Resource{group, name}).String(); !seen && !slices.Contains(p.Unused, text) {
					p.Unused = append(p.Unused, text)
				}
			}
		}
	}
}

func (p *Proposal) inPlace(c *cluster, ref Ref, rules []rbacv1.PolicyRule) {
	before := c.clusterRole(ref)
	after := before.DeepCopy()
	after.Rules = rules
	why := "only the subject is bound to it"
	if p.pin(ref, &after.ObjectMeta) {
		why += fmt.Sprintf("; its annotation %s becomes \"false\", so that kube-apiserver does not write it again", autoupdateAnnotation)
	}
	p.Change = append(p.Change, Change{Ref: ref, Role: before, RoleAfter: after, Why: why})
}

// pin keeps kube-apiserver from writing a default object again. It reports whether that was necessary.
func (p *Proposal) pin(ref Ref, meta *metav1.ObjectMeta) bool {
	if meta.Annotations[autoupdateAnnotation] != "true" {
		return false
	}
	meta.Annotations[autoupdateAnnotation] = "false"
	p.Notes = append(p.Notes, fmt.Sprintf("%s is one of Kubernetes' defaults: with %s \"false\" a new version of Kubernetes does not update it", ref, autoupdateAnnotation))
	return true
}

// copy gives the subject a role of its own in place of a shared one.
func (p *Proposal) copy(c *cluster, role Ref, grants []*Grant, rules []rbacv1.PolicyRule, why string) {
	to := Ref{role.Kind, role.Namespace, copyName(role.Name, p.Subject.shortID())}
	if len(rules) > 0 {
		meta := p.meta(to.Namespace, to.Name)
		meta.Annotations[sourceAnnotation] = role.String()
		p.addRole(meta, rules)
		p.Notes = append(p.Notes, fmt.Sprintf("%s is left as it is: %s. The subject gets the copy %s without update and patch, which does not follow later changes", role, why, to))
	}
	for _, grant := range grants {
		if len(rules) > 0 {
			p.bind(p.meta(grant.Scope, copyName(grant.Binding.Name, p.Subject.shortID())), to)
		}
		before := c.clusterRoleBinding(grant.Binding)
		after := before.DeepCopy()
		after.Subjects = slices.DeleteFunc(after.Subjects, func(named rbacv1.Subject) bool { return p.Subject.names(&named, grant.Binding.Namespace) })
		text := "the subject is taken out of it: " + why
		if len(after.Subjects) == 0 {
			text += ". It stays, without subjects, so that it can be restored"
		}
		p.pin(grant.Binding, &after.ObjectMeta)
		p.Change = append(p.Change, Change{Ref: grant.Binding, Binding: before, BindingAfter: after, Why: text})
	}
}

// copyName returns the name of a copy. No two names have copies with one name: a name that is cut is longer than others, and has a hash of the
// whole.
func copyName(name, suffix string) string {
	if len(name) > nameLength {
		sum := sha256.Sum256([]byte(name))
		name = strings.ToValidUTF8(name[:nameLength], "") + "-" + hex.EncodeToString(sum[:])
	}
	return name + "-" + suffix
}

// clusterRole returns a copy of a role of either kind.
func (c *cluster) clusterRole(ref Ref) *rbacv1.ClusterRole {
	if r := c.roles[ref]; r != nil {
		return (&rbacv1.ClusterRole{TypeMeta: typeMeta(roleKind), ObjectMeta: r.ObjectMeta, Rules: r.Rules}).DeepCopy()
	}
	out := c.cluster[ref].DeepCopy()
	out.TypeMeta = typeMeta(clusterRoleKind)
	return out
}

// clusterRoleBinding returns a copy of a binding of either kind.
func (c *cluster) clusterRoleBinding(ref Ref) *rbacv1.ClusterRoleBinding {
	for i := range c.objects.ClusterRoleBindings {
		if b := &c.objects.ClusterRoleBindings[i]; ref.Kind == clusterRoleBindingKind && b.Name == ref.Name {
			out := b.DeepCopy()
			out.TypeMeta = typeMeta(clusterRoleBindingKind)
			return out
		}
	}
	for i := range c.objects.RoleBindings {
		if b := &c.objects.RoleBindings[i]; ref.Kind == roleBindingKind && b.Namespace == ref.Namespace && b.Name == ref.Name {
			return (&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta(roleBindingKind), ObjectMeta: b.ObjectMeta, Subjects: b.Subjects, RoleRef: b.RoleRef}).DeepCopy()
		}
	}
	return &rbacv1.ClusterRoleBinding{}
}

// namespacedRole returns a role of a namespace with the content of a ClusterRole.
func (ch *Change) namespacedRole(r *rbacv1.ClusterRole) *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: typeMeta(roleKind), ObjectMeta: r.ObjectMeta, Rules: r.Rules}
}

func (ch *Change) namespacedBinding(b *rbacv1.ClusterRoleBinding) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{TypeMeta: typeMeta(roleBindingKind), ObjectMeta: b.ObjectMeta, Subjects: b.Subjects, RoleRef: b.RoleRef}
}

// applied returns the grants of the subject after the proposal.
func (p *Proposal) applied(c *cluster, groups []string) []Grant {
	changed := map[Ref]bool{}
	for i := range p.Change {
		changed[p.Change[i].Ref] = true
	}
	all := without(c.objects, func(ref Ref) bool { return changed[ref] })
	for i := range p.Change {
		switch ch := &p.Change[i]; ch.Ref.Kind {
		case roleKind:
			all.Roles = append(all.Roles, *ch.namespacedRole(ch.RoleAfter))
		case clusterRoleKind:
			all.ClusterRoles = append(all.ClusterRoles, *ch.RoleAfter)
		case roleBindingKind:
			all.RoleBindings = append(all.RoleBindings, *ch.namespacedBinding(ch.BindingAfter))
		case clusterRoleBindingKind:
			all.ClusterRoleBindings = append(all.ClusterRoleBindings, *ch.BindingAfter)
		}
	}
	// Added objects take the place of objects of the same name.
	add := newCluster(&p.Add)
	all.Roles = slices.DeleteFunc(all.Roles, func(r rbacv1.Role) bool { return add.roles[Ref{roleKind, r.Namespace, r.Name}] != nil })
	all.ClusterRoles = slices.DeleteFunc(all.ClusterRoles, func(r rbacv1.ClusterRole) bool { return add.cluster[Ref{clusterRoleKind, "", r.Name}] != nil })
	all.Roles = append(all.Roles, p.Add.Roles...)
	all.ClusterRoles = append(all.ClusterRoles, p.Add.ClusterRoles...)
	all.RoleBindings = append(all.RoleBindings, p.Add.RoleBindings...)
	all.ClusterRoleBindings = append(all.ClusterRoleBindings, p.Add.ClusterRoleBindings...)
	return Held(all, p.Subject, groups)
}
