package fieldperm

import (
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

func keyEntries() []compile.Entry {
	return append(gadgetEntries(),
		entry(`.metadata.labels["a/applied"]`, "applied"),
		entry(`.metadata.labels["confine/"]`, "confinement"),
	)
}

// TestC1_TheVerbOfAKeyStandsInPlaceOfThatOfItsPrefix: holders of the verb of the prefix do not have the key. Those of the verbs above do.
func TestC1_TheVerbOfAKeyStandsInPlaceOfThatOfItsPrefix(t *testing.T) {
	k, none := compileEntries(t, keyEntries())
	for _, c := range []struct{ name, old, new, want string }{
		{"added", `{}`, `{"metadata":{"labels":{"a/applied":"x"}}}`, `added .metadata.labels["a/applied"]: * metadata labels applied`},
		{"modified", `{"metadata":{"labels":{"a/applied":"x"}}}`, `{"metadata":{"labels":{"a/applied":"y"}}}`, `modified .metadata.labels["a/applied"]: * metadata labels applied`},
		{"its neighbour of the same prefix", `{}`, `{"metadata":{"labels":{"a/other":"x"}}}`, `added .metadata.labels["a/other"]: * metadata labels label label(a)`},
		{"a key of a prefix", `{}`, `{"metadata":{"labels":{"confine/web":"x"}}}`, `added .metadata.labels["confine/web"]: * metadata labels confinement`},
		{"a longer prefix is another", `{}`, `{"metadata":{"labels":{"confine2/web":"x"}}}`, `added .metadata.labels["confine2/web"]: * metadata labels label label(confine2)`},
		{"the prefix without a slash is another key", `{}`, `{"metadata":{"labels":{"confine":"x"}}}`, `added .metadata.labels["confine"]: * metadata labels label label(confine)`},
		{"an escaped key is the same", `{}`, `{"metadata":{"labels":{"\u0061/applied":"x"}}}`, `added .metadata.labels["a/applied"]: * metadata labels applied`},
	} {
		t.Run(c.name, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want) })
	}
}

// TestC2_ABarrierOfAllKeysHoldsForAKeyWithItsOwnVerb: the entry for the key lifts no barrier, and its verb passes none on all keys.
func TestC2_ABarrierOfAllKeysHoldsForAKeyWithItsOwnVerb(t *testing.T) {
	for uncovered, want := range map[string][]string{
		"granular:labels":   {`added .metadata.labels["a/applied"]: (*) (metadata) labels applied`},
		"granular:label":    {`added .metadata.labels["a/applied"]: * metadata labels applied`, `added .metadata.labels["a/applied"]: label label(a)`},
		"granular:label(a)": {`added .metadata.labels["a/applied"]: * metadata labels applied`, `added .metadata.labels["a/applied"]: label(a)`},
		"granular:applied":  {`added .metadata.labels["a/applied"]: (*) (metadata) (labels) applied`},
		"granular:*":        {`added .metadata.labels["a/applied"]: * metadata labels applied`},
	} {
		k, set := compileEntries(t, keyEntries(), uncovered)
		expectDiff(t, k, set, `{}`, `{"metadata":{"labels":{"a/applied":"x"}}}`, want...)
	}
	k, set := compileEntries(t, keyEntries(), "granular:labels")
	rs := changes(t, k, set, `{}`, `{"metadata":{"labels":{"a/applied":"x"}}}`)
	if len(rs) != 1 || !rs[0].Barred() {
		t.Errorf("requirements %v, want one behind a barrier", rs)
	}
}

func changes(t *testing.T, k *schema.Kind, uncovered schema.VerbSet, old, new string) []Requirement {
	t.Helper()
	rs, err := Diff(t.Context(), []byte(old), []byte(new), k, uncovered)
	if err != nil {
		t.Fatal(err)
	}
	return rs
}
