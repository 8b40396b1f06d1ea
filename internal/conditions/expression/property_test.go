package expression

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// drawer draws expressions and requests.
type drawer struct{ *rand.Rand }

func (d drawer) of(list ...string) string { return list[d.IntN(len(list))] }

// boolean draws an expression that is a boolean, or an error, or dyn.
func (d drawer) boolean(depth int) string {
	if depth <= 0 {
		return d.leaf()
	}
	next := func() string { return d.boolean(depth - 1) }
	switch d.IntN(12) {
	case 0, 1, 2:
		return "(" + next() + " && " + next() + ")"
	case 3, 4, 5:
		return "(" + next() + " || " + next() + ")"
	case 6:
		return "!(" + next() + ")"
	case 7:
		return "(" + next() + " ? " + next() + " : " + next() + ")"
	case 8:
		return "((" + next() + ") == (" + next() + "))"
	case 9:
		return d.of(
			`["create", request.verb].exists(x, x == `+d.text()+` && `+next()+`)`,
			`[`+d.text()+`, `+d.text()+`].all(x, dyn(x) != request.verb || `+next()+`)`,
			`optional.of(`+next()+`).optMap(b, b || b && request.name == "w").orValue(`+next()+`)`,
			`object.list.exists(y, y == `+d.text()+`)`,
			`request.userInfo.groups.exists(g, g == object.a)`,
			`request.userInfo.groups.map(g, g + request.verb).exists(g, g == `+d.text()+`)`,
			`changes.all(c, c.path.startsWith(`+d.of(`".spec"`, `request.verb`, `object.a`)+`) && "scale" in c.verbs)`,
		)
	default:
		return d.leaf()
	}
}

func (d drawer) leaf() string {
	switch d.IntN(9) {
	case 0, 1:
		return "dyn(" + d.text() + ") == " + d.text()
	case 2:
		return "dyn(" + d.text() + ") != dyn(" + d.text() + ")"
	case 3:
		return d.text() + " in " + d.list()
	case 4:
		return d.of("has(request.namespace)", "has(request.name)", "has(request.subResource)", "has(request.userInfo.extra)", "has(object.a)", "has(object.b.c)",
			"has(oldObject.a)", "has(request.verb)", "has(object.m[request.verb].x)", "has(request.dryRun)", "has(options.fieldManager)")
	case 5:
		return d.of("true", "false", "dyn(1)", `dyn("x")`, "object.flag", "oldObject.flag", "object == null", "oldObject != null", "request.dryRun")
	case 6:
		return d.of(
			`int(request.name) > 5`, `int(object.a) > int(request.verb)`, `object.n > (request.verb == "create" ? 1 : int(request.name))`,
			`object.a.matches(request.name)`, `object.a.matches("a" + request.userInfo.username)`, `size(request.userInfo.groups) > object.n`,
			`request.userInfo.username.split(":")[1] == object.a`, `duration(request.name) > duration("1s")`, `1 / size(request.name) == 0`,
			`object.list[size(request.verb)] == "x"`, `[1, 2][size(request.verb)] == 1`, `timestamp(object.a) > timestamp("2026-01-01T00:00:00Z")`,
			`object.n - -size(request.verb) - (object.n - 1) > 0`, `(object.n == 1) == (request.verb == "update")`, `request.resource == request.requestResource`,
			`sets.contains(request.userInfo.groups, [object.a])`, `optional.of(request.name).orValue(object.a) == "w"`, `object.?a.orValue(request.verb) == "w"`,
			`dyn(object.flag && request.verb == request.verb) == "x"`, `dyn(true && object.a) == "a"`, `dyn(object.a || request.verb == "x") == "a"`, `(request.verb == "update" ? object.a : "x") == "a"`,
			`{"a": request.verb, request.name: object.a}.size() == 2`, `type(request.name) == type(object.a)`)
	default:
		return "dyn(" + d.text() + ") == dyn(" + d.text() + ")"
	}
}

// text draws a string, dyn, or an error.
func (d drawer) text() string {
	return d.of("request.verb", "request.name", "request.namespace", "request.userInfo.username", `request.userInfo.extra["k"][0]`, `request.userInfo.extra["no"][0]`,
		`request.userInfo.extra["k"][9]`, "request.operation", "request.resource.resource", "request.resource.group", "request.requestResource.version", "request.subResource",
		"request.kind.kind", "object.a", "object.a", "object.b.c", `object.m["k"]`, "object.missing", "oldObject.a", "oldObject.missing.x", "changes[0].path", "changes[1].operation",
		"options.fieldManager", `"a"`, `"w"`, `"alice"`, `"update"`, `"CREATE"`, `""`, `object.m[request.name]`, `request.userInfo.uid`)
}

func (d drawer) list() string {
	return d.of("[]", `["a", "w", "update"]`, "request.userInfo.groups", "object.list", "object.missing", `request.userInfo.extra["k"]`, `dyn(request.userInfo.extra)`, "object.m", `["w", request.verb]`,
		`request.userInfo.extra["no"]`, "dyn([object.a, request.name])", "changes[0].verbs")
}

