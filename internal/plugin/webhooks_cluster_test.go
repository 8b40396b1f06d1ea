//go:build integration

package plugin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/server"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// team is an authorizer that returns one condition about updates by painters: the object contains a text.
type team struct {
	name, text string
	dialect    wire.Dialect
	denies     bool
}

func (w team) decide(user, verb string) authorizer.ConditionsAwareDecision {
	if !strings.HasPrefix(user, "painter") || verb != "update" && verb != "patch" {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	all := []authorizer.Condition{authorizer.GenericCondition{ID: w.name + ".example.com/text", Type: "example.com/contains", Condition: w.text, Description: "contains " + w.text}}
	if w.denies {
		return authorizer.ConditionsAwareDecisionConditionsMap(all, nil, nil)
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, all)
}

func (w team) evaluate(object string) authorizer.ConditionsAwareDecision {
	switch contains := strings.Contains(object, w.text); {
	case contains && w.denies:
		return authorizer.ConditionsAwareDecisionDeny("it contains "+w.text, nil)
	case contains:
		return authorizer.ConditionsAwareDecisionAllow("it contains "+w.text, nil)
	}
	return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
}

// serve answers at /authorize and /conditions, and fails for the user unlucky.
func (w team) serve(path string, body []byte) ([]byte, error) {
	if path == "/conditions" {
		asked, err := w.dialect.ReadConditionsRequest(body)
		if err != nil {
			return nil, err
		}
		return w.dialect.AnswerConditions(asked.Admission.UID, w.evaluate(string(asked.Admission.Object.Raw)))
	}
	spec, handles, err := w.dialect.ReadReview(body)
	switch {
	case err != nil:
		return nil, err
	case spec.User == "unlucky":
		return nil, fmt.Errorf("%s is away", w.name)
	}
	return w.dialect.AnswerReview(spec, w.decide(spec.User, spec.ResourceAttributes.Verb), handles)
}

// entry runs the authorizer, and returns its entry in an AuthorizationConfiguration.
func (w team) entry(t *testing.T) string {
	t.Helper()
	s := fakeapi.Serve(t, http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = w.serve(r.URL.Path, body)
		}
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(body)
	}))
	return fmt.Sprintf(`- type: Webhook
  name: %s
  webhook: {timeout: 5s, subjectAccessReviewVersion: v1, failurePolicy: Deny, authorizedTTL: 1s, unauthorizedTTL: 1s, connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q},
    conditionsEndpointKubeConfigContext: conditions, authorizationConditionsReviewVersion: v1alpha1, conditionsDialect: %s}
`, w.name, s.Kubeconfig(t, "authorize", "conditions"), w.dialect)
}

// readsRBAC lets the user of the command list what an authorizer of type RBAC decides by.
const readsRBAC = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reads-rbac}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles, rolebindings, clusterrolebindings], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reads-rbac}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-rbac},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: asker}]}
`

// TestK7_K8_Cluster_WebhooksOfAFile: conditions lists what webhooks say, and review answers as a fieldperm-webhook with the same file.
func TestK7_K8_Cluster_WebhooksOfAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "authorization.yaml")
	must(t, os.WriteFile(file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"+
		team{name: "reds", text: "red", dialect: wire.ConditionSetChain}.entry(t)+
		team{name: "closed", text: "forbidden", dialect: wire.ConditionalDecision, denies: true}.entry(t)+
		"- {type: RBAC, name: rbac}\n"), 0o600))
	p := newPlane(t, func(o *server.Options) { o.AuthorizationConfig = file })
	p.webhooks = true
	p.kubectl(readsRBAC, "create", "-f", "-")
	p.grant(map[string][]string{"painter": {"granular", "granular:data"}, "painter-in-chief": {"update"}, "unlucky": {"update"}, "nobody": {"get"}})

	write := func(user, color string) []byte {
		object := func(color string) runtime.RawExtension {
			return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"color":%q}}`, color)}
		}
		return question{AdmissionRequest: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Name: "c", Namespace: "default", Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"}},
			Object: object(color), OldObject: object("none"),
		}}.body(t)
	}
	for _, c := range []struct{ user, color, want, says string }{
		{"painter", "red", "allowed generic", ""},
		{"painter", "blue", "allowed granular", ""},
		{"painter", "forbidden", "denied none", `authorizer \"closed\" denies update`},
		{"painter", "red and forbidden", "allowed generic", ""},
		{"painter-in-chief", "blue", "allowed generic", ""},
		{"painter-2", "blue", "denied none", `is not met: \"contains red\"`},
		{"nobody", "red", "denied none", ""},
		{"unlucky", "red", "undecided", ""},
	} {
		what, body := c.user+" paints "+c.color, write(c.user, c.color)
		var code int
		var stdout string
		p.await("the informers of fieldperm-webhook have seen the grants", func(context.Context) (bool, error) {
			code, stdout = p.command(body, "--authorization-config", file)
			_, reviewed := p.post("/review", body)
			return code == 2 || reviewed == stdout, nil
		})
		if got := p.compare(what, code, stdout, body); got != c.want || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: %s, want %s with %q\n%s", what, got, c.want, c.says, stdout)
		}
	}
	if code, stdout := p.command(write("painter-2", "red")); code != 1 {
		t.Errorf("without the file: %d %s", code, stdout)
	}

	p.kubectl(`{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: freeze}, spec: {subjects: [{kind: User, name: unlucky-too}, {kind: User, name: painter}], verbs: [update, patch],
  resources: [{apiGroups: [""], resources: [configmaps]}], effect: Deny, condition: 'object.data.color == "black"', description: not black}}`, "create", "-f", "-")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"update configmaps/c --as painter", 0, `EFFECT AUTHORIZER POLICY CONDITION DESCRIPTION Deny ConditionalPolicy freeze object.data.color == "black" not black Allow reds reds.example.com/text red contains red Deny closed closed.example.com/text forbidden contains forbidden`},
		{"update configmaps/c --as painter -o json", 0, `{ "authorizer": "reds", "policy": "reds.example.com/text", "effect": "Allow", "condition": "red", "description": "contains red" }`},
		{"get configmaps/c --as painter", 0, `No policy and no webhook that returns conditions is about it.`},
		{"update configmaps/c --as unlucky", 2, `no webhook of --authorization-config answers: authorizer "reds"`},
	} {
		if code, text := p.conditions(append(strings.Fields(c.args), "-n", "default", "--authorization-config", file)...); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.args, code, text, c.code, c.want)
		}
	}
}
