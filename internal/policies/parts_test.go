package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// all holds every verb.
type all struct{}

func (all) Authorize(context.Context, string, bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow}, nil
}

// TestK4_ChangesAreCompleteOrAnError: a condition on changes sees each changed scalar, also in an item or another value that is charged as a whole. Where
// the changes are not known one by one, or have other names in another version, reading them is an error: true for a Deny.
func TestK4_ChangesAreCompleteOrAnError(t *testing.T) {
	compiled := schematest.Schema(t)
	const deployments, scalers = "apps/deployments/Deployment", "autoscaling/horizontalpodautoscalers/HorizontalPodAutoscaler"
	pod := func(containers string) string {
		return `{"spec":{"template":{"spec":{"containers":[` + containers + `]}}}}`
	}
	old := pod(`{"name":"web","image":"a","args":["x","y"]}`)
	for name, c := range map[string]struct {
		of, version string
		// names are the versions that the policy names.
		names      []string
		path       string
		old, new   string
		wantDenied bool
		isNew      bool
	}{
		"the image of an item with another name":     {of: deployments, path: ".image", old: old, new: pod(`{"name":"other","image":"evil"}`), wantDenied: true},
		"the image of a removed item":                {of: deployments, path: ".image", old: pod(`{"name":"a","image":"a"},{"name":"b","image":"b"}`), new: pod(`{"name":"a","image":"a"}`), wantDenied: true},
		"a port of an added container":               {of: deployments, path: ".hostPort", old: old, new: pod(`{"name":"web","image":"a","args":["x","y"]},{"name":"b","ports":[{"containerPort":1,"hostPort":2}]}`), wantDenied: true},
		"a port that is added":                       {of: deployments, path: ".hostPort", old: old, new: pod(`{"name":"web","image":"a","args":["x","y"],"ports":[{"containerPort":1,"hostPort":2}]}`), wantDenied: true},
		"an item that is written twice":              {of: deployments, path: `.env[name="SECRET"].value`, old: pod(`{"name":"web","env":[{"name":"SECRET","value":"good"}]}`), new: pod(`{"name":"web","env":[{"name":"SECRET","value":"good"},{"name":"SECRET","value":"evil"}]}`), wantDenied: true},
		"an item that stays twice":                   {of: deployments, path: `.env[name="SECRET"].value`, old: pod(`{"name":"web","env":[{"name":"SECRET","value":"good"},{"name":"SECRET","value":"a"}]}`), new: pod(`{"name":"web","env":[{"name":"SECRET","value":"good"},{"name":"SECRET","value":"b"}]}`), wantDenied: true},
		"an item in an item that is added":           {of: deployments, path: `.env[name="SECRET"].value`, old: old, new: pod(`{"name":"web","image":"a","args":["x","y"]},{"name":"b","env":[{"name":"SECRET","value":"evil"}]}`), wantDenied: true},
		"an item of an atomic list":                  {of: deployments, path: `.args[1]`, old: old, new: pod(`{"name":"web","image":"a","args":["x","z"]}`), wantDenied: true},
		"an item without a difference":               {of: deployments, path: `.args[0]`, old: old, new: pod(`{"name":"web","image":"a","args":["x","z"]}`)},
		"an empty value":                             {of: deployments, path: ".emptyDir", old: old, new: strings.Replace(old, `"containers"`, `"volumes":[{"name":"a","emptyDir":{}}],"containers"`, 1), wantDenied: true},
		"another field":                              {of: deployments, path: ".image", old: old, new: strings.Replace(old, `"spec":{"template"`, `"spec":{"replicas":2,"template"`, 1)},
		"a name that occurs twice":                   {of: deployments, path: ".image", old: old, new: `{"spec":{"replicas":1,"replicas":2}}`, wantDenied: true},
		"a new object with a name that occurs twice": {of: deployments, path: ".image", new: `{"spec":{"replicas":1,"replicas":2,"template":{"spec":{"containers":[{"name":"web","image":"a"}]}}}}`, wantDenied: true, isNew: true},
		"a new object":                               {of: deployments, path: ".image", new: old, wantDenied: true, isNew: true},
		"a new object without the field":             {of: deployments, path: ".image", new: `{"spec":{"replicas":1}}`, isNew: true},
		"a lossy version":                            {of: scalers, version: "v1", path: ".spec.metrics", old: `{"spec":{"maxReplicas":1}}`, new: `{"spec":{"maxReplicas":2}}`, wantDenied: true},
		"another version has other names":            {of: scalers, version: "v2", path: ".spec.metrics", old: `{"spec":{"maxReplicas":1}}`, new: `{"spec":{"maxReplicas":2}}`, wantDenied: true},
		"the policy names the version":               {of: scalers, version: "v2", names: []string{"v2"}, path: ".spec.metrics", old: `{"spec":{"maxReplicas":1}}`, new: `{"spec":{"maxReplicas":2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(c.of, "/")
			group, version := parts[0], c.version
			if version == "" {
				version = "v1"
			}
			resource, kind := metav1.GroupVersionResource{Group: group, Version: version, Resource: parts[1]}, metav1.GroupVersionKind{Group: group, Version: version, Kind: parts[2]}
			object := func(text string) []byte {
				return []byte(fmt.Sprintf(`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":"x"},`, group, version, kind.Kind) + strings.TrimPrefix(text, "{"))
			}
			req := &admissionv1.AdmissionRequest{
				UID: "1", Operation: admissionv1.Update, Resource: resource, RequestResource: &resource, Kind: kind, RequestKind: &kind, Namespace: "shop", Name: "x",
				UserInfo: authenticationv1.UserInfo{Username: "alice"},
			}
			req.Object.Raw = object(c.new)
			if c.isNew {
				req.Operation = admissionv1.Create
			} else {
				req.OldObject.Raw = object(c.old)
			}
			deny := about(v1alpha1.PolicyDeny, fmt.Sprintf(`changes.exists(c, c.path.endsWith(%q))`, c.path))
			deny.Verbs = []string{"create", "update", "patch"}
			deny.Resources = []v1alpha1.PolicyResource{{APIGroups: []string{group}, APIVersions: c.names, Resources: []string{resource.Resource}}}
			served := func(endpoint.Ref) (map[string]*spec.Schema, error) {
				return map[string]*spec.Schema{"v1": {}, "v2": {}}, nil
			}
			p, faults := newCompiler(newExpressions(t), served).compile(&v1alpha1.ConditionalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: deny}, nil)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			reviewer := &admission.Reviewer{
				Schema: func() *schema.Schema { return compiled }, Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return all{} },
				Conditional: newSet([]*policy{p}).Conditional,
			}
			body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req})
			if err != nil {
				t.Fatal(err)
			}
			in, err := admission.Read(body)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Release()
			got, err := reviewer.ReviewDecoded(t.Context(), admission.Granular, in)
			if err != nil || got.Allowed == c.wantDenied {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
