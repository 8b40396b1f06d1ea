package admission

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestC2_WarningsAboutOtherWaysToAPod: a barrier on Pods says nothing of templates, nor of fields that the API server fills others from.
func TestC2_WarningsAboutOtherWaysToAPod(t *testing.T) {
	fragment := func(permissions string) string {
		return strings.Replace(schematest.PermissionSchema("a", "", "X", permissions), "group: '', kind: X", "fragment: podSpec", 1)
	}
	set := func(resources string) string {
		return schematest.UncoveredSet("a", "{uncoveredPermissions: ['granular:hostNamespaces'], resources: ["+resources+"]}")
	}
	const template, filled = "not for the templates", "the API server fills it from"
	for name, c := range map[string]struct{ document, want string }{
		"a field of Pods":                    {schematest.PermissionSchema("a", "", "Pod", "{path: .spec.hostPID, verb: hostNamespaces, excluded: true}"), template},
		"no barrier":                         {schematest.PermissionSchema("a", "", "Pod", "{path: .spec.hostPID, verb: hostNamespaces}"), ""},
		"a status":                           {schematest.PermissionSchema("a", "", "Pod", "{path: .status.phase, verb: example.com/x, excluded: true}"), ""},
		"another kind":                       {schematest.PermissionSchema("a", "apps", "Deployment", "{path: .spec.paused, verb: pause, excluded: true}"), ""},
		"a fragment":                         {fragment("{path: .hostPID, verb: hostNamespaces, excluded: true}"), ""},
		"a field that is filled":             {fragment("{path: .priority, verb: priority, excluded: true}"), filled + " .spec.priorityClassName"},
		"a field with a part that is filled": {fragment("{path: '.containers[*].securityContext', verb: securityContext, excluded: true}"), filled},
		"a set on Pods":                      {set("{apiGroups: [''], resources: [pods]}"), template},
		"a set on workloads":                 {set("{apiGroups: [''], resources: [pods]}, {apiGroups: [apps], resources: [deployments]}"), ""},
		"a set on everything":                {set("{apiGroups: ['*'], resources: ['*']}"), everythingText},
	} {
		docs := schematest.Documents(t, c.document)
		compiled := schematest.Compile(t, docs)
		var got []string
		for i := range docs.Permissions {
			got = append(got, SchemaWarnings(&docs.Permissions[i])...)
		}
		for i := range docs.Uncovered {
			got = append(got, SetWarnings(compiled, &docs.Uncovered[i])...)
		}
		if text := strings.Join(got, "; "); !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}
