package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

const root = "../../.."

func TestPages_AreUpToDate(t *testing.T) {
	t.Setenv("KUBECACHEDIR", "/elsewhere")
	t.Setenv("HOME", "/home/of/another")
	written, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range written {
		if got, err := os.ReadFile(filepath.Join(root, "docs", "reference", name)); err != nil || string(got) != string(want) {
			t.Errorf("docs/reference/%s differs from the output of the generator: run make generate (%v)", name, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "reference", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := written[filepath.Base(file)]; !ok && strings.HasPrefix(string(text), mark) {
			t.Errorf("docs/reference/%s is written by no generator: remove it", filepath.Base(file))
		}
	}
}

// complete are files that load and have every required field.
var complete = map[string]string{
	"AuthorizationConfiguration": `
authorizers:
- type: Webhook
  name: one
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: InClusterConfig}
    matchConditions:
    - {expression: has(request.resourceAttributes)}
`,
	"AuthenticationConfiguration": `
jwt:
- issuer: {url: "https://issuer.example.com", audiences: [one]}
  claimMappings:
    username: {expression: claims.sub}
    extra:
    - {key: example.com/one, valueExpression: claims.one}
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')"}
anonymous:
  enabled: true
  conditions:
  - {path: /permissions}
`,
}

// without returns an object without the field at a path, of which [] is the first item of a list.
func without(object map[string]any, path string) bool {
	name, rest, below := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	if !below {
		_, ok := object[name]
		delete(object, name)
		return ok
	}
	next := object[name]
	if list {
		items, _ := next.([]any)
		if len(items) == 0 {
			return false
		}
		next = items[0]
	}
	inner, _ := next.(map[string]any)
	return inner != nil && without(inner, rest)
}

// fields.yaml and configfile agree on the required fields, field by field.
func TestFields_AFileWithoutARequiredFieldDoesNotLoad(t *testing.T) {
	known, err := texts()
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range complete {
		object := func() map[string]any {
			out := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &out); err != nil {
				t.Fatal(err)
			}
			out["apiVersion"], out["kind"] = "apiserver.config.k8s.io/v1", kind
			return out
		}
		load := func(object map[string]any) error {
			raw, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if kind == "AuthorizationConfiguration" {
				_, err = configfile.LoadAuthorization("file", raw)
			} else {
				_, _, err = configfile.LoadAuthentication("file", raw)
			}
			return err
		}
		if err := load(object()); err != nil {
			t.Fatalf("%s: the complete file does not load: %v", kind, err)
		}
		for path, field := range known[kind] {
			o := object()
			if !without(o, path) {
				if field.Required {
					t.Errorf("%s: %s is required, and the complete file of this test does not have it: add it", kind, path)
				}
				continue
			}
			// These two are required by what stands beside them, which their texts say.
			beside := path == "authorizers[].webhook" || path == "authorizers[].webhook.matchConditionSubjectAccessReviewVersion" || path == "anonymous.enabled" || strings.HasSuffix(path, ".expression") && !field.Required
			if err := load(o); (err != nil) != field.Required && !beside {
				t.Errorf("%s: required of %s is %t, and without it the file loads with %v", kind, path, field.Required, err)
			}
		}
	}
}
