package sets_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// BenchmarkBarriers finds the barriers of UncoveredPermissionSets for one change of a Deployment:
//
//   - elsewhere: there are 32 sets, all about other resources
//   - unconditional: 32 sets without conditions
//   - request: 32 sets, each with a condition on the namespace, as the scenarios have, and one on the user
//
// The decoding of the request counts where there is a condition.
func BenchmarkBarriers(b *testing.B) {
	const (
		namespace = `{name: namespace, expression: "request.namespace == 'team-%d'"}, {name: user, expression: "!(request.userInfo.username in ['system:admin', 'root'])"}`
	)
	for _, c := range []struct{ name, resources, conditions string }{
		{"elsewhere", "{apiGroups: [''], resources: [configmaps]}", ""},
		{"unconditional", deployments, ""},
		{"request", deployments, namespace},
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
				if _, err := s.Uncovered(b.Context(), ref, request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// deploymentRequest returns a request that decodes a change of a Deployment each time it is asked.
func deploymentRequest(b *testing.B) schema.Request {
	b.Helper()
	encode := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	around := encode(map[string]any{
		"uid": "5f9b", "namespace": "team-3", "name": "web", "operation": "UPDATE",
		"userInfo": map[string]any{"username": "alice", "groups": []string{"system:authenticated", "team-3"}},
		"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"},
	})
	return func() (out map[string]any, err error) {
		err = json.Unmarshal(around, &out)
		return out, err
	}
}
