package authz

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// callTimeout bounds one question to the API server, retries included. It is below the 10 s that an
// admission webhook has by default, so that a hanging authorizer yields an answer that says so.
const callTimeout = 8 * time.Second

// Config is what an authorizer that asks the SubjectAccessReview API needs.
type Config struct {
	// Client should not be held to client-go's default rate, or reviews queue behind it.
	Client authorizationclient.AuthorizationV1Interface
	// AllowTTL and DenyTTL are how long answers are kept.
	AllowTTL, DenyTTL time.Duration
	// Observer is told of every check; nil for nobody.
	Observer Observer
}

// New returns an authorizer that asks the SubjectAccessReview API. Answers are kept for a while; the
// same question asked at the same time goes out once (P8). An error of the API is an error here,
// never a denial (P4).
func (c Config) New() (authorizer.Authorizer, error) {
	// As DelegatingAuthorizerConfig does, which has no place for metrics of one's own.
	delegating, err := webhook.NewFromInterface(c.Client, c.AllowTTL, c.DenyTTL,
		// Short steps: a request of a user waits for this. They sum to under a second.
		wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4},
		authorizer.DecisionNoOpinion, newRoundTrips(), authorizationcel.NewDefaultCompiler())
	if err != nil {
		return nil, fmt.Errorf("subject access reviews: %w", err)
	}
	return newShared(delegating, callTimeout, c.Observer), nil
}

// New is Config.New for those whom nobody observes.
func New(client authorizationclient.AuthorizationV1Interface, allowTTL, denyTTL time.Duration) (authorizer.Authorizer, error) {
	return Config{Client: client, AllowTTL: allowTTL, DenyTTL: denyTTL}.New()
}
