//go:build integration

package aggregated

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/test/aggregated/brewery"
	"github.com/fieldperm/fieldperm/test/aggregated/server"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
	"github.com/fieldperm/fieldperm/test/store"
)

// plane is a control plane with fieldperm and an aggregated API server.
type plane struct {
	*stack.Stack
	bin   string
	store *store.Store
	// config is the configuration of the aggregated server, which can be changed while it does not run.
	config    server.Config
	server    *server.Server
	authority *cluster.Authority
	port      int
}

const (
	beta    = "/apis/" + brewery.Group + "/v1beta1/namespaces/default/kegs"
	kegs    = "/apis/" + brewery.Group + "/v1/namespaces/default/kegs"
	recipes = "/apis/" + brewery.Group + "/v1/recipes"
	merge   = "application/merge-patch+json"

	// wait is how long a change may take until it is in force.
	wait = 30 * time.Second
)

// start starts all three. fieldperm lets granular users in to the group if named is true.
func start(t *testing.T, named bool) *plane {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	arguments := []string{"--decision-cache-ttl=500ms"}
	if named {
		arguments = append(arguments, "--aggregated-groups="+brewery.Group)
	}
	s, err := stack.Start(t.Context(), stack.Config{
		Bin: bin, Topology: stack.REST, Arguments: arguments, ServerFlags: frontProxy(t), AuthorizedTTL: time.Second, UnauthorizedTTL: time.Second,
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := &plane{Stack: s, bin: bin}
	p.store, err = store.Open(t.Context(), s.EtcdURL())
	must(t, err)
	t.Cleanup(func() { must(t, p.store.Close()) })
	p.port, err = cluster.FreePort()
	must(t, err)
	p.authority, err = cluster.NewAuthority("brewery")
	must(t, err)
	certificate, key, err := p.authority.Issue(cluster.Leaf{Name: "brewery", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"brewery.brewery.svc", "localhost", "127.0.0.1"}})
	must(t, err)
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	p.config = server.Config{
		Kubeconfig: admin.Kubeconfig, EtcdURL: s.EtcdURL(), Certificate: certificate, Key: key, Address: fmt.Sprintf("127.0.0.1:%d", p.port),
		Admission: s.File("admission-configuration.yaml"),
	}
	p.launch(t)
	t.Cleanup(func() { p.end(t) })
	p.register(t)
	return p
}

// frontProxy returns the flags by which kube-apiserver shows an aggregated server who its user is.
func frontProxy(t *testing.T) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	authority, err := cluster.NewAuthority("front-proxy")
	must(t, err)
	bundle, err := authority.Bundle()
	must(t, err)
	certificate, key, err := authority.Issue(cluster.Leaf{Name: "front-proxy-client", Usage: x509.ExtKeyUsageClientAuth})
	must(t, err)
	file := func(name string, content []byte) []string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		return []string{path}
	}
	return map[string][]string{
		"requestheader-client-ca-file":       file("ca.crt", bundle),
		"requestheader-allowed-names":        {"front-proxy-client"},
		"requestheader-username-headers":     {"X-Remote-User"},
		"requestheader-uid-headers":          {"X-Remote-Uid"},
		"requestheader-group-headers":        {"X-Remote-Group"},
		"requestheader-extra-headers-prefix": {"X-Remote-Extra-"},
		"proxy-client-cert-file":             file("proxy.crt", certificate),
		"proxy-client-key-file":              file("proxy.key", key),
	}
}

func (p *plane) launch(t *testing.T) {
	t.Helper()
	var err error
	p.server, err = server.Start(t.Context(), p.config)
	must(t, err)
}

func (p *plane) end(t *testing.T) {
	t.Helper()
	if p.server != nil {
		must(t, p.server.Stop())
		p.server = nil
	}
}

// register registers both versions, and returns when kube-apiserver reaches the server.
func (p *plane) register(t *testing.T) {
	t.Helper()
	bundle, err := p.authority.Bundle()
	must(t, err)
	objects := "apiVersion: v1\nkind: Namespace\nmetadata: {name: brewery}\n---\n" +
		fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: brewery, namespace: brewery}\nspec: {type: ExternalName, externalName: localhost, ports: [{port: %d}]}\n", p.port)
	for i, version := range []string{"v1", "v1beta1"} {
		objects += fmt.Sprintf("---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: %s.%s}\n"+
			"spec: {group: %s, version: %s, groupPriorityMinimum: 1000, versionPriority: %d, caBundle: %s, service: {name: brewery, namespace: brewery, port: %d}}\n",
			version, brewery.Group, brewery.Group, version, 20-i, base64.StdEncoding.EncodeToString(bundle), p.port)
	}
	p.kubectl(t, objects, "apply", "-f", "-")
	p.available(t)
}

