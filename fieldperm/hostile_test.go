package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/schematest"
)

// D8: a short text may own paths that take gigabytes to write out. A user that sends one is charged for all owners, before any path is
// resolved. The owners that a stored object can have stay below the bound.
func TestD8_OwnersOfTooManyAndTooDeepPathsAreChargedAsAWhole(t *testing.T) {
	k, none := compileGadget(t)
	fields := func(depth, leaves int) string {
		var paths []string
		for i := range leaves {
			paths = append(paths, fmt.Sprintf(`"f:%d":{}`, i+1))
		}
		return strings.Repeat(`{"f:extra":`, depth) + "{" + strings.Join(paths, ",") + "}" + strings.Repeat("}", depth)
	}
	for _, c := range []struct {
		depth, leaves int
		whole         bool
	}{{3000, 1000, true}, {1000, 3000, true}, {20, 900, false}, {900, 20, false}} {
		with, without := owned("|", owner("a", "Apply", fields(c.depth, c.leaves))), owned("|")
		for _, pair := range [][2]string{{without, with}, {with, without}} {
			got, err := Diff(t.Context(), []byte(pair[0]), []byte(pair[1]), k, none)
			if err != nil {
				t.Fatal(err)
			}
			if whole := len(got) == 5 && got[0].Path.String() == "."; whole != c.whole || !whole && len(got) != c.leaves {
				t.Errorf("%d paths of %d elements: %d requirements, the whole %t", c.leaves, c.depth, len(got), whole)
			}
		}
	}
}

// TestD8_AnApplyToALargeObjectIsChargedAsAWhole: the next apply is not simulated.
func TestD8_AnApplyToALargeObjectIsChargedAsAWhole(t *testing.T) {
	k, none := compileGadget(t)
	for n, want := range map[int]bool{1_000: false, 12_000: true} {
		var paths, values []string
		for i := range n {
			paths, values = append(paths, fmt.Sprintf(`"f:x%d":{}`, i)), append(values, fmt.Sprintf(`"x%d":1`, i))
		}
		object := func(manager string) string {
			return owned(`,"name":"x"|,"extra":{`+strings.Join(values, ",")+"}", owner(manager, "Apply", `{"f:extra":{`+strings.Join(paths, ",")+"}}"))
		}
		got, err := Diff(t.Context(), []byte(object("a")), []byte(object("b")), k, none)
		if whole := slices.ContainsFunc(got, func(r Requirement) bool { return r.Path.IsRoot() }); err != nil || whole != want {
			t.Errorf("%d values: the whole %t, %v", n, whole, err)
		}
	}
}

// D8: no API server reads a number beyond float64, so no apply of it is simulated.
func TestD8_AnApplyToANumberBeyondFloat64IsChargedAsAWhole(t *testing.T) {
	k, none := compileGadget(t)
	for number, want := range map[string]bool{"1e300": false, "1e400": true} {
		object := func(manager string) string {
			return owned(`,"name":"x"|,"extra":{"a":1,"b":`+number+`}`, owner(manager, "Apply", `{"f:extra":{"f:a":{}}}`))
		}
		got, err := Diff(t.Context(), []byte(object("a")), []byte(object("b")), k, none)
		if whole := slices.ContainsFunc(got, func(r Requirement) bool { return r.Path.IsRoot() }); err != nil || whole != want {
			t.Errorf("%s: the whole %t, %v", number, whole, err)
		}
	}
}

