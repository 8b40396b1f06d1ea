package fieldperm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

func written(writes ...endpoint.Write) func(*compile.Entry) {
	return func(e *compile.Entry) { e.Writes = writes }
}

func values(texts ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		out[i] = json.RawMessage(text)
	}
	return out
}

func writtenEntries() []compile.Entry {
	return append(gadgetEntries(),
		entry(`.metadata.labels["generation"]`, "", written(
			endpoint.Write{On: "CREATE", Becomes: json.RawMessage(`"1"`)},
			endpoint.Write{On: "UPDATE", With: ".spec.args", Becomes: json.RawMessage(`"1"`)},
			endpoint.Write{On: "UPDATE", With: ".spec.args", Present: true, Counts: true},
		)),
		entry(`.metadata.labels["named"]`, "", written(endpoint.Write{On: "CREATE", Copies: ".metadata.name"})),
		entry(`.metadata.labels["example.com/written"]`, "", written(endpoint.Write{On: "UPDATE", With: ".spec.args", Becomes: json.RawMessage(`"x"`)})),
		entry(".spec.plain", "", written(
			endpoint.Write{On: "CREATE", With: ".spec.note", Is: values(`"gives"`), Becomes: json.RawMessage(`"given"`)},
			endpoint.Write{On: "UPDATE", With: ".spec.note", Is: values(`"drops"`, `"takes"`), Present: true, Removed: true},
			endpoint.Write{On: "UPDATE", With: ".spec.note", Is: values(`"resets"`), From: json.RawMessage(`"a"`), Becomes: json.RawMessage(`"b"`)},
		)),
		entry(".extra", "", written(endpoint.Write{On: "CREATE", Becomes: json.RawMessage(`"new"`)})),
	)
}

