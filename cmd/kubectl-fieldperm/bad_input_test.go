package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reviewOf returns an AdmissionReview with the request's fields.
func reviewOf(request string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{` + request + `}}`
}

const (
	requestMeta = `"uid":"1","kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},"name":"c","namespace":"shop","userInfo":{"username":"bob"}`
	configMap   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"}}`
)

func TestReviewRefusesBadAdmissionReviews(t *testing.T) {
	update := func(object string) string {
		return reviewOf(requestMeta + `,"operation":"UPDATE","oldObject":` + configMap + `,"object":` + object)
	}
	for name, test := range map[string]struct{ body, want string }{
		"empty":                   {"", "has 0 documents: give one"},
		"no JSON":                 {`{"apiVersion":`, "is no JSON"},
		"no YAML":                 {"a: [", "is no YAML"},
		"a list":                  {"[]", "is no AdmissionReview"},
		"a string":                {`"AdmissionReview"`, "is no AdmissionReview"},
		"another kind":            {configMap, `is of apiVersion "v1" and kind "ConfigMap", no AdmissionReview`},
		"wrong version":           {strings.Replace(reviewOf(requestMeta), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), `give one with apiVersion "admission.k8s.io/v1"`},
		"no kind":                 {`{"request":{}}`, `is of apiVersion "" and kind ""`},
		"two documents":           {reviewOf(requestMeta) + reviewOf(requestMeta), "has 2 documents: give one"},
		"duplicate field":         {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"name":"a","name":"b"}}`, `duplicate field "request.name"`},
		"field of another type":   {reviewOf(`"name":1`), "is no AdmissionReview"},
		"no request":              {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "has no request"},
		"null request":            {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, "has no request"},
		"empty request":           {reviewOf(``), "admission request: "},
		"no operation":            {reviewOf(requestMeta), `operation "" is not known`},
		"unknown operation":       {reviewOf(requestMeta + `,"operation":"PATCH"`), `operation "PATCH" is not known`},
		"connect":                 {reviewOf(requestMeta + `,"operation":"CONNECT"`), `CONNECT to "configmaps": admission does not see the verb`},
		"no user":                 {strings.Replace(update(configMap), `"username":"bob"`, "", 1), "names no user"},
		"no resource":             {strings.Replace(update(configMap), `"resource":"configmaps"`, `"resource":""`, 1), "names no resource"},
		"no object on create":     {reviewOf(requestMeta + `,"operation":"CREATE"`), ".request.object is missing"},
		"null object":             {update("null"), ".request.object is missing"},
		"no old object":           {reviewOf(requestMeta + `,"operation":"UPDATE","object":` + configMap), ".request.oldObject is missing"},
		"object is a string":      {update(`"x"`), "object"},
		"object is a list":        {update(`[]`), "object"},
		"object does not fit":     {update(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","labels":["a"]}}`), "labels"},
		"no kind of request":      {strings.Replace(update(configMap), `"kind":"ConfigMap"}`, `"kind":""}`, 1), "names no kind"},
		"unknown kind":            {strings.Replace(update(configMap), `"kind":"ConfigMap"}`, `"kind":"ConfigMop"}`, 1), `kind "ConfigMop" of "v1" is not known: give its CustomResourceDefinition with --crd`},
		"deeply nested":           {update(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)), "is no JSON"},
		"deeply nested below 10k": {update(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","annotations":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + `}}`), ""},
		"invalid UTF-8":           {update("\"\xff\xfe\""), "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir("testdata")
			code, stdout, stderr := execute(t, test.body, "review", "-f", "-", "--grants", "grants.yaml")
			refused(t, code, stdout, stderr, test.want)
		})
	}
}

