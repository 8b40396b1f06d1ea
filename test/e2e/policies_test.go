//go:build integration

package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// policyScenario is a file of testdata/conditions.
type policyScenario struct {
	User     string                           `json:"user"`
	Extra    map[string][]string              `json:"extra,omitempty"`
	Rules    []rbacv1.PolicyRule              `json:"rules,omitempty"`
	Policies []v1alpha1.ConditionalPolicySpec `json:"policies"`
	Objects  []map[string]any                 `json:"objects,omitempty"`
	Requests []struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Type   string `json:"type,omitempty"`
		Body   any    `json:"body,omitempty"`
		// Raw is the text of a body that is no plain JSON.
		Raw     string `json:"raw,omitempty"`
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
		// Retry repeats the request until the API server serves the resource.
		Retry bool `json:"retry,omitempty"`
	} `json:"requests"`
}

// TestK6_Scenarios: the answer of a cluster is that of an authorizer that knows the objects.
func TestK6_Scenarios(t *testing.T) {
	s := start(t)
	install(t, s)
	files, err := filepath.Glob("../../testdata/conditions/*.yaml")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no scenarios")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			must(t, err)
			var scenario policyScenario
			must(t, yaml.UnmarshalStrict(data, &scenario))
			play(t, s, name, &scenario)
		})
	}
}

func play(t *testing.T, s *stack.Stack, name string, scenario *policyScenario) {
	t.Helper()
	if len(scenario.Rules) > 0 {
		grant(t, s, scenario.User, scenario.Rules...)
	}
	for _, object := range scenario.Objects {
		create(t, s, object)
	}
	for i := range scenario.Policies {
		policy(t, s, name+"-"+string(rune('0'+i)), &scenario.Policies[i])
	}
	w := as(t, s, scenario.User, scenario.Extra)
	for _, r := range scenario.Requests {
		contentType := r.Type
		if contentType == "" && r.Method == http.MethodPatch {
			contentType = merge
		}
		path, query, _ := strings.Cut(r.Path, "?")
		body := filled(t, r.Body)
		if r.Raw != "" {
			body = []byte(r.Raw)
		}
		do := func() *corpus.Answer { return send(t, w, r.Method, path, contentType, body, query) }
		if r.Code == http.StatusCreated {
			u := unstructured.Unstructured{Object: r.Body.(map[string]any)}
			t.Cleanup(func() { erase(t, s, u) })
		}
		var answer *corpus.Answer
		if r.Retry {
			answer = eventually(t, do, r.Code)
		} else {
			answer = do()
		}
		if answer.Code != r.Code || !strings.Contains(answer.Status.Message, r.Message) {
			t.Errorf("%s %s: got %d, want %d with %q: %s", r.Method, r.Path, answer.Code, r.Code, r.Message, answer.Body)
		}
	}
}

// create creates an object as an administrator, and deletes it when the test ends.
func create(t *testing.T, s *stack.Stack, object map[string]any) {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	u := unstructured.Unstructured{Object: object}
	t.Cleanup(func() { erase(t, s, u) })
	put(t, s, string(text))
	if u.GetKind() == "CustomResourceDefinition" {
		established(t, s, u.GetName())
	}
}

func erase(t *testing.T, s *stack.Stack, u unstructured.Unstructured) {
	t.Helper()
	if u.GetName() == "" || u.GetKind() == "Eviction" {
		return // It is not stored.
	}
	text, err := json.Marshal(u.Object)
	must(t, err)
	// Its kind may have been deleted before.
	if err := objects(t, s).Delete(context.WithoutCancel(t.Context()), string(text)); err != nil && !meta.IsNoMatchError(err) {
		t.Error(err)
	}
}

// policy creates a policy, and waits until it is in force.
func policy(t *testing.T, s *stack.Stack, name string, spec *v1alpha1.ConditionalPolicySpec) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.ConditionalPolicyKind, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	must(t, err)
	remove(t, s, v1alpha1.ConditionalPolicyResource, name)
	warnings := put(t, s, string(text))
	if len(warnings) != len(admission.PolicyWarnings(spec)) {
		t.Fatalf("%s: warnings: %q", name, warnings)
	}
	awaitCondition(t, s, string(text), "Compiled", 30*time.Second, func(status, _, _ string) bool { return status == "True" })
	awaitCondition(t, s, string(text), "Enforced", 30*time.Second, func(status, _, _ string) bool { return status == "True" })
}

// as returns a client of a user, with extra that an authenticator would add.
func as(t *testing.T, s *stack.Stack, user string, extra map[string][]string) *corpus.Wire {
	t.Helper()
	if extra == nil {
		return wire(t, s, user)
	}
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	config := rest.CopyConfig(admin.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}, Extra: extra}
	w, err := corpus.NewWire(config)
	must(t, err)
	return w
}

// filled returns a body with generated values in place of CSR and CABUNDLE.
func filled(t *testing.T, body any) any {
	t.Helper()
	raw, err := json.Marshal(body)
	must(t, err)
	text := string(raw)
	if !strings.Contains(text, `"CSR"`) && !strings.Contains(text, `"CABUNDLE"`) {
		return body
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	must(t, err)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "x"}, key)
	must(t, err)
	encoded := func(kind string, data []byte) string {
		return `"` + base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})) + `"`
	}
	text = strings.NewReplacer(`"CSR"`, encoded("CERTIFICATE REQUEST", request), `"CABUNDLE"`, encoded("CERTIFICATE", ca.Raw)).Replace(text)
	var out any
	must(t, json.Unmarshal([]byte(text), &out))
	return out
}
