package admission

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/test/schematest"
)

const statusIsUncovered = `
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: status}
spec:
  uncoveredPermissions: ["granular:status"]
  resources: [{apiGroups: [apps], resources: [deployments/status]}]
`

// handingOver gives an applying manager a field whose value does not change.
func handingOver(fields string) *admissionv1.AdmissionRequest {
	r := update(`{"replicas":1},"status":{"replicas":1}`, `{"replicas":1},"status":{"replicas":1}`)
	r.Object.Raw = []byte(strings.Replace(string(r.Object.Raw), `"name":"web"`, `"name":"web","managedFields":[
		{"manager":"argo","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":`+fields+`}]`, 1))
	return r
}

// D8, D11: owners in the status can change with a write of the object. Neither verbs on the object nor a set on the status would apply to
// that write.
func TestD8_D11_OwnersOfTheStatusAreNotTheObjects(t *testing.T) {
	const status = `{"f:status":{"f:replicas":{}}}`
	plain, guarded := schematest.Schema(t), schematest.Schema(t, statusIsUncovered)
	for name, c := range map[string]struct {
		guarded bool
		verbs   []string
		want    bool
	}{
		"the verb of the status, on the object":   {false, []string{"granular", "granular:status"}, false},
		"every verb":                              {false, []string{"granular", "granular:*"}, true},
		"the generic verb":                        {false, []string{"update"}, true},
		"the generic verb behind a barrier":       {true, []string{"update"}, false},
		"the generic verb and that of a barrier":  {true, []string{"update", "granular:status"}, true},
		"every verb behind a barrier":             {true, []string{"granular", "granular:*"}, false},
		"every verb, and the barrier's by itself": {true, []string{"granular", "granular:*", "granular:status"}, true},
	} {
		s := plain
		if c.guarded {
			s = guarded
		}
		if result, err := reviewer(s, holding(c.verbs...)).Review(t.Context(), Granular, handingOver(status)); err != nil || result.Allowed != c.want {
			t.Errorf("%s: %+v, %v; want %t", name, result, err, c.want)
		}
	}
	if result, err := reviewer(guarded, holding("update")).Review(t.Context(), Granular, scaling()); err != nil || !result.Allowed {
		t.Errorf("a change of the specification: %+v, %v", result, err)
	}
}
