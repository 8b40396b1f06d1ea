package fieldperm

import (
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// inStatus holds for values and owners in the status, as a set about the status does for a write of an object that stores its status.
var inStatus = schema.Extent{StatusOnly: true, StatusValues: true}

// statusSafe has a struct spec and a struct status with the given fields in both versions.
func statusSafe(spec, status string) string {
	return `{"type":"object","properties":{"spec":{"type":"object","properties":{` + spec + `}},"status":{"type":"object","properties":{` + status + `}}}}`
}

// C2, D4: a set about the status holds for its values in a write of the object, and for no other value.
func TestC2_D4_ABarrierInTheStatusHoldsForValuesThere(t *testing.T) {
	const text = `{"type":"string"}`
	typ := statusSafe(`"secret":`+text, `"secret":`+text)
	k := safesOf(t, vouched+quoted(`{"v1":[`+permission(".spec.secret", "secret", "")+","+permission(".status.secret", "secret", "")+`],"v2":[]}`), typ, typ)("v1")
	one, hidden := `"spec":{"secret":"s"},"status":{"secret":"s"}`, verb(t, secretVerb)
	for _, set := range []schema.VerbSet{{hidden: inStatus}, {verbs.All(): inStatus}, {hidden: inStatus, verbs.All(): {StatusOnly: true}}, {hidden: {OwnersOnly: true, StatusValues: true}}} {
		barrier := secretVerb
		if _, isAll := set[hidden]; !isAll {
			barrier = "granular:*"
		}
		for name, c := range map[string]struct {
			old, new string
			want     bool
		}{
			"a value in the status":     {one, `"spec":{"secret":"s"},"status":{"secret":"t"}`, true},
			"the status is removed":     {one, `"spec":{"secret":"s"}`, true},
			"the status is added":       {`"spec":{"secret":"s"}`, one, true},
			"the status is null":        {one, `"spec":{"secret":"s"},"status":null`, true},
			"the status stands twice":   {one, `"spec":{"secret":"s"},"status":{"secret":"s"},"status":{"secret":"t"}`, true},
			"a value beside the status": {one, `"spec":{"secret":"t"},"status":{"secret":"s"}`, false},
			"a name of the object":      {one, `"spec":{"secret":"s"},"x":"y","status":{"secret":"s"}`, false},
		} {
			if got := asks(t, k, set, object("v1", c.old), object("v1", c.new), barrier); got != c.want {
				t.Errorf("%v, %s: %t", set, name, got)
			}
		}
		got, err := Diff(t.Context(), nil, []byte(object("v1", one)), k, set)
		barred := 0
		for i := range got {
			if got[i].Barrier >= 0 {
				barred++
				if got[i].Path.Top() != "status" {
					t.Errorf("%v: of a new object, %s is barred", set, got[i].Path)
				}
			}
		}
		if err != nil || barred != 1 {
			t.Errorf("%v: of a new object: %q, %v", set, renderAll(got), err)
		}
	}
}

// C3, D4: a write through a lossy version may change what it does not show of the status. A field may be in the status of another version.
func TestC3_D4_ABarrierInTheStatusHoldsForHiddenValues(t *testing.T) {
	const text = `{"type":"string"}`
	secret, hides := permission(".status.secret", "secret", ""), statusSafe(`"a":`+text, "")
	shows := statusSafe(`"b":`+text, `"secret":`+text)
	lossy := safesOf(t, said(secret, ""), shows, hides)("v2")
	renames := safesOf(t, lossless+said(secret, ""), shows, hides)("v2")
	old, changed, label := object("v2", `"spec":{"a":"s"}`), object("v2", `"spec":{"a":"t"}`), `{"apiVersion":"g.example/v2","metadata":{"name":"x","labels":{"a":"b"},"managedFields":[]},"spec":{"a":"s"}}`
	hidden, owners := verb(t, secretVerb), schema.Extent{StatusOnly: true}
	for name, c := range map[string]struct {
		kind    *schema.Kind
		set     schema.VerbSet
		new     string
		barrier string
		want    bool
	}{
		"lossy":                       {lossy, schema.VerbSet{hidden: inStatus}, changed, secretVerb, true},
		"lossy, a label":              {lossy, schema.VerbSet{hidden: inStatus}, label, secretVerb, true},
		"lossy, every verb":           {lossy, schema.VerbSet{verbs.All(): inStatus}, label, "granular:*", true},
		"lossy, owners alone":         {lossy, schema.VerbSet{hidden: owners}, changed, secretVerb, false},
		"lossy, owners beside values": {lossy, schema.VerbSet{hidden: owners, verb(t, "granular:g.example/other"): inStatus}, changed, secretVerb, false},
		"lossy, owners of every verb": {lossy, schema.VerbSet{verbs.All(): owners}, changed, "granular:*", false},
		"renamed":                     {renames, schema.VerbSet{hidden: inStatus}, changed, secretVerb, true},
		"renamed, a label":            {renames, schema.VerbSet{hidden: inStatus}, label, secretVerb, true}, // The webhook may read it.
		"renamed, owners alone":       {renames, schema.VerbSet{hidden: owners}, changed, secretVerb, false},
	} {
		if got := asks(t, c.kind, c.set, old, c.new, c.barrier); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
