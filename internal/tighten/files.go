package tighten

import (
	"bytes"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Files are the objects of a proposal for kubectl, as users write them.
type Files struct {
	// Add has what is added, in an order in which it can be made.
	Add []any
	// Remove has the roles and bindings without update and patch. If an object was read from a cluster, it has the resource version that was
	// read: it is the whole object, so that it would give back what others have taken from it since.
	Remove []any
	// Undo has the roles and bindings as they are now. They have no resource version, because Remove changes it.
	Undo []any
}

// Files returns the objects of a proposal.
func (p *Proposal) Files() *Files {
	out := &Files{}
	for _, added := range p.Added() {
		out.Add = append(out.Add, added.Object)
	}
	for i := range p.Change {
		ch := &p.Change[i]
		before, after := ch.Objects()
		if o, ok := after.(metav1.Object); ok {
			o.SetResourceVersion(ch.resourceVersion())
		}
		out.Remove, out.Undo = append(out.Remove, after), append(out.Undo, before)
	}
	return out
}

func (ch *Change) resourceVersion() string {
	if ch.Role != nil {
		return ch.Role.ResourceVersion
	}
	return ch.Binding.ResourceVersion
}

// Documents returns objects as the documents of a file of YAML.
func Documents(objects []any) ([]byte, error) {
	var out [][]byte
	for _, object := range objects {
		text, err := YAML(object)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return bytes.Join(out, []byte("---\n")), nil
}

// Restores returns what objects of an earlier Files.Undo give back and the changes of this proposal would not: those that have lost update
// and patch since, or that this proposal does not change.
func (p *Proposal) Restores(earlier *rbac.Grants) []Ref {
	c, changes := newCluster(earlier), map[Ref]*Change{}
	for i := range p.Change {
		changes[p.Change[i].Ref] = &p.Change[i]
	}
	var out []Ref
	role := func(ref Ref, rules []rbacv1.PolicyRule) {
		if ch := changes[ref]; ch != nil {
			if ok, _ := validation.Covers(ch.Role.Rules, rules); ok {
				return
			}
		}
		out = append(out, ref)
	}
	for ref, r := range c.roles {
		role(ref, r.Rules)
	}
	for ref, r := range c.cluster {
		role(ref, r.Rules)
	}
	c.bindings(func(b boundRole) {
		ch := changes[b.binding]
		if ch == nil || slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool { return !slices.Contains(ch.Binding.Subjects, s) }) {
			out = append(out, b.binding)
		}
	})
	slices.SortFunc(out, compareRefs)
	return out
}

// Cure says how an aggregated ClusterRole is kept from taking in the roles of a proposal.
func (a *Aggregation) Cure() string {
	return fmt.Sprintf("add {key: %s, operator: DoesNotExist} to matchExpressions of its clusterRoleSelectors", SubjectLabel)
}
