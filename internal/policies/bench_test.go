package policies

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
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

// BenchmarkReview decides by ten policies with effect Deny on an update of 16 KiB, from the bytes of the objects.
func BenchmarkReview(b *testing.B) {
	req := updating(b, replicas(1), replicas(2))
	req.OldObject.Raw, req.Object.Raw = benchObject(b, 2), benchObject(b, 3)
	var about10, others []v1alpha1.ConditionalPolicySpec
	for _, condition := range benchConditions {
		about10 = append(about10, about(v1alpha1.PolicyDeny, "!("+condition+")"))
	}
	for range 10 {
		of := about(v1alpha1.PolicyDeny, "true")
		of.Subjects[0].Name = "bob"
		others = append(others, of)
	}
	for name, set := range map[string]*Set{"ten policies": setOf(b, about10...), "ten of others": setOf(b, others...)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got, err := set.For(written(b, req)).Authorize(b.Context(), "update", true)
				if err != nil || got.Outcome != fieldperm.NoOpinion {
					b.Fatal(got, err)
				}
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
