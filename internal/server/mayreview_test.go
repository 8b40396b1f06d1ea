package server

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/verbs"
)

// The permission to ask about others is checked like the generic permission: fieldperm's own Allow does not count, and an error is
// not a denial.
func TestA4_P4_ReviewsOfOthersNeedAGenericCheck(t *testing.T) {
	down := errors.New("webhook: is down")
	for name, c := range map[string]struct {
		decision authorizer.Decision
		reason   string
		err      error
		want     bool
	}{
		"allowed":            {decision: authorizer.DecisionAllow, want: true},
		"denied":             {decision: authorizer.DecisionDeny},
		"no opinion":         {decision: authorizer.DecisionNoOpinion},
		"our own Allow":      {decision: authorizer.DecisionAllow, reason: verbs.Prefix + " the user holds it"},
		"fails":              {decision: authorizer.DecisionDeny, err: down},
		"fails, passed over": {decision: authorizer.DecisionNoOpinion, err: down},
	} {
		t.Run(name, func(t *testing.T) {
			var asked authorizer.Attributes
			s := &authorization{chain: authz.Fixed("one", authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				asked = a
				return c.decision, c.reason, c.err
			}))}
			got, err := s.mayReview(t.Context(), &user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}})
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%t, %v; want %t, %v", got, err, c.want, c.err)
			}
			extra := asked.GetUser().GetExtra()
			if asked.GetVerb() != "create" || asked.GetAPIGroup() != "authorization.k8s.io" || asked.GetResource() != "subjectaccessreviews" || len(extra[admission.GenericOnlyKey]) == 0 || len(extra["k"]) == 0 {
				t.Errorf("asked %q on %q with extra %v", asked.GetVerb(), asked.GetResource(), extra)
			}
		})
	}
}
