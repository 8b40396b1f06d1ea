package sets_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
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

// Barriers returns, for any name of an endpoint, the barriers by which a probe of it may be refused.
func TestA6_BarriersOfAnEndpoint(t *testing.T) {
	scale, other := setOf("'granular:scale'", deployments, "{name: a, expression: 'false'}"), setOf("'granular:label(a)'", deployments, "")
	s, errs := compileWith(t, scale, other, schemaOf("apps", "StatefulSet", "{path: .spec.serviceName, verb: example.com/service, excluded: true}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for at, want := range map[schema.ResourceRef][]string{
		{Group: "apps", Version: "v1", Resource: "deployments"}:                           {"doc0", "doc1"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}:                          {schema.Excluded},
		{Group: "apps", Version: "v1", Resource: "daemonsets"}:                            nil,
		{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "notserved"}: {"doc0", "doc1"},
	} {
		kinds := map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
		k, err := s.KindFor(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kinds[at.Resource]}, at)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range s.Barriers(k, at) {
			name, _, _ := strings.Cut(b, " ")
			got = append(got, name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	docs, _ := load.Decode("doc0", []byte(scale))
	changed, _ := load.Decode("doc0", []byte(strings.Replace(scale, "'false'", "'true'", 1)))
	if docs.Uncovered[0].Barrier() == changed.Uncovered[0].Barrier() {
		t.Error("another content is the same barrier")
	}
}
