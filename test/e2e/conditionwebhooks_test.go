//go:build integration

package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// whenRed and neverBlue are statuses with a condition.
const (
	whenRed   = `{"allowed":false,"conditionSetChain":[{"authorizerName":"x","conditionsType":"example.com/x","conditions":[{"id":"red","effect":"Allow","condition":"red"}]}]}`
	neverBlue = `{"allowed":false,"conditionSetChain":[{"authorizerName":"x","conditionsType":"example.com/x","conditions":[{"id":"blue","effect":"Deny","condition":"blue"}]}]}`
)

// teams answers about each user in another way.
func teams(s *authorizationv1.SubjectAccessReviewSpec) string {
	const none = `{"allowed":false}`
	a := s.ResourceAttributes
	switch {
	case a == nil:
	case s.User == "same" && (a.Verb == "create" || a.Verb == "patch"):
		return whenRed
	case s.User == "posts" && (a.Verb == "patch" || a.Verb == "create" && a.Name == "protected"):
		return whenRed
	case s.User == "posts" && a.Verb == "create":
		return `{"allowed":true}`
	case s.User == "applies" && (a.Verb == "patch" || a.Verb == "create" && a.Name == "protected"):
		return whenRed
	case s.User == "granular" && strings.HasPrefix(a.Verb, "granular") && a.Name == "protected":
		return `{"allowed":false,"denied":true,"reason":"protected"}`
	case s.User == "confused" && (a.Verb == "update" || a.Verb == "patch"):
		return neverBlue
	case s.User == "owner" && a.Verb == "create" && a.Namespace == "":
		return whenRed
	}
	return none
}

// TestK7_Cluster_AWebhookDecidesOnNewObjects: with the name that the API server asked for, and never beyond what its conditions can become.
func TestK7_Cluster_AWebhookDecidesOnNewObjects(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/conditions" {
			// The confused peer allows by a condition that only denies.
			allowed := strings.Contains(string(body), `"team":"red"`) || strings.Contains(string(body), `"id":"blue"`)
			fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":{"allowed":%t}}`, allowed)
			return
		}
		var in authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":%s}`, teams(&in.Spec))
	}))
	defer server.Close()
	s := startOwn(t, stack.Config{Prepare: func(dir string) ([]string, error) {
		file := func(name string) string { return filepath.Join(dir, name) }
		must(t, os.WriteFile(file("teams.ca"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
		must(t, os.WriteFile(file("teams.kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: a, cluster: {server: "%[1]s/authorize", certificate-authority: %[2]q}}
- {name: c, cluster: {server: "%[1]s/conditions", certificate-authority: %[2]q}}
contexts: [{name: authorize, context: {cluster: a}}, {name: conditions, context: {cluster: c}}]
current-context: authorize
`, server.URL, file("teams.ca")), 0o600))
		return []string{"--authorization-config", file("teams.yaml")}, os.WriteFile(file("teams.yaml"), fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: teams
  webhook:
    authorizedTTL: 1s
    unauthorizedTTL: 1s
    timeout: 1s
    subjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    conditionsEndpointKubeConfigContext: conditions
    authorizationConditionsReviewVersion: v1alpha1
    conditionsDialect: conditionSetChain
- {type: RBAC, name: rbac}
`, file("teams.kubeconfig")), 0o600)
	}})
	grant(t, s, "granular", rule("", []string{"configmaps"}, "granular", "granular:*"))
	grant(t, s, "confused", rule("", []string{"configmaps"}, "granular"))
	for _, user := range []string{"same", "posts", "applies"} {
		grant(t, s, user, rule("", []string{"configmaps"}, "get"))
	}

	const maps = "/api/v1/namespaces/default/configmaps"
	object := func(kind, name, team string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"labels":{"team":%q}}}`, kind, name, team)
	}
	put(t, s, object("ConfigMap", "one", "green"))
	const apply = "application/apply-patch+yaml"
	for _, c := range []struct {
		user, method, path, contentType, body string
		want                                  int
	}{
		{"same", http.MethodPost, maps, "application/json", object("ConfigMap", "a", "red"), 201},
		{"same", http.MethodPost, maps, "application/json", object("ConfigMap", "b", "green"), 403},
		{"same", http.MethodPost, maps, "application/json", strings.Replace(object("ConfigMap", "c-", "red"), `"name"`, `"generateName"`, 1), 201},
		{"same", http.MethodPatch, maps + "/d", apply, object("ConfigMap", "d", "red"), 201},
		{"same", http.MethodPatch, maps + "/e", apply, object("ConfigMap", "e", "green"), 403},
		// The API server asked for the create of this name, which is allowed on a condition.
		{"posts", http.MethodPatch, maps + "/protected", apply, object("ConfigMap", "protected", "green"), 403},
		{"applies", http.MethodPatch, maps + "/protected", apply, object("ConfigMap", "protected", "green"), 403},
		// A Deny of granular verbs on the name.
		{"granular", http.MethodPost, maps, "application/json", object("ConfigMap", "free", "green"), 201},
		{"granular", http.MethodPost, maps, "application/json", object("ConfigMap", "protected", "green"), 403},
		{"applies", http.MethodPatch, maps + "/protected", apply, object("ConfigMap", "protected", "red"), 201},
		// A condition that only denies is no Allow.
		{"confused", http.MethodPatch, maps + "/one", merge, `{"data":{"a":"1"}}`, 500},
		// In admission a namespace is in itself, in a POST in none.
		{"owner", http.MethodPost, "/api/v1/namespaces", "application/json", object("Namespace", "red", "red"), 201},
		{"owner", http.MethodPost, "/api/v1/namespaces", "application/json", object("Namespace", "green", "green"), 403},
	} {
		inForce(t, fmt.Sprintf("%s %s %s %s", c.user, c.method, c.path, c.body), func() *corpus.Answer {
			return send(t, wire(t, s, c.user), c.method, c.path, c.contentType, fields(t, c.body), "fieldManager=x")
		}, c.want)
	}
}
