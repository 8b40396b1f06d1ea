package fieldperm

import (
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

func apart(e *schema.Entry) { e.Apart = true }

func apartEntries() []schema.Entry {
	return append(gadgetEntries(),
		entry(`.metadata.labels["a/applied"]`, "applied", apart),
		entry(`.metadata.labels["confine/"]`, "confinement", apart),
	)
}

// TestC7_AVerbThatStandsApart: no verb above it counts, except granular:*.
func TestC7_AVerbThatStandsApart(t *testing.T) {
	k, none := compileEntries(t, apartEntries())
	for _, c := range []struct{ name, old, new, want string }{
		{"added", `{}`, `{"metadata":{"labels":{"a/applied":"x"}}}`, `added .metadata.labels["a/applied"]: * applied`},
		{"modified", `{"metadata":{"labels":{"a/applied":"x"}}}`, `{"metadata":{"labels":{"a/applied":"y"}}}`, `modified .metadata.labels["a/applied"]: * applied`},
		{"its neighbour of the same prefix", `{}`, `{"metadata":{"labels":{"a/other":"x"}}}`, `added .metadata.labels["a/other"]: * metadata labels label label(a)`},
		{"a key of a prefix", `{}`, `{"metadata":{"labels":{"confine/web":"x"}}}`, `added .metadata.labels["confine/web"]: * confinement`},
		{"a longer prefix is another", `{}`, `{"metadata":{"labels":{"confine2/web":"x"}}}`, `added .metadata.labels["confine2/web"]: * metadata labels label label(confine2)`},
		{"the prefix without a slash is another key", `{}`, `{"metadata":{"labels":{"confine":"x"}}}`, `added .metadata.labels["confine"]: * metadata labels label label(confine)`},
		{"an escaped key is the same", `{}`, `{"metadata":{"labels":{"\u0061/applied":"x"}}}`, `added .metadata.labels["a/applied"]: * applied`},
	} {
		t.Run(c.name, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want) })
	}
}

// TestC7_ABarrierAboveStillHolds: a barrier above a verb that stands apart still holds for users with update.
func TestC7_ABarrierAboveStillHolds(t *testing.T) {
	for uncovered, want := range map[string]string{
		"granular:labels":  `added .metadata.labels["a/applied"]: (*) applied`,
		"granular:label":   `added .metadata.labels["a/applied"]: (*) applied`,
		"granular:applied": `added .metadata.labels["a/applied"]: (*) applied`,
		"granular:*":       `added .metadata.labels["a/applied"]: * applied`,
	} {
		k, set := compileEntries(t, apartEntries(), uncovered)
		expectDiff(t, k, set, `{}`, `{"metadata":{"labels":{"a/applied":"x"}}}`, want)
	}
	k, set := compileEntries(t, apartEntries(), "granular:labels")
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
