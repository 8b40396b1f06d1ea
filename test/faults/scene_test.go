//go:build integration

package faults

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

const namespace = "faults"

// barrier is the content of a schema file: a user with only update may not change the label of Secrets.
const barrier = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: guarded}
spec:
  uncoveredPermissions: [granular:label(guarded.example.com)]
  resources: [{apiGroups: [""], resources: [secrets]}]
`

// roles are the roles of the users, by name. Scalers and keepers have only granular verbs.
var roles = map[string][]rbacv1.PolicyRule{
	"scaler": {
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "granular", "granular:scale"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"get", "granular", "granular:scale"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"get", "granular"}},
	},
	"keeper": {{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "granular", "granular:datum(mine)"}}},
	"editor": {
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update", "patch"}},
	},
}

// scene is a stack with users that write all the time.
type scene struct {
	*stack.Stack
	admin   *kubernetes.Clientset
	journal *journal
	auditor *auditor
	writers []*writer
	running sync.WaitGroup
	stop    context.CancelFunc
	reports []report
	// remake creates the objects again: after forbidden writes were stored, some fields are owned by users that may not give them up.
	remake []func(t *testing.T)
	// settled is true if the scene is in the state after the last recovery.
	settled bool
	// stall is the longest recent time in which this program did not run.
	stall atomic.Int64
	// tampered is the time at which a tampering took effect.
	tampered time.Time
}

// open starts the stack, creates the objects, and starts the writers.
func open(t *testing.T, config stack.Config) *scene {
	t.Helper()
	s, err := stack.Start(t.Context(), config)
	must(t, err)
	c := &scene{Stack: s, journal: &journal{}}
	t.Cleanup(func() { must(t, s.Stop()) })
	c.admin, err = kubernetes.NewForConfig(s.Admin())
	must(t, err)
	auditing, err := rawClient(s.Admin())
	must(t, err)
	c.auditor = newAuditor(auditing)
	c.auditor.barriersDown.Store(true) // It ends when the barriers are enforced.
	c.prepare(t)
	return c
}

func (c *scene) prepare(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	for name, rules := range roles {
		meta := metav1.ObjectMeta{Name: name}
		_, err := c.admin.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		must(t, err)
		_, err = c.admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	must(t, c.AwaitGrants(ctx))
	// There are two writers of each kind, so that requests of a kind run at the same time.
	for i := range 2 {
		c.add(t, "scaler", granular, scalerAttempts(c.object(t, deployments, fmt.Sprintf("scaled-%d", i))))
		c.add(t, "keeper", granular, keeperAttempts(c.object(t, configMaps, fmt.Sprintf("kept-%d", i))))
	}
	c.add(t, "editor", generic, editorAttempts(c.object(t, deployments, "edited")))
	c.add(t, "editor", guarded, guardedAttempts(c.object(t, secrets, "guarded")))
}

// awaitBarrier waits until the barrier is enforced: fieldperm may first have to write its webhook configuration.
func (c *scene) awaitBarrier(t *testing.T) {
	t.Helper()
	user, err := c.User("editor")
	must(t, err)
	client, err := rawClient(user.Config)
	must(t, err)
	await(t, recoverWithin, func() error {
		_, err := patch(path(secrets.group, secrets.resource, "guarded"), `{"metadata":{"labels":{"guarded.example.com/by":"nobody-$N"}}}`)(t.Context(), client, int(sequence.Add(1)))
		if apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("the barrier does not hold: %w", orNone(err))
	})
}

// add adds a user; start lets it write.
func (c *scene) add(t *testing.T, name string, of class, attempts []attempt) {
	t.Helper()
	user, err := c.User(name)
	must(t, err)
	w := &writer{name: fmt.Sprintf("%s-%d", name, len(c.writers)), class: of, user: user.Config, attempts: attempts, clients: map[string]*rest.RESTClient{}}
	c.writers = append(c.writers, w)
	c.serve(t, cluster.APIServer, w)
}

// serve connects writers to an additional API server, all of them if none is named.
func (c *scene) serve(t *testing.T, server string, writers ...*writer) {
	t.Helper()
	if len(writers) == 0 {
		writers = c.writers
	}
	for _, w := range writers {
		client, err := rawClient(c.At(w.user, server))
		must(t, err)
		w.serve(server, client)
	}
}

// leave disconnects the writers from an API server.
func (c *scene) leave(server string) {
	for _, w := range c.writers {
		w.serve(server, nil)
	}
}

// start lets the writers begin; the end of the test, or close, stops them.
func (c *scene) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	c.stop = stop
	for _, path := range watched {
		c.running.Go(func() { c.auditor.follow(ctx, path) })
	}
	for _, w := range c.writers {
		c.running.Go(func() { w.run(ctx, c.journal, c.auditor) })
	}
	c.running.Go(func() {
		const beat = 20 * time.Millisecond
		for last := time.Now(); ctx.Err() == nil; last = time.Now() {
			time.Sleep(beat)
			c.stall.Store(max(c.stall.Load(), int64(time.Since(last)-beat)))
		}
	})
	t.Cleanup(c.close)
}

func (c *scene) close() {
	c.stop()
	c.running.Wait()
}

// rawClient has no rate limit, and never repeats a request by itself.
func rawClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.GroupVersion = &schema.GroupVersion{}
	config.APIPath = "/"
	return rest.RESTClientFor(config)
}

// playAll plays faults one after the other, and prints the results.
func (c *scene) playAll(t *testing.T, title string, faults []fault) {
	t.Helper()
	t.Cleanup(func() { table(os.Stdout, title, c.reports) })
	for _, f := range faults {
		if !t.Run(strings.ReplaceAll(f.name, " ", "_"), func(t *testing.T) { c.play(t, f) }) && !c.settled {
			return // The next fault would start in the middle of this one.
		}
	}
}

// await calls f until it returns no error.
func await(t *testing.T, limit time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", limit, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
