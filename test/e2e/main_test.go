//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// shared is the control plane of the tests here that run one after the other. See startOwn for the others.
var shared struct {
	once  sync.Once
	stack *stack.Stack
	err   error
}

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	code := m.Run()
	if shared.stack != nil {
		if err := shared.stack.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// command returns the path of a command.
func command(t *testing.T, name string) string {
	t.Helper()
	bin, err := Build()
	must(t, err)
	return filepath.Join(bin, name)
}

// start returns the shared control plane. It has a barrier on Namespaces, and none on the other resources that the tests write. Decisions
// of checks are kept for half a second only.
func start(t *testing.T) *stack.Stack {
	t.Helper()
	shared.once.Do(func() {
		var bin string
		if bin, shared.err = Build(); shared.err != nil {
			return
		}
		shared.stack, shared.err = stack.Start(context.Background(), stack.Config{
			Bin:       bin,
			Schemas:   []string{"../../testdata/scenarios/use-case-10-namespace-owner/uncovered.yaml"},
			Arguments: []string{"--decision-cache-ttl=500ms"},
		})
	})
	must(t, shared.err)
	return shared.stack
}

// startOwn starts a stack for one test: the rules of a barrier stay for a while after it, and other tests need resources without barriers.
// The test runs in parallel to others, so that they work while it waits.
func startOwn(t *testing.T, config stack.Config) *stack.Stack {
	t.Helper()
	t.Parallel()
	var err error
	config.Bin, err = Build()
	must(t, err)
	s, err := stack.Start(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// pause is the time between two attempts with kubectl, which starts a process each time.
const pause = 300 * time.Millisecond

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func clients(t *testing.T, s *stack.Stack) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Admin())
	must(t, err)
	return c
}

// grant gives a user rules in the whole cluster until the test ends, and waits until they are in force.
func grant(t *testing.T, s *stack.Stack, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	ctx, rbac := t.Context(), clients(t, s).RbacV1()
	meta := metav1.ObjectMeta{Name: "e2e-" + user}
	_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_ = rbac.ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}) // A test may have deleted it already.
		must(t, rbac.ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{}))
	})
	must(t, s.AwaitGrants(ctx))
}

// rule returns a rule of RBAC. With the marker it has get too, without which nobody is let in to update or patch (A7).
func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	if slices.Contains(verbs, "granular") {
		verbs = append(slices.Clone(verbs), "get")
	}
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func wire(t *testing.T, s *stack.Stack, name string, groups ...string) *corpus.Wire {
	t.Helper()
	user, err := s.User(name, groups...)
	must(t, err)
	w, err := corpus.NewWire(user.Config)
	must(t, err)
	return w
}

const merge = "application/merge-patch+json"

// send sends a body as JSON, which may be a map[string]any or any type of Kubernetes.
func send(t *testing.T, w *corpus.Wire, method, path, contentType string, body any, query ...string) *corpus.Answer {
	t.Helper()
	parameters, err := url.ParseQuery(strings.Join(query, "&"))
	must(t, err)
	// Cleanups also call it, after the test's context has ended.
	answer, err := w.Do(context.WithoutCancel(t.Context()), method, path, parameters, contentType, body)
	must(t, err)
	return answer
}

func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	must(t, json.Unmarshal([]byte(text), &out))
	return out
}
