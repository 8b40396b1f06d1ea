package configfile

import (
	"slices"
	"testing"

	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A function of Kubernetes' CEL that yields a list of strings is either in sources, or is known to yield a list that k8s.io/apiserver
// accepts. The test fails when a release adds one.
func TestKEP3331_EveryFunctionThatYieldsStringsIsKnown(t *testing.T) {
	env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	var found []string
	for name, function := range env.Functions() {
		for _, overload := range function.OverloadDecls() {
			if yieldsStrings(overload.ResultType()) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	want := []string{"sort"} // It passes an empty list on, and is among the operators.
	for name := range sources {
		want = append(want, name)
	}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("functions that yield strings are %q, sources are %q", found, want)
	}
}

// yieldsStrings reports whether a type is a list of strings or contains one.
func yieldsStrings(of *types.Type) bool {
	if of.Kind() == types.ListKind {
		return of.Parameters()[0].Kind() == types.StringKind
	}
	return slices.ContainsFunc(of.Parameters(), yieldsStrings)
}
