package server

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/internal/policies"
)

// phaseOne returns the authorizer of the authorization phase: policies, then webhooks that return conditions.
func (a *authorization) phaseOne() (authorizer.Authorizer, error) {
	set, err := a.schemas.authorizer()
	if err != nil {
		return nil, err
	}
	webhooks := a.chain.Conditional()
	if len(webhooks) == 0 {
		return set, nil
	}
	return union.New(append([]union.NamedAuthorizer{{AuthorizerName: policies.Name, Authorizer: set}}, webhooks...)...)
}
