package generators

import (
	"slices"
	"testing"
)

// TestA2_RulesOfALossyVersion: a write of any subresource through a lossy version may change a field behind a barrier.
func TestA2_RulesOfALossyVersion(t *testing.T) {
	compiled, _ := compile(t, string(definitionYAML("{}", "a: {type: string, x-kubernetes-permission-verb: example.com/a, x-kubernetes-permission-excluded: true}", "")))
	got := lines(Uncovered(compiled, nil, nil))
	for _, want := range []string{"example.com: widgets", "example.com: widgets/status", "example.com: widgets/scale"} {
		if !slices.Contains(got, want) {
			t.Errorf("rules are %q, want %q among them", got, want)
		}
	}
}
