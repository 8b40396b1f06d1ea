//go:build integration

package rbac

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// BenchmarkSubjectAccessReview asks the question of BenchmarkRBAC: of a real kube-apiserver on this machine, and of a Live that
// follows it.
func BenchmarkSubjectAccessReview(b *testing.B) {
	p := newPair(b)
	g := busy(2000)
	var namespaces, objects []func(context.Context) error
	for i := range 10 {
		namespaces = append(namespaces, func(ctx context.Context) error {
			_, err := p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ns-%d", i)}}, metav1.CreateOptions{})
			return err
		})
	}
	p.do(b, namespaces...)
	for _, object := range g.objects() {
		objects = append(objects, p.create(object))
	}
	p.do(b, objects...)
	p.settle(b)
	b.Run("bindings=2000/live", func(b *testing.B) { benchmarkAuthorizer(b, p.live) })
	b.Run("bindings=2000/review", func(b *testing.B) {
		benchmarkAuthorizer(b, reviewer{p})
	})
}

// reviewer is an authorizer that asks the API server.
type reviewer struct{ *pair }

func (r reviewer) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	return r.ask(ctx, a.(authorizer.AttributesRecord))
}

func (r reviewer) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

func (r reviewer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
