package sets_test

import (
	"context"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func compileWith(t *testing.T, documents ...string) (*schema.Schema, []error) {
	t.Helper()
	return compile.Compile(schematest.Documents(t, documents...))
}

func setOf(verbs, resources, conditions string) string {
	return schematest.UncoveredSet("x", "{uncoveredPermissions: ["+verbs+"], resources: ["+resources+"], matchConditions: ["+conditions+"]}")
}

func schemaOf(group, kind, entries string) string {
	return schematest.PermissionSchema("x", group, kind, entries)
}

const deployments = "{apiGroups: [apps], resources: [deployments]}"

// A condition counts as true if it fails or if its context has ended; it is false only if it returns false.
func TestC2_MatchConditionsKnowTheRequest(t *testing.T) {
	s, errs := compileWith(t, setOf("'granular:scale'", deployments, "{name: a, expression: 'request.userInfo.username == \"alice\" && request.namespace == \"shop\" && request.dryRun'}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}
	for user, want := range map[string]int{"alice": 1, "bob": 0} {
		request := func() (map[string]any, error) {
			return map[string]any{"userInfo": map[string]any{"username": user}, "namespace": "shop", "dryRun": true}, nil
		}
		if got, err := s.Uncovered(context.Background(), ref, request); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", user, got, err)
		}
	}
}

// If a set with a refused notation exists nevertheless, its barriers are as strong as with the correct notation.
func TestC2_TheNotationOfWebhookRulesBars(t *testing.T) {
	for _, resource := range []string{"'*/*'", "deployments/*"} {
		s, _ := compileWith(t, setOf("'granular:scale'", "{apiGroups: [apps], resources: ["+resource+"]}", ""))
		for _, subresource := range []string{"", "scale"} {
			ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: subresource}
			if got, err := s.Uncovered(t.Context(), ref, nil); err != nil || len(got) != 1 {
				t.Errorf("%s: %q: %v, %v", resource, subresource, got, err)
			}
		}
	}
}
