package fieldperm

import (
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

func writtenWith(cause, when string) func(*schema.Entry) {
	return func(e *schema.Entry) { e.WrittenWith, e.WrittenWhen = cause, when }
}

func writtenEntries() []schema.Entry {
	return append(gadgetEntries(),
		entry(`.metadata.labels["generation"]`, "", writtenWith(".spec.args", "oldSelf == null ? self == '1' : int(self) == int(oldSelf) + 1")),
		entry(".spec.plain", "plain", writtenWith(".spec.rules", "self == null && cause == oldCause")),
		entry(".extra", "", writtenWith("", "self == 'new'")),
	)
}

// TestD13_WhatTheServerWritesBecauseOfAnotherField is free together with that field, and only as the server writes it.
func TestD13_WhatTheServerWritesBecauseOfAnotherField(t *testing.T) {
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
		{"a value on which the expression fails", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"x"}},"spec":{"args":["b"]}}`, []string{own("modified"), args}},
		{"taken away", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{}},"spec":{"args":["b"]}}`, []string{own("removed"), args}},
		{"the cause with another spelling is the same", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"2"}},"spec":{"args":["\u0061"]}}`, []string{own("modified")}},
		{"the object itself is no cause once it is there", `{"extra":"old"}`, `{"extra":"new","spec":{"args":["b"]}}`, []string{"modified .extra: *", "added .spec.args: * specification"}},
	} {
		t.Run(c.name, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// TestD13_OnCreate: a new object causes what the server gives to every new object, and is charged itself.
func TestD13_OnCreate(t *testing.T) {
	k, none := compileEntries(t, writtenEntries())
	expectDiff(t, k, none, "", `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]},"extra":"new"}`, "added .spec.args: * specification")
	expectDiff(t, k, none, "", `{"extra":"new"}`, "added .: *")
	expectDiff(t, k, none, "", `{"extra":"mine"}`, "added .extra: *")
}

// TestD13_ABarrierIsNotWrittenAway: what a barrier guards is charged, whoever wrote it.
func TestD13_ABarrierIsNotWrittenAway(t *testing.T) {
	k, set := compileEntries(t, writtenEntries(), "granular:label(generation)")
	rs := changes(t, k, set, `{"metadata":{"labels":{"generation":"1"}},"spec":{"args":["a"]}}`, `{"metadata":{"labels":{"generation":"2"}},"spec":{"args":["b"]}}`)
	if len(rs) != 2 || !rs[0].Barred() {
		t.Errorf("requirements %v, want the label behind its barrier and the arguments", renderAll(rs))
	}
}
