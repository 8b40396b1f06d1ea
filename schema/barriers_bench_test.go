package schema_test

import (
	"encoding/json"
	"fmt"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// BenchmarkBarriers finds the barriers of UncoveredPermissionSets for one change of a Deployment, whose objects have 8 KiB each:
//
//   - elsewhere: there are 32 sets, all about other resources
//   - unconditional: 32 sets without conditions
//   - request: 32 sets, each with a condition on the namespace, as the scenarios have, and one on the user
//   - object: 32 sets, each with a condition on a label
//
// The decoding of the request and of the objects counts where a condition reads them.
func BenchmarkBarriers(b *testing.B) {
	const (
		namespace = `{name: namespace, expression: "request.namespace == 'team-%d'"}, {name: user, expression: "!(request.userInfo.username in ['system:admin', 'root'])"}`
		label     = `{name: label, expression: "object.?metadata.labels[?'tier'].orValue('') == 'tier-%d'"}`
	)
	for _, c := range []struct{ name, resources, conditions string }{
		{"elsewhere", "{apiGroups: [''], resources: [configmaps]}", ""},
		{"unconditional", deployments, ""},
		{"request", deployments, namespace},
		{"object", deployments, label},
	} {
		b.Run(c.name, func(b *testing.B) {
			docs := schematest.Documents(b)
			for i := range 32 {
				conditions := c.conditions
				if conditions != "" {
					conditions = fmt.Sprintf(conditions, i)
				}
				docs = docs.Append(schematest.Decode(b, fmt.Sprintf("set %d", i), setOf("'granular:metadata', 'granular:labels'", c.resources, conditions)))
			}
			s := schematest.Compile(b, docs)
			ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}
			request := deploymentRequest(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Uncovered(b.Context(), ref, request()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// deploymentRequest returns requests that decode a change of a Deployment when they are asked.
func deploymentRequest(b *testing.B) func() schema.Request {
	b.Helper()
	env := make([]map[string]any, 100)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprintf("VARIABLE_%d", i), "value": fmt.Sprintf("the value of variable number %d", i)}
	}
	encode := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	object := encode(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "labels": map[string]any{"tier": "tier-3"}},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "env": env}}}}},
	})
	around := encode(map[string]any{
		"uid": "5f9b", "namespace": "team-3", "name": "web", "operation": "UPDATE",
		"userInfo": map[string]any{"username": "alice", "groups": []string{"system:authenticated", "team-3"}},
		"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"},
	})
	decode := func(raw []byte) (out map[string]any) {
		if err := json.Unmarshal(raw, &out); err != nil {
			b.Fatal(err)
		}
		return out
	}
	return func() schema.Request {
		return schema.Request{
			Kind:    runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
			Fields:  func() (map[string]any, error) { return decode(around), nil },
			Objects: func() (any, any, error) { return decode(object), decode(object), nil },
		}
	}
}
