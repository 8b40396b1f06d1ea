//go:build integration

package fields

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/test/stack"
)

var (
	only = flag.String("only", "", "look at endpoints only whose name has this in it")
	all  = flag.Bool("all", false, "write every field, rather than one of each verb of an endpoint")
	out  = flag.String("out", "", "a file for what came of each field")
	seed = flag.Uint64("seed", 1, "which field of a verb is written without -all")
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestC1_EachFieldByItsOwnVerb: a user with the marker and the most specific verb of a field may write the field, in every kind and
// subresource that the API server serves.
func TestC1_EachFieldByItsOwnVerb(t *testing.T) {
	r := newRun(t)
	defer r.report(t)
	r.forEach(t, func(ctx context.Context, e *endpoint) error { return r.explore(ctx, e) })
	r.grant(t)
	r.hold(t)
	r.judge(t)
}

// run is one run over all endpoints.
type run struct {
	server    *server
	stack     *stack.Stack
	compiled  *schema.Schema
	types     types
	endpoints []*endpoint

	mu    sync.Mutex
	tries []*try
}

func newRun(t *testing.T) *run {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{
		Bin:         bin,
		Arguments:   []string{"--max-checks=400"},
		ServerFlags: serverFlags("AllAlpha=true,AllBeta=true"),
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	r := prepare(t, s.Admin())
	r.stack = s
	return r
}

// serverFlags are the flags of a server with all APIs and short delays.
func serverFlags(gates string) map[string][]string {
	return map[string][]string{
		"runtime-config":                 {"api/all=true"},
		"feature-gates":                  {gates},
		"service-cluster-ip-range":       {"10.0.0.0/24"},
		"max-mutating-requests-inflight": {"0"},
		"max-requests-inflight":          {"0"},
		"enable-priority-and-fairness":   {"false"},
	}
}

// prepare reads the APIs of a server, and creates the namespace.
func prepare(t *testing.T, admin *rest.Config) *run {
	t.Helper()
	r := &run{}
	var err error
	r.server, err = newServer(admin)
	must(t, err)
	client, err := discovery.NewDiscoveryClientForConfig(admin)
	must(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	must(t, err)
	r.types, err = serverTypes(t.Context(), r.server, lists)
	must(t, err)
	r.compiled = schematest.Schema(t)
	r.endpoints = endpoints(t, lists)
	a, err := r.server.send(t.Context(), http.MethodPost, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}, nil)
	must(t, err)
	if !a.ok() {
		t.Fatal(a.says())
	}
	return r
}

// endpoints are the endpoints for which the marker may pass.
func endpoints(t *testing.T, lists []*metav1.APIResourceList) []*endpoint {
	t.Helper()
	allowed := allowlist.Build(lists, nil, nil)
	var out []*endpoint
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for i := range list.APIResources {
			a := &list.APIResources[i]
			name, subresource, _ := strings.Cut(a.Name, "/")
			e := &endpoint{
				gvr: gv.WithResource(name), subresource: subresource, namespaced: a.Namespaced, kind: gv.WithKind(a.Kind),
				creatable: slices.Contains(a.Verbs, "create") && subresource == "", updatable: slices.Contains(a.Verbs, "update"),
			}
			if a.Version != "" {
				e.kind = runtimeschema.GroupVersionKind{Group: a.Group, Version: a.Version, Kind: a.Kind}
			}
			if allowed.Has(gv.Group, name, subresource) && (e.creatable || e.updatable) {
				out = append(out, e)
			}
		}
	}
	return out
}

// parallel is the number of endpoints that are processed concurrently.
const parallel = 6

func (r *run) kindOf(e *endpoint, ref schema.ResourceRef) (*schema.Kind, error) {
	return r.compiled.KindFor(e.kind, ref)
}

func (r *run) forEach(t *testing.T, visit func(context.Context, *endpoint) error) {
	t.Helper()
	var wait sync.WaitGroup
	room := make(chan struct{}, parallel)
	for _, e := range r.endpoints {
		if !strings.Contains(e.String(), *only) {
			continue
		}
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			if err := visit(t.Context(), e); err != nil {
				t.Errorf("%s: %v", e, err)
			}
		})
	}
	wait.Wait()
}

// grant creates a group for the marker and for each verb that a write needs.
func (r *run) grant(t *testing.T) {
	t.Helper()
	client, err := kubernetes.NewForConfig(r.stack.Admin())
	must(t, err)
	groups := map[string]string{markerGroup: "granular"}
	for _, try := range r.tries {
		for _, verb := range try.verbs {
			groups[verb] = verb
		}
	}
	var wait sync.WaitGroup
	room := make(chan struct{}, parallel)
	for i, group := range sorted(groups) {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("fields-%d", i)}
		rules := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{groups[group]}}}
		if group == markerGroup {
			rules[0].Verbs = append(rules[0].Verbs, "get")
			rules = append(rules, furtherChecks...)
		}
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			_, err1 := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
			_, err2 := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
			}, metav1.CreateOptions{})
			if err := errors.Join(err1, err2); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	must(t, r.stack.AwaitGrants(t.Context()))
}

// furtherChecks are permissions that Kubernetes itself requires in addition to the write: to grant permissions that the user does not hold,
// to sign, and to report an allocation of a driver.
var furtherChecks = []rbacv1.PolicyRule{
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}},
	{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"sign", "approve", "attest"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/binding"}, Verbs: []string{"update", "patch"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/driver"}, Verbs: []string{"arbitrary-node:update", "arbitrary-node:patch"}},
}

// hold sends each accepted write as the user with its verbs.
func (r *run) hold(t *testing.T) {
	t.Helper()
	var wait sync.WaitGroup
	room := make(chan struct{}, parallel)
	for _, try := range r.tries {
		if try.method == "" {
			continue
		}
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			a, err := r.server.write(t.Context(), try.method, try.url, try.body, try.verbs)
			if err == nil && a.code == http.StatusConflict && try.method == http.MethodPut {
				// The API server itself has changed the object since then.
				if now, err := r.server.send(t.Context(), http.MethodGet, strings.TrimSuffix(try.url, dryRun), nil, nil); err == nil && now.ok() {
					body := runtime.DeepCopyJSON(try.body)
					body["metadata"].(map[string]any)["resourceVersion"] = now.object["metadata"].(map[string]any)["resourceVersion"]
					if a, err = r.server.write(t.Context(), try.method, try.url, body, try.verbs); err != nil {
						t.Errorf("%s %s: %v", try.endpoint, try.path, err)
						return
					}
					if a.code == http.StatusForbidden {
						return // The body takes back what a controller has written, so the user may not write it.
					}
				}
			}
			if err != nil {
				t.Errorf("%s %s: %v", try.endpoint, try.path, err)
				return
			}
			try.held = a
		})
	}
	wait.Wait()
}
