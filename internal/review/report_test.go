package review

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// holder is an authorizer with the verbs of the only user.
type holder struct {
	verbs []string
	err   error
}

func (h holder) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h.verbs, verb))}, h.err
}

// labelled reviews changes of labels of a ConfigMap. Labels a, b and c have barriers.
func labelled(t *testing.T, maxChecks int, labels string, h holder) (*Report, error) {
	t.Helper()
	s := schematest.Schema(t, schematest.File(t, "testdata/uncovered.yaml"))
	object := func(labels string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","labels":{` + labels + `}}}`)}
	}
	return Decide(t.Context(), &admission.Reviewer{
		Schema:     func() *schema.Schema { return s },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return h },
		Limits:     fieldperm.Limits{MaxChecks: maxChecks},
	}, &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Name: "c", Namespace: "shop", UserInfo: authenticationv1.UserInfo{Username: "bob"},
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		OldObject: object(`"z":"1"`), Object: object(labels),
	}, 0)
}

// TestP3_TheGenericVerbIsNoCheckOfUncovered: for a holder of patch only /admit/uncovered is asked, and all of --max-checks are
// available for the barriers.
func TestP3_TheGenericVerbIsNoCheckOfUncovered(t *testing.T) {
	all := []string{"patch", "granular:label(a)", "granular:label(b)", "granular:label(c)"}
	for _, test := range []struct {
		name, labels string
		maxChecks    int
		verbs        []string
		allowed      bool
		asked        int
		coveredBy    []string
		message      string
	}{
		{"enough", `"z":"2","a":"1"`, 3, all, true, 3, []string{"granular:label(a)", "patch"}, ""},
		{"enough for uncovered alone", `"z":"2","a":"1","b":"1","c":"1"`, 3, all, true, 5, []string{"granular:label(a)", "granular:label(b)", "granular:label(c)", "patch"}, ""},
		{"one too few for uncovered", `"z":"2","a":"1","b":"1","c":"1"`, 2, all, false, 4, []string{"granular:label(a)", "granular:label(b)", "", "patch"}, "2 permission checks"},
		{"a barrier that is not held", `"z":"2","a":"1","b":"1","c":"1"`, 3, all[:3], false, 5, []string{"granular:label(a)", "granular:label(b)", "", "patch"}, "needs granular:label(c)"},
		{"granular verbs, which granular counts", `"z":"2","a":"1","b":"1","c":"1"`, 5, append([]string{"granular", "granular:labels"}, all[1:]...), false, 5, nil, "5 permission checks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := labelled(t, test.maxChecks, test.labels, holder{verbs: test.verbs})
			if err != nil {
				t.Fatal(err)
			}
			if r.Allowed != test.allowed || len(r.Checks) != test.asked || !strings.Contains(r.Message, test.message) || r.Allowed != (r.Message == "") {
				t.Errorf("got %+v", r)
			}
			var by []string
			for _, c := range r.Changes {
				by = append(by, c.CoveredBy)
			}
			if test.coveredBy != nil && !slices.Equal(by, test.coveredBy) {
				t.Errorf("covered by %q, want %q", by, test.coveredBy)
			}
			if test.coveredBy != nil && (r.Mode != "uncovered" || !reflect.DeepEqual(r.Checks[:2], []Check{{"update", false}, {"patch", true}})) {
				t.Errorf("mode %s, checks %+v", r.Mode, r.Checks)
			}
		})
	}
}

func TestP4_ErrorsAreNoReports(t *testing.T) {
	down := errors.New("etcd is down")
	if r, err := labelled(t, 32, `"z":"2"`, holder{err: down}); r != nil || !errors.Is(err, down) {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestD8_NotesThatOwnershipWasNotCompared, if the request can change ownership.
func TestD8_NotesThatOwnershipWasNotCompared(t *testing.T) {
	const with, without, null = `{"metadata":{"managedFields":[]}}`, `{"metadata":{},"managedFields":[]}`, `{"metadata":{"managedFields":null}}`
	for name, test := range map[string]struct {
		operation     admissionv1.Operation
		kind          string
		before, after string
		note          string
	}{
		"both have them":        {admissionv1.Update, "Pod", with, with, ""},
		"none has them":         {admissionv1.Update, "Pod", without, null, "ownership was not judged: the objects have no metadata.managedFields"},
		"the old one lacks":     {admissionv1.Update, "Pod", without, with, "the old object has no metadata.managedFields"},
		"the new one lacks":     {admissionv1.Update, "Pod", with, without, "the new object has no metadata.managedFields"},
		"a Scale never has any": {admissionv1.Update, "Scale", without, without, ""},
		"a new object":          {admissionv1.Create, "Pod", "", without, ""},
		"a deletion":            {admissionv1.Delete, "Pod", without, "", ""},
	} {
		request := &admissionv1.AdmissionRequest{Operation: test.operation}
		request.Kind.Kind = test.kind
		request.OldObject.Raw, request.Object.Raw = []byte(test.before), []byte(test.after)
		got := notes(request)
		if len(got) > 1 || (len(got) == 1) != (test.note != "") || !strings.Contains(strings.Join(got, ""), test.note) {
			t.Errorf("%s: %q", name, got)
		}
		if len(got) == 1 && !strings.HasSuffix(got[0], "kubectl get --show-managed-fields") {
			t.Errorf("%s: %q does not say what to do", name, got)
		}
	}
	r := &Report{Allowed: true, Mode: "generic", Notes: []string{"a", "b"}}
	if text := string(r.Table()); !strings.HasSuffix(text, "(mode generic, 0 checks)\nnote: a\nnote: b\n") {
		t.Errorf("got %q", text)
	}
}

// The contract: every name, and lists that are empty and not null.
func TestReportContract(t *testing.T) {
	const want = `{
  "allowed": false,
  "mode": "none",
  "changes": [
    {
      "path": ".metadata.labels[\"<a>\"]",
      "operation": "added",
      "chain": [],
      "barrier": -1,
      "coveredBy": ""
    }
  ],
  "checks": [],
  "message": "no"
}
`
	r := &Report{Mode: "none", Changes: []Change{{Path: `.metadata.labels["<a>"]`, Operation: "added", Chain: []string{}, Barrier: -1}}, Checks: []Check{}, Message: "no"}
	raw, err := r.JSON()
	if err != nil || string(raw) != want {
		t.Errorf("got %s, %v", raw, err)
	}
	nothing, err := newReport(&admission.Result{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := nothing.JSON()
	if err != nil || strings.Contains(string(empty), "null") {
		t.Errorf("got %s, %v", empty, err)
	}
	inYAML, err := r.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(raw, &a), yaml.Unmarshal(inYAML, &b)); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("JSON %v, YAML %v, %v", a, b, err)
	}
}
