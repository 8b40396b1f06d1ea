//go:build integration

package rbac

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// inFlight is the number of concurrent requests.
const inFlight = 16

// pair is a real API server, and a Live that follows it, behind the authorizers that precede RBAC in kube-apiserver.
type pair struct {
	cluster *cluster.Cluster
	client  *kubernetes.Clientset
	live    *Live
	chain   authorizer.Authorizer
	clock   *clocktesting.FakeClock
	marks   int
}

func newPair(t testing.TB) *pair {
	t.Helper()
	if _, err := cluster.Assets(); err != nil {
		t.Skipf("there is no control plane to compare with: %v", err)
	}
	c, err := cluster.Start(context.Background(), cluster.Config{Dir: t.TempDir()}) // The chain is Node, RBAC.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := c.User("rbac-test", user.SystemPrivilegedGroup)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(admin.Config)
	config.QPS = -1
	p := &pair{cluster: c, clock: clocktesting.NewFakeClock(time.Now())}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if p.live, err = newLive(p.client, p.clock); err != nil {
		t.Fatal(err)
	}
	p.chain, err = union.New(
		union.NamedAuthorizer{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: p.live},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.live.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	await(t, "ready", func() bool { return p.live.Ready() == nil })
	for _, name := range someNamespaces {
		p.do(t, func(ctx context.Context) error {
			_, err := p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		})
	}
	return p
}

// do runs requests in parallel and waits for all.
func (p *pair) do(t testing.TB, requests ...func(context.Context) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(inFlight)
	for _, request := range requests {
		group.Go(func() error { return request(ctx) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) create(object runtime.Object) func(context.Context) error {
	api := p.client.RbacV1()
	return func(ctx context.Context) (err error) {
		switch o := object.(type) {
		case *rbacv1.Role:
			_, err = api.Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRole:
			_, err = api.ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			_, err = api.RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = api.ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		}
		return err
	}
}

func (p *pair) update(object runtime.Object) func(context.Context) error {
	api := p.client.RbacV1()
	return func(ctx context.Context) (err error) {
		switch o := object.(type) {
		case *rbacv1.Role:
			_, err = api.Roles(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
		case *rbacv1.ClusterRole:
			_, err = api.ClusterRoles().Update(ctx, o, metav1.UpdateOptions{})
		case *rbacv1.RoleBinding:
			_, err = api.RoleBindings(o.Namespace).Update(ctx, o, metav1.UpdateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = api.ClusterRoleBindings().Update(ctx, o, metav1.UpdateOptions{})
		}
		return err
	}
}

func (p *pair) remove(object runtime.Object) func(context.Context) error {
	api := p.client.RbacV1()
	return func(ctx context.Context) error {
		switch o := object.(type) {
		case *rbacv1.Role:
			return api.Roles(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{})
		case *rbacv1.ClusterRole:
			return api.ClusterRoles().Delete(ctx, o.Name, metav1.DeleteOptions{})
		case *rbacv1.RoleBinding:
			return api.RoleBindings(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{})
		case *rbacv1.ClusterRoleBinding:
			return api.ClusterRoleBindings().Delete(ctx, o.Name, metav1.DeleteOptions{})
		}
		return nil
	}
}

// settle waits until the API server's authorizer and Live have seen everything that was written before. It writes one last object
// of each resource, and asks two questions that are allowed only with all of these objects, until both are allowed.
func (p *pair) settle(t testing.TB) {
	t.Helper()
	p.marks++
	mark := fmt.Sprintf("mark-%d", p.marks)
	p.do(t, p.create(clusterRole(mark, mark)), p.create(clusterRoleBinding(mark, mark, mark)),
		p.create(role("shop", mark, mark+"-shop")), p.create(roleBinding("shop", mark, mark, mark)))
	for _, verb := range []string{mark, mark + "-shop"} {
		q := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: mark}, Verb: verb, Namespace: "shop", APIGroup: "apps", Resource: "deployments", ResourceRequest: true}
		await(t, verb+" in the API server", func() bool {
			decision, _, err := p.ask(context.Background(), q)
			return err == nil && decision == authorizer.DecisionAllow
		})
		await(t, verb+" in Live", func() bool {
			decision, _, err := p.chain.Authorize(context.Background(), q)
			return err == nil && decision == authorizer.DecisionAllow
		})
	}
}

// ask asks the API server.
func (p *pair) ask(ctx context.Context, q authorizer.AttributesRecord) (authorizer.Decision, string, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: q.User.GetName(), Groups: q.User.GetGroups()}}
	if q.ResourceRequest {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: q.Namespace, Verb: q.Verb, Group: q.APIGroup, Resource: q.Resource, Subresource: q.Subresource, Name: q.Name,
		}
	} else {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: q.Path, Verb: q.Verb}
	}
	review, err := p.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authorizer.DecisionDeny, "", err
	case review.Status.EvaluationError != "":
		return authorizer.DecisionDeny, "", fmt.Errorf("evaluation error: %s", review.Status.EvaluationError)
	case review.Status.Allowed:
		return authorizer.DecisionAllow, review.Status.Reason, nil
	case review.Status.Denied:
		return authorizer.DecisionDeny, review.Status.Reason, nil
	}
	return authorizer.DecisionNoOpinion, review.Status.Reason, nil
}

// stored returns all RBAC objects in the API server, including the bootstrap policy.
func (p *pair) stored(t testing.TB) Grants {
	t.Helper()
	var g Grants
	ctx, api := context.Background(), p.client.RbacV1()
	roles, err := api.Roles("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clusterRoles, err := api.ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	roleBindings, err := api.RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clusterRoleBindings, err := api.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.Roles, g.ClusterRoles, g.RoleBindings, g.ClusterRoleBindings = roles.Items, clusterRoles.Items, roleBindings.Items, clusterRoleBindings.Items
	return g
}
