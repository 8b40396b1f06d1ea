package plugin

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/internal/policies"
)

// policiesOf are policies as internal/access reads them.
type policiesOf struct {
	ctx context.Context
	set *policies.Set
}

// About returns the policies about a verb of a user.
func (p *policiesOf) About(a authorizer.Attributes) []access.Policy {
	var out []access.Policy
	for _, d := range p.set.Describe(p.ctx, a) {
		out = append(out, access.Policy{Name: d.Policy, Effect: access.Effect(d.Effect), Condition: d.Condition, Failed: d.Err != nil})
	}
	return out
}

// Subjects returns the subjects of the policies that may allow something.
func (p *policiesOf) Subjects() []rbacv1.Subject {
	users, groups := p.set.Subjects()
	var out []rbacv1.Subject
	for _, name := range users {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	for _, name := range groups {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return out
}

// Verbs returns all verbs of policies.
func (p *policiesOf) Verbs() []string { return p.set.Verbs() }