// strange are strings that a text of CEL can get wrong.
var strange = []string{"a", "w", "alice", "a(b", `q"'\`, "new\nline", "\u2028é\U0010ffff", "\xff\xfe", "5", "a:b:c", `${x} {{`, "\x00\x7f", strings.Repeat("long", 200)}

func (d drawer) object() map[string]any {
	if d.IntN(5) == 0 {
		return nil
	}
	out := map[string]any{}
	add := func(name string, values ...any) {
		if d.IntN(4) > 0 {
			out[name] = values[d.IntN(len(values))]
		}
	}
	add("a", "a", "w", "alice", "update", nil, int64(7), "dev", "a(b")
	add("b", map[string]any{"c": "a"}, map[string]any{}, "text", nil)
	add("m", map[string]any{"k": "a", "w": "w"}, map[string]any{"update": map[string]any{"x": "y"}}, "text")
	add("list", []any{"a", "w", "x", "x", "x", "x", "x"}, []any{}, nil, []any{int64(1), nil})
	add("flag", true, false, "text", nil)
	add("n", int64(0), int64(1), int64(9), "text")
	return out
}

// request draws a request and what the authorization phase knows about it.
func (d drawer) request() (request, Known) {
	who := &user.DefaultInfo{Name: strange[d.IntN(len(strange))], UID: d.of("", "1")}
	if d.IntN(3) > 0 {
		who.Groups = []string{"dev", strange[d.IntN(len(strange))]}
	}
	if d.IntN(3) > 0 {
		who.Extra = map[string][]string{"k": {"a"}, "other": nil}
	}
	r := request{resource: widgets, user: who, namespace: d.of("", "default"), subresource: d.of("", "", "scale"), dryRun: d.IntN(2) == 0, object: d.object(), old: d.object()}
	r.resource.Group = d.of("", "example.com")
	name := strange[d.IntN(len(strange))]
	known := Known{User: who, Verb: d.of("create", "update", "patch", "delete", "deletecollection"), Group: r.resource.Group, Version: "v1", Resource: "widgets", Subresource: r.subresource, Namespace: r.namespace, Name: name}
	r.name = name
	switch known.Verb {
	case "create":
		r.operation = "CREATE"
		if r.subresource == "" {
			// The body or the server gives the name.
			known.Name = d.of("", "other")
		} else {
			r.operation = d.of("CREATE", "CONNECT")
		}
	case "update", "patch":
		r.operation = d.of("CREATE", "UPDATE")
	case "deletecollection":
		r.operation, known.Name, known.Subresource, r.subresource = "DELETE", "", "", ""
	default:
		r.operation = "DELETE"
	}
	return r, known
}

// changes draws the changes, or an error.
func (d drawer) changes() func() (ChangeList, error) {
	switch d.IntN(4) {
	case 0:
		return func() (ChangeList, error) { return nil, errors.New("no changes") }
	case 1:
		return nil
	case 2:
		return func() (ChangeList, error) {
			return listed{{Path: ".spec.replicas", Operation: "modified", Verbs: []string{"scale"}}}, nil
		}
	default:
		return func() (ChangeList, error) {
			return listed{{Path: "a", Operation: "added"}, {Path: ".spec", Operation: "removed", Verbs: []string{"scale"}}}, nil
		}
	}
}

// expressions is the number of drawn expressions; each is folded for six requests.
const expressions = 500

// TestK4_AResidualHasTheValueOfItsExpression is the law: fold, then evaluate, is evaluate. Errors are one value. Each residual is also
// evaluated from its text alone, as an authorizer does with a condition that has come back.
func TestK4_AResidualHasTheValueOfItsExpression(t *testing.T) {
	compiler, fresh := newCompiler(t), newCompiler(t)
	ctx := context.Background()
	seen := map[string]int{}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range expressions {
		d := drawer{rand.New(rand.NewPCG(seed, uint64(i)))} //nolint:gosec // No secret depends on it.
		source := d.boolean(1 + d.IntN(3))
		e, err := compiler.compile(source)
		if err != nil {
			seen["refused"]++
			continue
		}
		for range 6 {
			r, known := d.request()
			changes := d.changes()
			want := valueOf(e.Evaluate(ctx, NewInput(r, known.Verb, changes)))
			folded := e.Fold(ctx, known)
			data := NewInput(r, "", changes)
			var got string
			switch folded.Outcome {
			case True:
				got = "true"
			case False:
				got = "false"
			case Failed:
				got = "error"
			case Residual:
				got = valueOf(folded.Residual.Evaluate(ctx, data))
				condition := authorizer.GenericCondition{Type: Type, Condition: folded.Residual.String()}
				if back := textOf(fresh.Evaluate(ctx, condition, data)); back != got {
					t.Fatalf("seed %d, case %d: %s\nresidual %s is %s, and from its text %s", seed, i, source, folded.Residual, got, back)
				}
			}
			seen[fmt.Sprintf("%d %s", folded.Outcome, want)]++
			if got != want {
				t.Fatalf("seed %d, case %d: %s\nis %s, and folded (outcome %d, %v, residual %v) %s\nknown %+v\nrequest %+v", seed, i, source, want, folded.Outcome, folded.Err, folded.Residual, got, known, r)
			}
		}
	}
	t.Logf("outcomes and values: %v", seen)
	for _, combination := range []string{"0 error", "1 true", "2 false", "3 true", "3 false", "3 error"} {
		if seen[combination] < expressions/20 {
			t.Errorf("outcome and value %q occur %d times: this test shows too little", combination, seen[combination])
		}
	}
	if seen["refused"] > expressions/2 {
		t.Errorf("%d of %d expressions do not compile: this test shows too little", seen["refused"], expressions)
	}
}

func valueOf(value bool, err error) string {
	if err != nil {
		return "error"
	}
	return fmt.Sprint(value)
}

func textOf(r authorizer.ConditionEvaluationResult) string {
	switch {
	case r.IsError():
		return "error"
	case r.IsUnevaluatable():
		return "unevaluatable"
	default:
		return fmt.Sprint(r.IsTrue())
	}
}
