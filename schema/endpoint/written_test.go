package endpoint

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// D13: the generated file decodes and is sorted, and each decision is about one of its rows.
func TestD13_WrittenParses(t *testing.T) {
	all, free := Writes(), FreeWrites()
	if len(all) < 100 || len(free) < 50 || len(free) >= len(all) {
		t.Errorf("%d writes, %d of them free", len(all), len(free))
	}
	if !slices.IsSortedFunc(all, func(a, b Write) int {
		return strings.Compare(a.Kind.Group+"\x00"+a.Kind.Kind+"\x00"+a.Field, b.Kind.Group+"\x00"+b.Kind.Kind+"\x00"+b.Field)
	}) {
		t.Error("written.yaml is out of order")
	}
	for i := range all {
		w := &all[i]
		if !w.Predictable() && !w.Varies && !w.Settings && len(w.DependsOn) == 0 {
			t.Errorf("%s %s on %s: has neither the value of the field nor the reason why it is not known", w.Kind, w.Field, w.On)
		}
	}
	if written().APIServer != APIServer() {
		t.Errorf("writes of %s, endpoints of %s: record both again", written().APIServer, APIServer())
	}
}

// D13: a value that a client could have chosen needs its verb.
func TestD13_UnpredictableValuesNeedTheirVerb(t *testing.T) {
	one := json.RawMessage(`1`)
	for name, w := range map[string]Write{
		"the zero write":            {},
		"no request":                {Becomes: one},
		"an update without a cause": {On: update, Becomes: one},
		"a value that varies":       {On: create, Becomes: one, Varies: true},
		"other settings":            {On: create, Becomes: one, Settings: true},
		"several causes":            {On: create, Becomes: one, DependsOn: []string{".a", ".b"}},
		"no field that it gets":     {On: create},
		"two sources of its value":  {On: create, Becomes: one, Copies: ".metadata.name"},
	} {
		if w.Predictable() {
			t.Errorf("%s: is predictable", name)
		}
	}
	if w := (Write{On: create, Becomes: one}); !w.Predictable() {
		t.Error("a default is not predictable")
	}
	for _, w := range FreeWrites() {
		for _, c := range ChargedWrites() {
			if c.Kind == w.Kind && c.Field == w.Field && !w.Removed {
				t.Errorf("%s %s is free although it is charged by decision: %s", w.Kind, w.Field, c.Reason)
			}
		}
	}
}

func TestD13_DecodeWritesRefuses(t *testing.T) {
	const row = `{kind: A, versions: [v1], field: .a, "on": CREATE, becomes: 1}`
	for _, c := range []struct{ observed, charged, want string }{
		{`writes: [{versions: [v1], field: .a, "on": CREATE}]`, ``, "has no kind"},
		{`writes: [{kind: A, field: .a, "on": CREATE}]`, ``, "versions"},
		{`writes: [{kind: A, versions: [v1], field: .a, "on": DELETE}]`, ``, "neither CREATE nor UPDATE"},
		{`writes: [{kind: A, versions: [v1], field: .a, "on": CREATE, removed: true}]`, ``, "had nothing before"},
		{`writes: [{kind: A, versions: [v1], field: .a, "on": UPDATE, without: .b}]`, ``, "for new objects"},
		{`strange: 1`, ``, "strange"},
		{`writes: [` + row + `]`, `[{kind: A, field: .a}]`, "no reason"},
		{`writes: [` + row + `]`, `[{kind: A, field: .b, reason: x}]`, "about no write"},
		{`writes: [` + row + `]`, `[{kind: A, field: .a, reason: x, strange: y}]`, "strange"},
	} {
		if _, err := decodeWrites([]byte(c.observed), []byte(c.charged)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v; want an error with %q", c.observed, c.charged, err, c.want)
		}
	}
	if _, err := decodeWrites([]byte(`writes: [`+row+`]`), []byte(`[{kind: A, field: .a, reason: x}]`)); err != nil {
		t.Error(err)
	}
}

// TestD13_NoWriteFreesItsOwnCause: if the API server copies two fields into each other, the user needs a verb for one of them.
func TestD13_NoWriteFreesItsOwnCause(t *testing.T) {
	pod := Kind{Kind: "Pod"}
	write := func(field, with string) Write {
		return Write{Kind: pod, Field: field, On: update, With: with, Copies: with}
	}
	for name, c := range map[string]struct {
		writes []Write
		want   []string
	}{
		"one way":                 {[]Write{write(".a", ".b")}, []string{".a"}},
		"both ways":               {[]Write{write(".a", ".b"), write(".b", ".a")}, nil},
		"round":                   {[]Write{write(".a", ".b"), write(".b", ".c"), write(".c", ".a"), write(".d", ".a")}, []string{".d"}},
		"a chain":                 {[]Write{write(".a", ".b"), write(".b", ".c")}, []string{".a", ".b"}},
		"itself":                  {[]Write{write(".a", ".a")}, nil},
		"its parent":              {[]Write{write(".a.b", ".a")}, nil},
		"its child":               {[]Write{write(".a", ".a.b")}, nil},
		"the parent of the other": {[]Write{write(".a.b", ".c"), write(".c.d", ".a")}, nil},
		"of another kind":         {[]Write{write(".a", ".b"), {Kind: Kind{Kind: "Other"}, Field: ".b", On: update, With: ".a", Copies: ".a"}}, []string{".a", ".b"}},
		"a new object":            {[]Write{{Kind: pod, Field: ".a", On: create, Becomes: json.RawMessage(`1`)}, write(".b", ".a")}, []string{".a", ".b"}},
	} {
		var got []string
		for _, w := range freed(c.writes) {
			got = append(got, w.Field)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: free are %q, want %q", name, got, c.want)
		}
	}
}

// derived.yaml decodes, in order, and names no field twice with the same cause.
func TestDerived_FieldsDecode(t *testing.T) {
	all := DerivedOfPods()
	if len(all) == 0 {
		t.Fatal("no field of Pods is derived from another one")
	}
	ordered := func(a, b Derived) int { return strings.Compare(a.Field+" "+a.From, b.Field+" "+b.From) }
	if !slices.IsSortedFunc(all, ordered) || len(slices.CompactFunc(slices.Clone(all), func(a, b Derived) bool { return ordered(a, b) == 0 })) != len(all) {
		t.Error("derived.yaml is out of order, or has a pair twice")
	}
}
