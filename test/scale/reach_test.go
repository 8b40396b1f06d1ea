//go:build integration

package scale

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/stack"
)

// calls counts the calls of fieldperm that are not about a probe.
type calls struct {
	mu                 sync.Mutex
	reviews, questions map[string]int
}

func (c *calls) observe(_ string, question, _ []byte) {
	var review admissionv1.AdmissionReview
	var access authorizationv1.SubjectAccessReview
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case json.Unmarshal(question, &review) == nil && review.Request != nil:
		c.reviews[review.Request.UserInfo.Username]++
	case json.Unmarshal(question, &access) == nil:
		c.questions[access.Spec.User]++
	}
}

func (c *calls) of(user string) (reviews, questions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reviews[user], c.questions[user]
}

// attempt is a write as its user makes it.
type attempt struct {
	name, user string
	groups     []string
	verb, path string
	body       string
}

// TestScale_WhichWritesReachFieldperm: users with generic permissions cause no call of fieldperm at all, neither a review nor a question.
func TestScale_WhichWritesReachFieldperm(t *testing.T) {
	c := &calls{reviews: map[string]int{}, questions: map[string]int{}}
	s := start(t, stack.Config{Observe: c.observe})
	apply(t, s, grants)
	admin, err := kubernetes.NewForConfig(s.Admin())
	must(t, err)
	create(t, admin.RESTClient(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(0))
	await(t, func(ctx context.Context) error {
		return do(ctx, admin.RESTClient(), "POST", machines(0), machine("m-0"))
	})
	must(t, s.AwaitGrants(t.Context()))
	warm(t, s)

	want := map[string]write{}
	for _, w := range traffic(*nodes, *controllers) {
		want[w.name] = w
	}
	for _, a := range attempts() {
		as := impersonating(t, s, a)
		before, asked := c.of(a.user)
		if err := do(t.Context(), as, a.verb, a.path, a.body); err != nil {
			t.Errorf("%s: %v", a.name, err)
			continue
		}
		after, askedAfter := c.of(a.user)
		reviews, questions := after-before, askedAfter-asked
		t.Logf("%-62s %d reviews, %d questions", a.name, reviews, questions)
		w, known := want[a.name]
		if delete(want, a.name); !known {
			t.Errorf("%s: is not in the traffic", a.name)
		}
		if w.reaches && reviews != 1 || !w.reaches && reviews+questions > 0 {
			t.Errorf("%s: %d reviews and %d questions; reaches fieldperm is %t", a.name, reviews, questions, w.reaches)
		}
	}
	for name := range want {
		t.Errorf("%s: was not written", name)
	}
}

func attempts() []attempt {
	node := []string{"system:nodes", "system:authenticated"}
	const of = "/api/v1/namespaces/scale/pods"
	return []attempt{
		{lease, "system:node:node-0", node, "PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0", `{"spec":{"renewTime":"2026-01-01T00:00:01.000000Z"}}`},
		{nodeStatus, "system:node:node-0", node, "PATCH", "/api/v1/nodes/node-0/status", `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:00:00Z"}]}}`},
		{podCreate, "system:serviceaccount:kube-system:replicaset-controller", nil, "POST", of, pod("made", "")},
		{podBind, "system:kube-scheduler", nil, "POST", of + "/made/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"made"},"target":{"kind":"Node","name":"node-0"}}`},
		{podStatus, "system:node:node-0", node, "PATCH", of + "/bound/status", `{"status":{"phase":"Running"}}`},
		{podDelete, "system:serviceaccount:kube-system:replicaset-controller", nil, "DELETE", of + "/made", `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`},
		{event, "system:node:node-0", node, "POST", "/api/v1/namespaces/scale/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"bound","namespace":"scale"},"reason":"Started","type":"Normal"}`},
		{leader, account(0), nil, "PATCH", "/apis/coordination.k8s.io/v1/namespaces/scale/leases/leader", `{"spec":{"holderIdentity":"b"}}`},
		{workloadStatus, account(0), nil, "PATCH", "/apis/apps/v1/namespaces/scale/deployments/web/status", `{"status":{"conditions":[{"type":"Available","status":"True"}]}}`},
		{customResource, account(0), nil, "PATCH", machines(0) + "/m-0", `{"spec":{"replicas":2}}`},
		{userWrite, "user", nil, "PATCH", "/apis/apps/v1/namespaces/scale/deployments/web", `{"spec":{"replicas":2}}`},
	}
}

// impersonating returns a client of the administrator that acts as the user, so that no certificate is made for each.
func impersonating(t *testing.T, s *stack.Stack, a attempt) rest.Interface {
	t.Helper()
	config := rest.CopyConfig(s.Admin())
	config.Impersonate = rest.ImpersonationConfig{UserName: a.user, Groups: a.groups}
	if strings.HasPrefix(a.user, "system:serviceaccount:") {
		config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}
	}
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client.RESTClient()
}

// warm writes as a granular user until a write passes: enforcement is proven only after the start.
func warm(t *testing.T, s *stack.Stack) {
	t.Helper()
	as := impersonating(t, s, attempt{user: "user"})
	await(t, func(ctx context.Context) error {
		return do(ctx, as, "PATCH", "/apis/apps/v1/namespaces/scale/deployments/web", `{"spec":{"replicas":1}}`)
	})
}
