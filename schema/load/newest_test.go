package load

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/version"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// C3: these are the fields of served built-in versions that the newest version of the kind calls otherwise or lacks. A kind is added here
// when it is known that no write through the newest version changes what such a field holds.
func TestC3_FieldsThatTheNewestBuiltInVersionLacks(t *testing.T) {
	topology, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	request := []string{"adminAccess", "allocationMode", "capacity", "count", "derivedAttributes", "deviceClassName", "selectors", "tolerations"}
	below := func(place string) []string {
		var out []string
		for _, name := range request {
			out = append(out, "v1beta1 "+place+".devices.requests[*]."+name)
		}
		return out
	}
	known := map[string][]string{
		// The newest version has them in other places.
		"HorizontalPodAutoscaler": {"v1 .spec.targetCPUUtilizationPercentage", "v1 .status.currentCPUUtilizationPercentage"},
		"ResourceClaim":           below(".spec"),
		"ResourceClaimTemplate":   below(".spec.spec"),
		"ResourceSlice":           {"v1beta1 .spec.devices[*].basic"},
		// The newest version lacks them. The specification is immutable, and the API server refuses a write that would lose them: test/fields.
		"PodCertificateRequest": {"v1beta1 .spec.pkixPublicKey", "v1beta1 .spec.proofOfPossession"},
	}
	found := map[string][]string{}
	for _, e := range endpoint.All() {
		if e.Subresource != "" || !e.Whole || len(e.Versions) < 2 {
			continue
		}
		versions := slices.SortedFunc(slices.Values(e.Versions), func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		newest := topology.Kinds[gvk(e.Body.Group, versions[0], e.Body.Kind)]
		for _, older := range versions[1:] {
			name := topology.Kinds[gvk(e.Body.Group, older, e.Body.Kind)]
			l := &lacking{types: topology.Types, seen: map[[2]string]bool{}}
			l.walk(older+" ", smd.TypeRef{NamedType: &name}, smd.TypeRef{NamedType: &newest})
			if len(l.paths) > 0 {
				found[e.Body.Kind] = append(found[e.Body.Kind], l.paths...)
			}
		}
	}
	if !maps.EqualFunc(found, known, slices.Equal) {
		t.Errorf("found %v, known %v: find out whether a write through the newest version loses the fields", found, known)
	}
}

// lacking finds the fields of one type that another lacks.
type lacking struct {
	types *smd.Schema
	seen  map[[2]string]bool
	paths []string
}

func (l *lacking) walk(path string, older, newer smd.TypeRef) {
	a, known := l.types.Resolve(older)
	b, alsoKnown := l.types.Resolve(newer)
	if !known || !alsoKnown {
		return
	}
	if older.NamedType != nil && newer.NamedType != nil {
		pair := [2]string{*older.NamedType, *newer.NamedType}
		if l.seen[pair] || pair[0] == pair[1] {
			return
		}
		l.seen[pair] = true
	}
	switch {
	case a.Map != nil && b.Map != nil:
		for _, field := range a.Map.Fields {
			if other, ok := b.Map.FindField(field.Name); ok {
				l.walk(path+"."+field.Name, field.Type, other.Type)
			} else {
				l.paths = append(l.paths, path+"."+field.Name)
			}
		}
		l.walk(path+"[*]", a.Map.ElementType, b.Map.ElementType)
	case a.List != nil && b.List != nil:
		l.walk(path+"[*]", a.List.ElementType, b.List.ElementType)
	}
}
