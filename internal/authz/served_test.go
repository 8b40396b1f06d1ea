package authz

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	peer "github.com/fieldperm/fieldperm/internal/conditions/remote"
	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// freeze is a policy that denies on a condition.
type freeze struct{ authorizer.Authorizer }

func (freeze) ConditionsAwareAuthorize(_ context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if a.GetVerb() != "delete" {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	return authorizer.ConditionsAwareDecisionConditionsMap([]authorizer.Condition{authorizer.GenericCondition{ID: "freeze", Type: "example.com/x", Condition: "x"}}, nil, nil)
}

// frozen decides on its condition: the object is protected.
type frozen struct{ name string }

func (f frozen) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	if f.name == "protected" && verb == "delete" {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, By: "policies", Reason: "a change freeze"}, nil
	}
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}, nil
}

func (frozen) Unmet([]string) []fieldperm.Unmet { return nil }

// TestK3_FieldpermIsAWebhookThatReturnsConditions: its own endpoints answer what it asks, in each dialect.
func TestK3_FieldpermIsAWebhookThatReturnsConditions(t *testing.T) {
	p := newPlace(t)
	p.configure(rbacEntry)
	chain := p.chain(Settings{newRoles: mayAll(t)})
	for _, dialect := range wire.All() {
		h := admission.Handlers{MaxBytes: 1 << 20}
		mux := http.NewServeMux()
		mux.Handle("/authorize/"+string(dialect), h.DialectHandler(&admission.AuthorizeReviewer{
			Allowed: func(string, string, string) bool { return true }, Authorizer: func(s *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer { return chain.ForReview(s) },
			Policies: func() (authorizer.Authorizer, error) { return freeze{}, nil },
		}, dialect))
		mux.Handle("/conditions/"+string(dialect), h.ConditionsHandler(&admission.Reviewer{
			Authorizer: chain.For, Conditional: func(w *admission.Write, _ fieldperm.Authorizer) (admission.Conditions, error) {
				return frozen{w.Request.Name}, nil
			},
		}, dialect))
		server := httptest.NewServer(mux)
		defer server.Close()
		a, err := peer.New(peer.Config{
			Name: "fieldperm", Dialect: dialect, Timeout: 5 * time.Second, OnError: authorizer.DecisionNoOpinion,
			Reviews: &rest.Config{Host: server.URL + "/authorize/" + string(dialect)}, Conditions: &rest.Config{Host: server.URL + "/conditions/" + string(dialect)},
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]authorizer.Decision{"protected": authorizer.DecisionDeny, "web": authorizer.DecisionNoOpinion} {
			decision := a.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "alice", Groups: []string{"team"}}, Verb: "delete", Namespace: "shop", Name: name, APIGroup: "apps", APIVersion: "v1", Resource: "deployments", ResourceRequest: true,
			})
			if decision.IsUnconditional() || wire.FailureDecision(decision) != authorizer.DecisionDeny {
				t.Errorf("%s: the authorization phase: %v, want conditions that may deny", dialect, decision)
				continue
			}
			req := by("alice", "team")
			req.UID, req.Operation, req.Name, req.UserInfo.UID, req.UserInfo.Extra = "1", admissionv1.Delete, name, "", nil
			req.Kind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
			req.OldObject.Raw = []byte(`{}`)
			encoded, err := peer.Encode(req)
			if err != nil {
				t.Fatal(err)
			}
			got, reason, err := a.Evaluate(t.Context(), decision, encoded)
			if got != want || err != nil || want == authorizer.DecisionDeny && !strings.Contains(reason, "a change freeze") {
				t.Errorf("%s: %s: %v %q %v, want %v", dialect, name, got, reason, err, want)
			}
		}
	}
}