// TestD13_FieldsThatTheServerWritesBecauseOfAnotherField: the change is free only together with that field, and only with the value that the
// API server writes.
func TestD13_FieldsThatTheServerWritesBecauseOfAnotherField(t *testing.T) {
	k, none := compileEntries(t, writtenEntries())
	const args = "modified .spec.args: * specification"
	own := func(operation string) string {
		return operation + ` .metadata.labels["generation"]: * metadata labels label label(generation)`
	}
	for _, c := range []struct {
		name, old, new string
		want           []string
	}{
		{"with its cause", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"2"}},"spec":{"args":["b"]}}`, []string{args}},
		{"without its cause", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"2"}},"spec":{"args":["a"]}}`, []string{own("modified")}},
		{"another value", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"3"}},"spec":{"args":["b"]}}`, []string{own("modified"), args}},
		{"the same number in another spelling", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"02"}},"spec":{"args":["b"]}}`, []string{own("modified"), args}},
		{"a text", `{"metadata":{"labels":{"generation":"x"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"x1"}},"spec":{"args":["b"]}}`, []string{own("modified"), args}},
		{"the first", `{"metadata":{"labels":{}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["b"]}}`, []string{args}},
		{"the first again", `{"metadata":{"labels":{"generation":"7"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["b"]}}`, []string{own("modified"), args}},
		{"taken away", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{}},"spec":{"args":["b"]}}`, []string{own("removed"), args}},
		{"the cause with another spelling is the same", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"2"}},"spec":{"args":["\u0061"]}}`, []string{own("modified")}},
		{"a copy is one of new objects", `{"metadata":{"name":"n"},"spec":{"args":["a"]}}`, `{"metadata":{"name":"n","labels":{"named":"n"}},"spec":{"args":["b"]}}`, []string{`added .metadata.labels["named"]: * metadata labels label label(named)`, args}},
		{"what new objects get is no gift to others", `{"spec":{"args":["a"]}}`, `{"extra":"new","spec":{"args":["b"]}}`, []string{"added .extra: *", args}},
		{"the object itself is no cause once it is there", `{"extra":"old"}`, `{"extra":"new","spec":{"args":["b"]}}`, []string{"modified .extra: *", "added .spec.args: * specification"}},
	} {
		t.Run(c.name, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// TestD13_TheValueOfTheCause: if the API server writes the field only for some values of the cause, other values do not free the field.
func TestD13_TheValueOfTheCause(t *testing.T) {
	k, none := compileEntries(t, writtenEntries())
	for _, c := range []struct {
		note, old, new string
		free           bool
	}{
		{"drops", `,"plain":"a"`, ``, true}, {"takes", `,"plain":"z"`, ``, true},
		{"drops", `,"plain":"a"`, `,"plain":"b"`, false}, {"drops", ``, `,"plain":"b"`, false}, {"keeps", `,"plain":"a"`, ``, false},
		{"resets", `,"plain":"a"`, `,"plain":"b"`, true}, {"resets", `,"plain":"c"`, `,"plain":"b"`, false}, {"resets", ``, `,"plain":"b"`, false},
		{"gives", ``, `,"plain":"given"`, false},
	} {
		rs := changes(t, k, none, `{"spec":{"note":"before"`+c.old+`}}`, `{"spec":{"note":"`+c.note+`"`+c.new+`}}`)
		if free := !charges(rs, ".spec.plain"); free != c.free {
			t.Errorf("note %q, %s becomes %s: %v", c.note, c.old, c.new, renderAll(rs))
		}
	}
}

func charges(rs []Requirement, path string) bool {
	for i := range rs {
		if rs[i].Path.String() == path {
			return true
		}
	}
	return false
}

// TestD13_OnCreate: the creation of an object is the cause of the values that the API server gives to every new object, and the creation
// itself is charged.
func TestD13_OnCreate(t *testing.T) {
	k, none := compileEntries(t, writtenEntries())
	expectDiff(t, k, none, "", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]},"extra":"new"}`, "added .spec.args: * specification")
	expectDiff(t, k, none, "", `{"extra":"new"}`)
	expectDiff(t, k, none, "", `{"extra":"mine"}`, "added .extra: *")
	expectDiff(t, k, none, "", `{"metadata":{"name":"n","labels":{"named":"n"}},"spec":{"args":["a"]}}`, "added .spec.args: * specification")
	expectDiff(t, k, none, "", `{"metadata":{"name":"n","labels":{"named":"m"}},"spec":{"args":["a"]}}`,
		`added .metadata.labels["named"]: * metadata labels label label(named)`, "added .spec.args: * specification")
	for note, free := range map[string]bool{"gives": true, "keeps": false} {
		rs, err := Diff(t.Context(), nil, []byte(`{"spec":{"note":"`+note+`","plain":"given"}}`), k, none)
		if err != nil || charges(rs, ".spec.plain") == free {
			t.Errorf("note %q: %v, %v", note, renderAll(rs), err)
		}
	}
}

// TestD13_ADefaultThatDependsOnAnotherField: only the value that a client gets that leaves the field out is free, also behind a
// barrier.
func TestD13_ADefaultThatDependsOnAnotherField(t *testing.T) {
	entries := append(gadgetEntries(), entry(".spec.plain", "", written(
		endpoint.Write{On: "CREATE", Without: ".spec.note", Becomes: json.RawMessage(`"few"`)},
		endpoint.Write{On: "CREATE", With: ".spec.note", Becomes: json.RawMessage(`"many"`)},
	)))
	for _, uncovered := range [][]string{nil, {"granular:specification"}} {
		k, set := compileEntries(t, entries, uncovered...)
		for spec, free := range map[string]bool{
			`"plain":"few"`:                           true,
			`"plain":"many"`:                          false,
			`"plain":"few","note":"x"`:                false,
			`"plain":"many","note":"x"`:               true,
			`"plain":"few","note":null`:               false,
			`"plain":"other","note":"x","args":["a"]`: false,
		} {
			rs, err := Diff(t.Context(), nil, []byte(`{"spec":{`+spec+`}}`), k, set)
			if err != nil || charges(rs, ".spec.plain") == free && !charges(rs, ".spec") {
				t.Errorf("%s, barriers %q: %v, %v", spec, uncovered, renderAll(rs), err)
			}
		}
	}
	k, none := compileEntries(t, entries)
	if rs, err := Diff(t.Context(), []byte(`{"spec":{}}`), []byte(`{"spec":{"plain":"few"}}`), k, none); err != nil || !charges(rs, ".spec.plain") {
		t.Errorf("of a stored object: %v, %v", renderAll(rs), err)
	}
}

// TestD13_ABarrierDoesNotGuardDefaultsOfNewObjects: a barrier on a default refuses other values, not new objects.
func TestD13_ABarrierDoesNotGuardDefaultsOfNewObjects(t *testing.T) {
	k, set := compileEntries(t, writtenEntries(), "granular:label(generation)", "granular:label(named)")
	for labels, charged := range map[string]string{
		`"generation":"1"`: "",
		`"generation":"2"`: `.metadata.labels["generation"]`,
		// A user that chooses the name chooses the copied value.
		`"named":"n"`: `.metadata.labels["named"]`,
	} {
		rs, err := Diff(t.Context(), nil, []byte(`{"metadata":{"name":"n","labels":{`+labels+`}},"spec":{"args":["a"]}}`), k, set)
		if err != nil {
			t.Fatal(err)
		}
		barred := ""
		for i := range rs {
			if rs[i].Barred() {
				barred += rs[i].Path.String()
			}
		}
		if barred != charged {
			t.Errorf("%s: behind the barrier is %q, want %q: %v", labels, barred, charged, renderAll(rs))
		}
	}
}

// TestD13_ABarrierInsideANewItem: a value that every item of a new object gets does not refuse a new object either. An item that is added
// to an existing object is charged as a whole.
func TestD13_ABarrierInsideANewItem(t *testing.T) {
	k, set := compileEntries(t, append(gadgetEntries(),
		entry(".spec.ports[*].target", "target", excluded), entry(".spec.ports[*].protocol", "protocol", excluded),
		entry(".spec.ports[*].target", "", written(
			endpoint.Write{On: "CREATE", Becomes: json.RawMessage(`"same"`)}, endpoint.Write{On: "CREATE", Copies: ".spec.note"},
		)),
	))
	for _, c := range []struct {
		name, old, port string
		want            []string
	}{
		{"the constant", "", `{"port":1,"target":"same"}`, nil},
		{"another value", "", `{"port":1,"target":"other"}`, []string{"target"}},
		{"a copy of a value of the client", "", `{"port":1,"target":"note"}`, []string{"target"}},
		{"a declared default", "", `{"port":1,"protocol":"TCP"}`, nil},
		{"another than the default", "", `{"port":1,"protocol":"UDP"}`, []string{"protocol"}},
		{"in an object that is there", `{"spec":{"note":"note","ports":[{"port":2}]}}`, `{"port":2},{"port":1,"protocol":"TCP","target":"same"}`, []string{"protocol", "target"}},
	} {
		var old []byte
		if c.old != "" {
			old = []byte(c.old)
		}
		rs, err := Diff(t.Context(), old, []byte(`{"spec":{"note":"note","ports":[`+c.port+`]}}`), k, set)
		if err != nil {
			t.Fatal(err)
		}
		var barred []string
		for i := range rs {
			if rs[i].Barred() {
				path := rs[i].Path.String()
				barred = append(barred, path[strings.LastIndex(path, ".")+1:])
			}
		}
		if !slices.Equal(barred, c.want) {
			t.Errorf("%s: behind barriers are %q, want %q: %v", c.name, barred, c.want, renderAll(rs))
		}
	}
}

// TestD13_AServerWriteDoesNotLiftABarrier: a change behind a barrier in an existing object is charged, even if the API server made it.
func TestD13_AServerWriteDoesNotLiftABarrier(t *testing.T) {
	k, set := compileEntries(t, writtenEntries(), "granular:label(generation)")
	rs := changes(t, k, set, `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"2"}},"spec":{"args":["b"]}}`)
	if len(rs) != 2 || !rs[0].Barred() {
		t.Errorf("requirements %v, want the label behind its barrier and the arguments", renderAll(rs))
	}
	// A recorded write of one key does not remove it from the guard of the keys with its prefix.
	k, none := compileEntries(t, append(writtenEntries(), entry(`.metadata.labels["example.com/"]`, "ours", excluded)))
	rs = changes(t, k, none, `{"metadata":{"labels":{}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"example.com/written":"x"}},"spec":{"args":["b"]}}`)
	if len(rs) != 2 || !rs[0].Barred() {
		t.Errorf("requirements %v, want the label behind the barrier of its prefix and the arguments", renderAll(rs))
	}
}

// TestD13_AServerWriteDoesNotLiftABarrierInside: a barrier inside the value that the API server makes because of another field holds too, and nothing else is
// charged.
func TestD13_AServerWriteDoesNotLiftABarrierInside(t *testing.T) {
	byServer := entry(".spec.tree", "", written(endpoint.Write{On: "UPDATE", With: ".spec.args", Becomes: json.RawMessage(`{"value":"x","child":{"value":"y"}}`)}))
	old, new := `{"spec":{"args":["a"]}}`, `{"spec":{"args":["b"],"tree":{"value":"x","child":{"value":"y"}}}}`
	k, none := compileEntries(t, append(gadgetEntries(), byServer))
	expectDiff(t, k, none, old, new, "modified .spec.args: * specification")
	k, none = compileEntries(t, append(gadgetEntries(), byServer, entry(".spec.tree.child.value", "secret", excluded)))
	rs := changes(t, k, none, old, new)
	if len(rs) != 2 || !charges(rs, ".spec.tree.child.value") || !slices.ContainsFunc(rs, func(r Requirement) bool { return r.Barred() }) {
		t.Errorf("requirements %v, want the value behind its barrier and the arguments", renderAll(rs))
	}
}