func (p *plane) available(t *testing.T) {
	t.Helper()
	p.kubectl(t, "", "wait", "--for=condition=Available", "--timeout=60s", "apiservice/v1."+brewery.Group, "apiservice/v1beta1."+brewery.Group)
}

// await returns when fieldperm decides on the kinds of the server.
func (p *plane) await(t *testing.T) {
	t.Helper()
	must(t, p.AwaitGrants(t.Context()))
	// kube-apiserver reads the index of documents of another server every minute, fieldperm reads that of kube-apiserver every 30 seconds.
	// AwaitKind waits for 30 seconds.
	var err error
	for range 4 {
		if err = p.AwaitKind(t.Context(), runtimeschema.GroupVersionResource{Group: brewery.Group, Version: "v1", Resource: "kegs"}, "Keg"); err == nil {
			break
		}
	}
	must(t, err)
	must(t, p.AwaitKindIn(t.Context(), runtimeschema.GroupVersionResource{Group: brewery.Group, Version: "v1", Resource: "recipes"}, "Formula", ""))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl as an administrator, and returns its output.
func (p *plane) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	admin, err := p.User("admin", "system:masters")
	must(t, err)
	stdout, stderr, err := p.Kubectl(admin).Run(context.WithoutCancel(t.Context()), stdin, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return stdout
}

// grant gives a user verbs on resources of the group in the whole cluster, and waits until they are in force.
func (p *plane) grant(t *testing.T, user string, resources []string, verbs ...string) *corpus.Wire {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.Admin())
	must(t, err)
	meta := metav1.ObjectMeta{Name: "brewery-" + user}
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{brewery.Group}, Resources: resources, Verbs: append(verbs, "get")}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	must(t, err)
	must(t, p.AwaitGrants(t.Context()))
	return p.wire(t, user)
}

func (p *plane) wire(t *testing.T, user string, groups ...string) *corpus.Wire {
	t.Helper()
	u, err := p.User(user, groups...)
	must(t, err)
	w, err := corpus.NewWire(u.Config)
	must(t, err)
	return w
}

func send(t *testing.T, w *corpus.Wire, method, path, contentType, body string, query ...string) *corpus.Answer {
	t.Helper()
	parameters, err := url.ParseQuery(strings.Join(query, "&"))
	must(t, err)
	answer, err := w.Do(context.WithoutCancel(t.Context()), method, path, parameters, contentType, []byte(body))
	must(t, err)
	return answer
}

func patch(t *testing.T, w *corpus.Wire, path, body string) *corpus.Answer {
	t.Helper()
	return send(t, w, http.MethodPatch, path, merge, body)
}

// expect checks the code of an answer, and that its message has the parts.
func expect(t *testing.T, answer *corpus.Answer, code int, parts ...string) {
	t.Helper()
	if answer.Code != code {
		t.Fatalf("got %d, want %d: %s", answer.Code, code, answer.Body)
	}
	for _, part := range parts {
		if !strings.Contains(string(answer.Body), part) {
			t.Errorf("the answer has no %q: %s", part, answer.Body)
		}
	}
}

// eventually repeats a request until it is answered with the code.
func eventually(t *testing.T, timeout time.Duration, request func() *corpus.Answer, code int) *corpus.Answer {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(timeout)
	for {
		answer := request()
		if answer.Code == code {
			return answer
		}
		select {
		case <-deadline:
			t.Fatalf("still %d, want %d: %s", answer.Code, code, answer.Body)
		case <-ticker.C:
		}
	}
}

// stored returns a field of the object that etcd holds, as JSON; "" if there is none.
func (p *plane) stored(t *testing.T, key string, path ...string) string {
	t.Helper()
	entry, err := p.store.Get(t.Context(), server.Prefix+"/"+brewery.Group+"/"+key, 0)
	must(t, err)
	if entry == nil {
		t.Fatalf("etcd holds no %q", key)
	}
	var value any
	must(t, json.Unmarshal(entry.Value, &value))
	for _, name := range path {
		object, _ := value.(map[string]any)
		if value = object[name]; value == nil {
			return ""
		}
	}
	out, err := json.Marshal(value)
	must(t, err)
	return string(out)
}

// holds checks a field of what etcd holds.
func (p *plane) holds(t *testing.T, key, want string, path ...string) {
	t.Helper()
	if got := p.stored(t, key, path...); got != want {
		t.Errorf("etcd holds %s %s %s, want %s", key, strings.Join(path, "."), got, want)
	}
}

// expectOK returns the body of an answer without an error.
func expectOK(t *testing.T, answer *corpus.Answer) []byte {
	t.Helper()
	expect(t, answer, http.StatusOK)
	return answer.Body
}

func decode(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var out map[string]any
	must(t, json.Unmarshal(raw, &out))
	return out
}

func encode(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	must(t, err)
	return string(out)
}
