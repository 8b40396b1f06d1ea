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

// Live answers as the RBAC authorizer of the kube-apiserver that it follows, with its reasons: Allow or
// NoOpinion. As there, the rules of a ClusterRole are those that are stored, by the controller if the
// role is aggregated, and neither members of system:masters nor system:authenticated are special: the
// chain sees to the first, authentication to the second.
//
// Until all is read, and once it is too old, every answer is an error: see Ready. What is held is as
// old as what kube-apiserver holds itself, moments behind etcd. The zero Live answers with errors. It is
// safe for concurrent use.
type Live struct {
	index     *index
	informers []*informer
}

var _ authorizer.Authorizer = &Live{}

// NewLive returns a Live that Run fills. The client must be allowed to list and watch the four kinds.
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

// Run follows the API server until the context ends. It is called once.
func (l *Live) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, i := range l.informers {
		all.Go(func() { i.shared.RunWithContext(ctx) })
	}
	all.Wait()
}

// Ready is nil while there are answers: all four kinds have been read, and none has been without a
// watch for longer than 30 s.
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

// Authorize answers Allow or NoOpinion, or else an error that says what to do. An error comes with Deny:
// a chain goes on after a NoOpinion, and whoever is behind must not answer in place of RBAC, which might
// have allowed it.
func (l *Live) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if err := l.Ready(); err != nil {
		return authorizer.DecisionDeny, "", err
	}
	return l.index.authorize(attributes.GetUser(), attributes)
}

// ConditionsAwareAuthorize answers as Authorize does: RBAC has no conditions.
func (l *Live) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(l.Authorize(ctx, attributes))
}

// EvaluateConditions denies: Live never answers with conditions.
func (l *Live) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
