package authz

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// place is a directory with a configuration and the files that it names. Files are replaced atomically.
type place struct {
	t   testing.TB
	dir string
}

func newPlace(t testing.TB) place { return place{t, t.TempDir()} }

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) file() string { return p.path("authorization.yaml") }

func (p place) write(name, data string) {
	p.t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(data), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// kubeconfig writes a kubeconfig for a webhook. The CA is in a separate file.
func (p place) kubeconfig(name string, r *remote) string {
	p.t.Helper()
	ca, token := name+".ca", name+".token"
	p.write(ca, string(r.CA()))
	p.write(token, "secret")
	p.write(name, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {tokenFile: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, r.URL+"/"+name, p.path(ca), p.path(token)))
	return p.path(name)
}

// hook is an entry of type Webhook.
type hook struct {
	name, kubeconfig string // no kubeconfig: InClusterConfig
	policy           string // default Deny
	timeout          string // default 5s
	version          string // default v1
	more             string // more lines of the webhook
	conditions       []string
}

// conditional is the entry of a webhook that returns conditions, with both its endpoints.
func (p place) conditional(name string, server *fakeapi.Server, policy string) hook {
	p.t.Helper()
	kubeconfig, err := os.ReadFile(server.Kubeconfig(p.t, "authorize", "conditions"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(name, string(kubeconfig)+"\n")
	return hook{
		name: name, kubeconfig: p.path(name), policy: policy,
		more: "conditionsEndpointKubeConfigContext: conditions\nauthorizationConditionsReviewVersion: v1alpha1\nconditionsDialect: conditionSetChain",
	}
}

func (h hook) String() string {
	or := func(given, else_ string) string {
		if given != "" {
			return given
		}
		return else_
	}
	connection := "{type: InClusterConfig}"
	if h.kubeconfig != "" {
		connection = fmt.Sprintf("{type: KubeConfigFile, kubeConfigFile: %q}", h.kubeconfig)
	}
	out := fmt.Sprintf(`- type: Webhook
  name: %s
  webhook:
    timeout: %s
    subjectAccessReviewVersion: %s
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: %s
`, h.name, or(h.timeout, "5s"), or(h.version, "v1"), or(h.policy, "Deny"), connection)
	for _, line := range strings.Split(h.more, "\n") {
		if line != "" {
			out += "    " + line + "\n"
		}
	}
	if len(h.conditions) > 0 {
		out += "    matchConditions:\n"
		for _, c := range h.conditions {
			out += fmt.Sprintf("    - expression: %q\n", c)
		}
	}
	return out
}

const (
	rbacEntry = "- {type: RBAC, name: rbac}\n"
	nodeEntry = "- {type: Node, name: node}\n"
	keepNone  = "cacheAuthorizedRequests: false\ncacheUnauthorizedRequests: false"
)

// configure writes the configuration.
func (p place) configure(entries ...any) {
	p.t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	for _, entry := range entries {
		text += fmt.Sprint(entry)
	}
	p.write("authorization.yaml", text)
}

// grants decides RBAC by objects instead of a cluster's.
type grants struct {
	authorizer.Authorizer
	fault error
}

func (grants) Run(ctx context.Context) { <-ctx.Done() }
func (g grants) Ready() error          { return g.fault }

func (grants) Holders(string, string, func(string) bool) ([]rbac.Holder, error) { return nil, nil }

// mayAll returns RBAC in which some users or groups have every verb.
func mayAll(t testing.TB, names ...string) func(*rest.Config) (roles, error) {
	t.Helper()
	binding := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "all"}}
	for _, name := range names {
		for _, kind := range []string{rbacv1.UserKind, rbacv1.GroupKind} {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name})
		}
	}
	a, err := rbac.New(rbac.Grants{
		ClusterRoles:        []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}}},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{binding},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(*rest.Config) (roles, error) { return grants{Authorizer: a}, nil }
}

// chain puts the place's configuration in force. It sets missing fields of s.
func (p place) chain(s Settings) *Chain {
	p.t.Helper()
	s.File = p.file()
	if s.newRoles == nil {
		s.newRoles = mayAll(p.t)
	}
	if s.Cluster == nil {
		s.Cluster = &rest.Config{Host: "https://127.0.0.1:1"}
	}
	if s.interval == 0 {
		s.interval = 20 * time.Millisecond
	}
	c, err := NewChain(p.t.Context(), s)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// run runs a chain until the end of the test.
func run(t testing.TB, c *Chain) *Chain {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { c.Run(ctx) })
	t.Cleanup(wait.Wait)
	t.Cleanup(cancel)
	return c
}

// until polls a condition for which there is no event.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}

func request() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Namespace: "shop", Name: "web",
		UserInfo: authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"example.com/scopes": {"a", "b"}}},
	}
}

// by returns a request of a user.
func by(name string, groups ...string) *admissionv1.AdmissionRequest {
	req := request()
	req.UserInfo.Username, req.UserInfo.Groups = name, groups
	return req
}

// notes is an Observer that counts.
type notes struct {
	mu      sync.Mutex
	seen    map[string]int
	entries func() map[string]int
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[string]int{}
	}
	n.seen[what]++
}

func (n *notes) Check(result string)                      { n.add("check " + result) }
func (n *notes) CheckFrom(source string)                  { n.add("from " + source) }
func (n *notes) CheckTook(result string, _ time.Duration) { n.add("took " + result) }
func (n *notes) CacheEntries(count func() map[string]int) { n.entries = count }

// expect compares the counts and resets them.
func (n *notes) expect(t *testing.T, when string, want map[string]int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !maps.Equal(n.seen, want) {
		t.Errorf("%s: saw %v, want %v", when, n.seen, want)
	}
	n.seen = nil
}