func TestReviewRefusesBadFlagsAndFiles(t *testing.T) {
	write := func(content string) string {
		file := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const update = "--old deployment.yaml --new scaled.yaml --as alice --grants grants.yaml"
	for name, test := range map[string]struct{ args, want string }{
		"no request":               {"--grants grants.yaml", "request is missing"},
		"argument":                 {update + " surplus", `unknown command "surplus"`},
		"unknown flag":             {update + " --nosuch", "unknown flag: --nosuch"},
		"both kinds of request":    {update + " -f review.json", "-f has the whole request"},
		"user for a review":        {"-f review.json --as alice --grants grants.yaml", "-f has the whole request"},
		"no user":                  {"--old deployment.yaml --new scaled.yaml --grants grants.yaml", "--as is missing"},
		"standard input twice":     {"--old - --new - --as alice --grants grants.yaml", "both read standard input"},
		"output":                   {update + " -o xml", `--output "xml" is not known`},
		"no checks":                {update + " --max-checks 0", "--max-checks 0 allows no check"},
		"resource":                 {update + " --resource deployments", `--resource "deployments" is no resource`},
		"missing file":             {"--old nosuch.yaml --new scaled.yaml --as alice --grants grants.yaml", "nosuch.yaml"},
		"missing grants":           {"--old deployment.yaml --new scaled.yaml --as alice --grants nosuch.yaml", "nosuch.yaml"},
		"missing permissions":      {update + " --permissions nosuch.yaml", "nosuch.yaml"},
		"missing CRD":              {update + " --crd nosuch.yaml", "nosuch.yaml"},
		"no cluster":               {"--old deployment.yaml --new scaled.yaml --as alice --server https://127.0.0.1:1", "decide from files with --grants"},
		"object is no object":      {"--old deployment.yaml --new " + write("[]\n") + " --as alice --grants grants.yaml", "is no Kubernetes object"},
		"object without kind":      {"--new " + write("metadata: {name: x}\n") + " --as alice --grants grants.yaml", "give it an apiVersion and a kind"},
		"name of another type":     {"--new " + write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [x]}\n") + " --as alice --grants grants.yaml", "is no Kubernetes object"},
		"two objects":              {"--new " + write("a: 1\n---\nb: 1\n") + " --as alice --grants grants.yaml", "has 2 documents: give one"},
		"kinds differ":             {"--old deployment.yaml --new namespace.yaml --as alice --grants grants.yaml", "give two states of one object"},
		"names differ":             {"--old namespace.yaml --new " + write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n") + " --as alice --grants grants.yaml", "give two states of one object"},
		"unknown kind":             {"--old widget.yaml --new widget-bigger.yaml --as alice --grants grants.yaml", `kind "Widget" of "example.com/v1" is not known`},
		"unknown kind, deleted":    {"--old widget.yaml --as alice --grants grants.yaml", `kind "Widget" of "example.com/v1" is not known`},
		"kind of a subresource":    {"--new " + write("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: x}\n") + " --as alice --grants grants.yaml", `kind "Scale" is of a subresource`},
		"object does not fit":      {"--old deployment.yaml --new " + write("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: {spec: {containers: {name: web}}}}\n") + " --as alice --grants grants.yaml", "containers"},
		"bad verb":                 {update + " --permissions " + write("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: apps, kind: Deployment, permissions: [{path: .spec.paused, verb: Paused}]}\n"), `"Paused"`},
		"bad grants":               {"--old deployment.yaml --new scaled.yaml --as alice --grants " + write("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: [{verb: [get]}]\n"), `unknown field "rules[0].verb"`},
		"invalid UTF-8 in objects": {"--new " + write("kind: \xff\n") + " --as alice --grants grants.yaml", "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir("testdata")
			code, stdout, stderr := execute(t, "", append([]string{"review"}, strings.Fields(test.args)...)...)
			refused(t, code, stdout, stderr, test.want)
		})
	}
}

func refused(t *testing.T, code int, stdout, stderr, want string) {
	t.Helper()
	if code != 2 || stdout != "" {
		t.Errorf("got exit code %d, want 2; stdout %q", code, stdout)
	}
	if !strings.Contains(stderr, "error: ") || !strings.Contains(stderr, want) {
		t.Errorf("stderr %q, want %q in it", stderr, want)
	}
	if len(stderr) > 4096 {
		t.Errorf("stderr has %d bytes: an error is for reading", len(stderr))
	}
}

// A label or a name of 10 KB is decided like a short one.
func TestReviewTakesLongNames(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for name, object := range map[string]string{
		"label's key":   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","labels":{"` + long + `":"v"}}}`,
		"label's value": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","labels":{"k":"` + long + `"}}}`,
		"finalizer":     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","finalizers":["` + long + `/x"]}}`,
	} {
		for user, want := range map[string]int{"bob": 0, "mark": 1} {
			t.Run(name+"/"+user, func(t *testing.T) {
				t.Chdir("testdata")
				body := strings.Replace(reviewOf(requestMeta+`,"operation":"UPDATE","oldObject":`+configMap+`,"object":`+object), `"bob"`, `"`+user+`"`, 1)
				code, stdout, stderr := execute(t, body, "review", "-f", "-", "--grants", "grants.yaml")
				if code != want || stderr != "" {
					t.Errorf("got exit code %d, want %d; stderr %q", code, want, stderr)
				}
				for line := range strings.Lines(stdout) {
					if len(line) > 1000 {
						t.Errorf("a line of the table has %d bytes: %.100s…", len(line), line)
					}
				}
			})
		}
	}
	t.Run("name", func(t *testing.T) {
		t.Chdir("testdata")
		body := strings.ReplaceAll(reviewOf(requestMeta+`,"operation":"CREATE","object":`+configMap), `"name":"c"`, `"name":"`+long+`"`)
		if code, stdout, stderr := execute(t, strings.Replace(body, `"bob"`, `"mark"`, 1), "review", "-f", "-", "--grants", "grants.yaml"); code != 1 || len(stdout) > 2000 {
			// The object has only its identity. By C5 the existence of the object needs a verb.
			t.Errorf("exit code %d; stdout %.300q, stderr %.300q", code, stdout, stderr)
		}
	})
}
