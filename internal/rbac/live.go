package rbac

import (
	"context"
	"errors"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Live decides like the RBAC authorizer of the kube-apiserver that it follows, with the same reasons: Allow or NoOpinion. As in
// kube-apiserver, the rules of a ClusterRole are the stored ones; the aggregation controller stores those of an aggregated role.
// Members of system:masters and of system:authenticated are not special here: the chain handles the first, authentication the
// second.
//
// Authorize returns an error until all objects have been read, and when the state is too old: see Ready. The state is as old as
// that of kube-apiserver itself, moments behind etcd. The zero Live returns errors only. Live is safe for concurrent use.
type Live struct {
	index     *index
	informers []*informer
}

var _ authorizer.Authorizer = &Live{}

// NewLive returns a Live without objects; Run reads them. The client needs list and watch on the four kinds.
func NewLive(client kubernetes.Interface) (*Live, error) {
	return newLive(client, clock.RealClock{})
}

func newLive(client kubernetes.Interface, clock clock.WithTicker) (*Live, error) {
	api := client.RbacV1()
	roles, err1 := newInformer(client, "roles", api.Roles(metav1.NamespaceAll), &rbacv1.Role{}, cache.Indexers{}, clock)
	clusterRoles, err2 := newInformer(client, "clusterroles", api.ClusterRoles(), &rbacv1.ClusterRole{}, cache.Indexers{}, clock)
	roleBindings, err3 := newInformer(client, "rolebindings", api.RoleBindings(metav1.NamespaceAll), &rbacv1.RoleBinding{}, subjectIndexers(), clock)
	clusterRoleBindings, err4 := newInformer(client, "clusterrolebindings", api.ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{}, subjectIndexers(), clock)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return &Live{
		index: &index{
			roles: roles.shared.GetIndexer(), clusterRoles: clusterRoles.shared.GetIndexer(),
			roleBindings: roleBindings.shared.GetIndexer(), clusterRoleBindings: clusterRoleBindings.shared.GetIndexer(),
		},
		informers: []*informer{roles, clusterRoles, roleBindings, clusterRoleBindings},
	}, nil
}

// Run follows the API server until the context ends. Call it once.
func (l *Live) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range l.informers {
		all.Go(func() { i.shared.RunWithContext(ctx) })
	}
	all.Wait()
}

// Ready returns nil if Live can decide: all four kinds have been read, and none has been without a watch for more than 30 s.
func (l *Live) Ready() error {
	if len(l.informers) == 0 {
		return errors.New("RBAC: follows no API server: make it with NewLive")
	}
	for _, i := range l.informers {
		if err := i.current(); err != nil {
			return err
		}
	}
	return nil
}

// Authorize returns Allow or NoOpinion, or an error with a cure. An error comes with Deny: a chain goes on after NoOpinion, and a
// later authorizer must not decide in place of RBAC, which might have allowed the request.
func (l *Live) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if err := l.Ready(); err != nil {
		return authorizer.DecisionDeny, "", err
	}
	return l.index.authorize(attributes.GetUser(), attributes)
}

// ConditionsAwareAuthorize returns the same as Authorize: RBAC has no conditions.
func (l *Live) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(l.Authorize(ctx, attributes))
}

// EvaluateConditions denies, because Live never returns conditions.
func (l *Live) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
