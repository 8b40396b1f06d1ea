package sets_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// widgies is a definition whose version v1beta1 has the given subresources, and with the given conversion.
func widgies(subresources, conversion string) string {
	const fields = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}, status: {type: object, properties: {phase: {type: string}}}}}}"
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgies.example.com}\nspec:\n" +
		"  group: example.com\n  scope: Namespaced\n  names: {kind: Widgy, plural: widgies, singular: widgy, listKind: WidgyList}\n" + conversion + "  versions:\n" +
		"  - {name: v1, served: true, storage: true, subresources: {status: {}}, " + fields + "}\n" +
		"  - {name: v1beta1, served: true, storage: false, " + subresources + fields + "}\n"
}

const (
	hasStatus = "subresources: {status: {}}, "
	byWebhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com'}}}\n"
	onWidgy   = "{apiGroups: [example.com], resources: [widgies/status]}"
)

// C2: a version without the subresource status stores the status in writes of the object, and a set about the status holds there.
func TestC2_D11_ASetAboutTheStatusHoldsWhereTheObjectStoresIt(t *testing.T) {
	const all, group, both = "{apiGroups: ['*'], resources: ['*/status']}", "{apiGroups: [example.com], resources: ['*/status']}", onWidgy + ", {apiGroups: [example.com], resources: [widgies]}"
	const inGroups = "{apiGroups: ['*'], resources: [widgies/status]}"
	values, owners := schema.Extent{StatusOnly: true, StatusValues: true}, schema.Extent{StatusOnly: true}
	isStatus := "{name: a, expression: \"request.?subResource.orValue('') == 'status'\"}"
	onUser := "{name: a, expression: 'request.userInfo.username == \"bob\"'}"
	for name, c := range map[string]struct {
		definition, resources, conditions string
		want                              schema.VerbSet
	}{
		"exact":                               {widgies("", ""), onWidgy, "", schema.VerbSet{verbs.All(): values}},
		"of all resources":                    {widgies("", ""), all, "", schema.VerbSet{verbs.All(): values}},
		"of all resources of the group":       {widgies("", ""), group, "", schema.VerbSet{verbs.All(): values}},
		"of the resource in all groups":       {widgies("", ""), inGroups, "", schema.VerbSet{verbs.All(): values}},
		"with the object":                     {widgies("", ""), both, "", schema.VerbSet{verbs.All(): {}}},
		"every version has the subresource":   {widgies(hasStatus, ""), onWidgy, "", schema.VerbSet{verbs.All(): owners}},
		"a lossy version has the subresource": {widgies(hasStatus, byWebhook), onWidgy, "", schema.VerbSet{verbs.All(): values}},
		"a condition on the subresource":      {widgies("", ""), "{apiGroups: [example.com], resources: [widgies]}", isStatus, schema.VerbSet{verbs.All(): values}},
		"a condition that is false":           {widgies("", ""), onWidgy, onUser, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFew(t, c.definition, setOf("'granular:*'", c.resources, c.conditions))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			// The version of the request does not count: through a version with the subresource no change of the status is seen.
			for _, version := range []string{"v1", "v1beta1"} {
				ref := schema.ResourceRef{Group: "example.com", Version: version, Resource: "widgies"}
				got, err := s.Uncovered(t.Context(), ref, ofAlice)
				if err != nil || !maps.Equal(got, c.want) {
					t.Errorf("%s: %v, %v; want %v", version, got, err, c.want)
				}
				ref.Subresource = "scale"
				if got, _ := s.Uncovered(t.Context(), ref, ofAlice); len(got.ForStatusValues()) > 0 && !strings.Contains(c.resources, "[widgies]") {
					t.Errorf("%s, the Scale: %v", version, got)
				}
			}
		})
	}
}

// C2: of the built-in resources only Nodes store the status when they are created.
func TestC2_D11_ASetAboutTheStatusHoldsForNewNodes(t *testing.T) {
	s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: ['*'], resources: ['*/status']}", ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for resource, want := range map[string]schema.Extent{"nodes": {StatusOnly: true, StatusValues: true}, "pods": {StatusOnly: true}} {
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Version: "v1", Resource: resource}, ofAlice)
		if err != nil || !maps.Equal(got, schema.VerbSet{verbs.All(): want}) {
			t.Errorf("%s: %v, %v; want %v", resource, got, err, want)
		}
	}
}

// C2: a barrier from several sets holds for the changes of all of them.
func TestC2_D8_ExtentsAreJoined(t *testing.T) {
	all, owners, inStatus, ofStatus := schema.Extent{}, schema.Extent{OwnersOnly: true}, schema.Extent{StatusOnly: true}, schema.Extent{StatusOnly: true, StatusValues: true}
	for _, c := range []struct{ a, b, want schema.Extent }{
		{all, ofStatus, all},
		{owners, inStatus, owners},
		{owners, ofStatus, schema.Extent{OwnersOnly: true, StatusValues: true}},
		{inStatus, ofStatus, ofStatus},
		{inStatus, inStatus, inStatus},
	} {
		for _, pair := range [][2]schema.Extent{{c.a, c.b}, {c.b, c.a}} {
			got := schema.VerbSet{}
			got.Add(verbs.All(), pair[0])
			got.Add(verbs.All(), pair[1])
			if got[verbs.All()] != c.want {
				t.Errorf("%+v and %+v: %+v, want %+v", pair[0], pair[1], got[verbs.All()], c.want)
			}
		}
	}
}

// C2: without sets a custom resource has no barriers.
func TestC2_NoSetIsNoBarrier(t *testing.T) {
	s, errs := compileFew(t, widgies("", ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ref := schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "widgies"}
	if got, err := s.Uncovered(t.Context(), ref, ofAlice); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
