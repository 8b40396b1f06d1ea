package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// benchConditions are ten conditions as administrators write them, all true on the objects of the benchmark.
var benchConditions = []string{
	`object.spec.replicas <= 10`,
	`object.spec.template.spec.serviceAccountName == oldObject.spec.template.spec.serviceAccountName`,
	`object.metadata.labels["team"] in ["blue", "green"]`,
	`!has(object.spec.paused) || object.spec.paused == false`,
	`object.spec.template.spec.containers.all(c, c.image.startsWith("registry.example.com/"))`,
	`object.spec.template.spec.containers.size() == oldObject.spec.template.spec.containers.size()`,
	`request.userInfo.groups.exists(g, g == "dev") || object.metadata.name == "w"`,
	`request.operation == "UPDATE" && oldObject.spec.replicas - object.spec.replicas < 5`,
	`!(has(object.metadata.finalizers) && object.metadata.finalizers.exists(f, f.startsWith("other.example.com/")))`,
	`object.spec.strategy.type == "RollingUpdate" && object.spec.template.spec.nodeSelector == oldObject.spec.template.spec.nodeSelector`,
}

// benchObject is a Deployment of about 16 KiB.
func benchObject(tb testing.TB, replicas int) []byte {
	tb.Helper()
	var containers []any
	for c := range 2 {
		var env []any
		for i := range 110 {
			env = append(env, map[string]any{"name": fmt.Sprintf("VARIABLE_%d", i), "value": fmt.Sprintf("a value that has some length, for number %d", i)})
		}
		containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", c), "image": "registry.example.com/app:1", "env": env})
	}
	out, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "labels": map[string]any{"team": "blue"}},
		"spec": map[string]any{
			"replicas": replicas, "strategy": map[string]any{"type": "RollingUpdate"},
			"template": map[string]any{"spec": map[string]any{"serviceAccountName": "app", "nodeSelector": map[string]any{"zone": "a"}, "containers": containers}},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(out) < 15<<10 || len(out) > 17<<10 {
		tb.Fatalf("the object has %d bytes", len(out))
	}
	return out
}

// reviewed returns the body of an AdmissionReview about an update of 16 KiB.
func reviewed(tb testing.TB) []byte {
	tb.Helper()
	req := updating(tb, nil, nil)
	req.UID, req.OldObject.Raw, req.Object.Raw = "u-1", benchObject(tb, 2), benchObject(tb, 3)
	out, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// holder holds the generic permission.
type holder struct{}

func (holder) Authorize(context.Context, string, bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow}, nil
}

// BenchmarkReview decides on an update of 16 KiB, from the bytes of the review: without policies, with ten about other users, and with ten
// whose conditions are evaluated.
func BenchmarkReview(b *testing.B) {
	compiled := schematest.Schema(b)
	body := reviewed(b)
	var about10, others []v1alpha1.ConditionalPolicySpec
	for _, condition := range benchConditions {
		about10 = append(about10, about(v1alpha1.PolicyDeny, "!("+condition+")"))
	}
	for range 10 {
		of := about(v1alpha1.PolicyDeny, "true")
		of.Subjects[0].Name = "bob"
		others = append(others, of)
	}
	for _, c := range []struct {
		name string
		set  *Set
	}{{"without", setOf(b)}, {"ten of others", setOf(b, others...)}, {"ten", setOf(b, about10...)}} {
		b.Run(c.name, func(b *testing.B) {
			reviewer := &admission.Reviewer{
				Schema: func() *schema.Schema { return compiled }, Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return holder{} },
				Conditional: c.set.Conditional,
			}
			b.ReportAllocs()
			for b.Loop() {
				in, err := admission.Read(body)
				if err != nil {
					b.Fatal(err)
				}
				got, err := reviewer.ReviewDecoded(b.Context(), admission.Granular, in)
				if err != nil || !got.Allowed {
					b.Fatal(got, err)
				}
				in.Release()
			}
		})
	}
}

// BenchmarkAuthorize is the authorization phase of the same request.
func BenchmarkAuthorize(b *testing.B) {
	var specs []v1alpha1.ConditionalPolicySpec
	for _, condition := range benchConditions {
		specs = append(specs, about(v1alpha1.PolicyDeny, "!("+condition+")"))
	}
	set := setOf(b, specs...)
	b.ReportAllocs()
	for b.Loop() {
		if got := set.ConditionsAwareAuthorize(b.Context(), asked()); !got.IsConditionsMap() {
			b.Fatal(got)
		}
	}
}