// D10: invalid managedFields that stay the same are no change, however they are spelled.
func TestD10_OwnersInAnotherSpellingAreTheSame(t *testing.T) {
	k, none := compileGadget(t)
	odd := `{"manager":"a","operation":"Odd","x":[1,{"b":2,"c":3}]}`
	respelled := `{"operation":"\u004fdd","x":[1.0,{"c":3,"b":2}],"manager":"a"}`
	own := owner("me", "Apply", `{"f:spec":{}}`)
	for _, c := range []struct{ rule, old, new string }{
		{"no list", `{"metadata":{"managedFields":{"a":1,"b":2}}}`, `{"metadata":{"managedFields":{"b":2.0,"a":1}}}`},
		{"entries of no known form", owned("|", odd, own), owned("|", respelled, own)},
		{"an unknown entry beside one that says that it has no subresource", owned("|", odd, own), owned("|", odd, strings.Replace(own, `"manager"`, `"subresource":"","manager"`, 1))},
		{"an unknown null", owned("|", strings.Replace(own, `"manager"`, `"y":null,"manager"`, 1)), owned("|", own)},
	} {
		t.Run(c.rule, func(t *testing.T) {
			expectDiff(t, k, none, c.old, c.new)
			expectDiff(t, k, none, c.new, c.old)
		})
	}
	replicas, later := owner("me", "Apply", `{"f:spec":{"f:replicas":{}}}`), "2027"
	expectDiff(t, k, none, owned(`|,"spec":{"replicas":2}`, odd, replicas), owned(`|,"spec":{"replicas":3}`, respelled, strings.Replace(replicas, "2026", later, 1)), "modified .spec.replicas: * specification scale", wholeGadget)
	twice := strings.Replace(own, `"manager"`, `"y":null,"z":null,"y":null,"manager"`, 1)
	expectDiff(t, k, none, owned("|", own), owned("|", twice), irregularGadget)
}

// D8: the lookup of a path continues from the element where the previous path differs, whatever was looked up in between.
func TestD8_PathsAreResolvedInAnyOrder(t *testing.T) {
	k, none := compileGadget(t)
	const spec = `|,"spec":{"plain":"p","replicas":1,"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}`
	item := func(name, fields string) string { return fmt.Sprintf(`"k:{\"name\":\"%s\"}":%s`, name, fields) }
	first := owner("m", "Update", `{"f:spec":{"f:containers":{`+item("a", `{"f:image":{}}`)+`,`+item("b", `{"f:image":{}}`)+`},"f:gone":{"f:deeper":{}},"f:plain":{}}}`)
	second := owner("n", "Update", `{"f:spec":{"f:containers":{`+item("b", `{"f:image":{}}`)+`},"f:gone":{},"f:plain":{},"f:replicas":{}}}`)
	expectDiff(t, k, none, owned(spec), owned(spec, first, second),
		`ownership .spec.plain: * specification`, `ownership .spec.containers[name="a"].image: * specification container container(a) image image(a)`,
		`ownership .spec.containers[name="b"].image: * specification container container(b) image image(b)`, `ownership .spec["gone"]["deeper"]: * specification`,
		`ownership .spec["gone"]: * specification`, `ownership .spec.replicas: * specification scale`)
}

// TestD8_ALargeObjectThatConversionMayEmptyIsDecided: no apply of it is simulated, but what managers own in it counts.
func TestD8_ALargeObjectThatConversionMayEmptyIsDecided(t *testing.T) {
	hpa, err := schematest.Schema(t).Kind(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"})
	if err != nil {
		t.Fatal(err)
	}
	var paths, labels []string
	for i := range 12_000 {
		paths, labels = append(paths, fmt.Sprintf(`"f:x%d":{}`, i)), append(labels, fmt.Sprintf(`"x%d":"1"`, i))
	}
	of := func(manager string) string {
		entry := strings.Replace(owner(manager, "Apply", `{"f:metadata":{"f:labels":{`+strings.Join(paths, ",")+`}},"f:spec":{}}`), "example.com/v1", "autoscaling/v2", 1)
		return `{"apiVersion":"autoscaling/v2","metadata":{"name":"x","labels":{` + strings.Join(labels, ",") + `},"managedFields":[` + entry + `]},"spec":{}}`
	}
	got, err := Diff(t.Context(), []byte(of("a")), []byte(of("b")), hpa, nil)
	if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Path.IsRoot() }) {
		t.Errorf("%d requirements, %v, want the whole object", len(got), err)
	}
}
