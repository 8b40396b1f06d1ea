package authz

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// callTimeout bounds one question to the API server, retries included. It is below the 10 s that an
// admission webhook has by default, so that a hanging authorizer yields an answer that says so.
const callTimeout = 8 * time.Second

// New returns an authorizer that asks the SubjectAccessReview API. Answers are kept for allowTTL and
// denyTTL; the same question asked at the same time goes out once (P8). An error of the API is an
// error here, never a denial (P4).
//
// The client should not be held to client-go's default rate, or reviews queue behind it.
func New(client authorizationclient.AuthorizationV1Interface, allowTTL, denyTTL time.Duration) (authorizer.Authorizer, error) {
	delegating, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client,
		AllowCacheTTL:             allowTTL,
		DenyCacheTTL:              denyTTL,
		// Short steps: a request of a user waits for this. They sum to under a second.
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4},
	}.New()
	if err != nil {
		return nil, fmt.Errorf("subject access reviews: %w", err)
	}
	return Shared(delegating, callTimeout), nil
}
