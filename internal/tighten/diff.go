package tighten

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/printable"
)

// Diffs returns a unified diff for each object that is added or changed, in the order in which they are applied.
func (p *Proposal) Diffs() (string, error) {
	var out strings.Builder
	for _, o := range p.Added() {
		if err := diff(&out, o.Ref, "", o.Object); err != nil {
			return "", err
		}
	}
	for i := range p.Change {
		ch := &p.Change[i]
		before, after := ch.Objects()
		if err := diff(&out, ch.Ref, before, after); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// Named is an object with its name.
type Named struct {
	Ref    Ref
	Object any
}

// Added returns the objects to add: roles first, so that a binding never names a role that does not exist.
func (p *Proposal) Added() []Named {
	var out []Named
	for i := range p.Add.ClusterRoles {
		o := &p.Add.ClusterRoles[i]
		out = append(out, Named{Ref{clusterRoleKind, "", o.Name}, o})
	}
	for i := range p.Add.Roles {
		o := &p.Add.Roles[i]
		out = append(out, Named{Ref{roleKind, o.Namespace, o.Name}, o})
	}
	for i := range p.Add.ClusterRoleBindings {
		o := &p.Add.ClusterRoleBindings[i]
		out = append(out, Named{Ref{clusterRoleBindingKind, "", o.Name}, o})
	}
	for i := range p.Add.RoleBindings {
		o := &p.Add.RoleBindings[i]
		out = append(out, Named{Ref{roleBindingKind, o.Namespace, o.Name}, o})
	}
	return out
}

// Objects returns both states of the object as its own kind, without what only the API server writes.
func (ch *Change) Objects() (before, after any) {
	switch ch.Ref.Kind {
	case roleKind:
		return ch.namespacedRole(plain(ch.Role)), ch.namespacedRole(plain(ch.RoleAfter))
	case clusterRoleKind:
		return plain(ch.Role), plain(ch.RoleAfter)
	case roleBindingKind:
		return ch.namespacedBinding(plainBinding(ch.Binding)), ch.namespacedBinding(plainBinding(ch.BindingAfter))
	default:
		return plainBinding(ch.Binding), plainBinding(ch.BindingAfter)
	}
}

func plain(r *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	out := r.DeepCopy()
	own(&out.ObjectMeta)
	return out
}

func plainBinding(b *rbacv1.ClusterRoleBinding) *rbacv1.ClusterRoleBinding {
	out := b.DeepCopy()
	own(&out.ObjectMeta)
	return out
}

// own leaves of the metadata what users write. What kubectl apply has noted for itself is of the object as it was.
func own(m *metav1.ObjectMeta) {
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	*m = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}
}

func diff(out *strings.Builder, ref Ref, before, after any) error {
	from, to := "(now) "+printable.Text(ref.String()), "(proposed) "+printable.Text(ref.String())
	if before == "" {
		from = "/dev/null"
	}
	a, err := lines(before)
	if err != nil {
		return err
	}
	b, err := lines(after)
	if err != nil {
		return err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: a, B: b, FromFile: from, ToFile: to, Context: 3})
	if err != nil {
		return err
	}
	out.WriteString(text)
	return nil
}

func lines(o any) ([]string, error) {
	if o == "" {
		return nil, nil
	}
	text, err := YAML(o)
	if err != nil {
		return nil, err
	}
	return slices.Collect(strings.Lines(string(text))), nil
}

// YAML returns an object as a user would write it. An object with a character that is not printable is JSON, which is YAML too.
func YAML(o any) ([]byte, error) {
	content, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("proposal: %w", err)
	}
	content = printable.JSON(content)
	text, err := yaml.JSONToYAML(content)
	if err != nil {
		return nil, fmt.Errorf("proposal: %w", err)
	}
	if strings.ContainsFunc(string(text), printable.Hidden) {
		return append(content, '\n'), nil
	}
	// metav1.Time has no empty form in JSON.
	return []byte(strings.ReplaceAll(string(text), "  creationTimestamp: null\n", "")), nil
}
