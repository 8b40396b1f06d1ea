package cel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// TestK4_JSONIsReadAsDecoded: an expression has the same value, or the same error, on JSON and on the decoded object.
func TestK4_JSONIsReadAsDecoded(t *testing.T) {
	const text = `{"a":{"b":[1,2,{"c":"x"}],"e\u006dpty":{},"none":null,"yes":true,"no":false,"f":1.5,"big":12345678901234567890,"exp":1e3},"l":[],"s":"\u00e9\ud83d\ude00",
		"n":-7,"same":{"b":[1,2,{"c":"x"}],"x":{"y":{"z":1}}},"other":{"x":{"y":{"z":1}},"b":[1,2,{"c":"x"}]},"mixed":[1,"1",1.0,true,null,[1],{"k":1}]}`
	expressions := []string{
		`o.a.b[0]`, `o.a.b[2].c`, `o.a.b[3]`, `o.a.b[-1]`, `o.a.b[0.0]`, `o.a.b["0"]`, `o.a.missing`, `o.a["b"]`, `o["a"]["empty"]`, `has(o.a.empty)`, `has(o.a.missing)`, `has(o.a.none)`,
		`o.a.none == null`, `o.a.yes && !o.a.no`, `o.a.f`, `o.a.f + 1.0`, `o.a.big`, `o.a.exp`, `o.a.exp == 1000`, `o.n`, `o.n + 1`, `o.s`, `o.s.size()`, `size(o)`, `size(o.a.b)`, `size(o.l)`, `o.l == []`, `o.a.empty == {}`,
		`o.same == o.other`, `o.other == o.same`, `o.a == o.same`, `o.a.b == o.same.b`, `o.same.b == [1, 2, {"c": "x"}]`, `[1, 2, {"c": "x"}] == o.same.b`, `o.same == {"b": [1, 2, {"c": "x"}], "x": {"y": {"z": 1}}}`,
		`2 in o.a.b`, `"x" in o.a.b`, `"b" in o.a`, `"q" in o.a`, `1 in o.a`, `1 in o.mixed`, `o.a.b.exists(x, x == 2)`, `o.a.b.all(x, x == 2)`, `o.a.exists(k, k == "absent")`, `o.a.b.map(x, x)`,
		`o.mixed.filter(x, type(x) == int)`, `o.mixed.map(x, type(x))`, `type(o)`, `type(o.l)`, `o.?a.?b`, `o.?a.?q.orValue("z")`, `o.?a.?b[?7].orValue(9)`, `o.a[?"b"].hasValue()`, `optional.ofNonZeroValue(o.a.empty).hasValue()`,
		`optional.ofNonZeroValue(o.l).hasValue()`, `optional.ofNonZeroValue(o.a.b).hasValue()`, `o.a.b + [4]`, `[4] + o.a.b`, `o.l + o.l`, `dyn(o) == dyn(o)`, `o == 1`, `o.a.b == 1`, `o.l == o`, `string(o.n)`, `int(o.s)`, `o.s + "!"`, `o.a.b.size() > 2 ? o.a.b[2].c : "no"`,
		`o.a[1]`, `{1: 2} == o.a`, `o.mixed == [1, "1", 1.0, true, null, [1], {"k": 1}]`, `[o.a, o.same].map(x, x.b[1])`, `{"k": o.a.b}.k[2].c`, `o.a.b.transformList(i, x, i)`, `o.same.transformMap(k, v, k)`, `sets.contains(o.a.b, [1])`, `o.a.b.exists_one(x, x == 1)`,
		`(o.a.b + []).transformList(i, x, x).size()`, `([] + o.a.b).transformList(i, x, [i, x])`, `(o.l + o.a.b).transformList(i, x, x)`, `(o.a.b + o.l)[2].c`, `o.a in [1, 2, 3]`, `o.a.b in ["a", "b"]`, `o.a.none in [1, 2]`,
		`o.same.transformMapEntry(k, v, {k: v}) == o.other`, `dyn(o.a.b).join()`, `o.mixed.all(x, x == null || type(x) != null_type)`, `"%s".format([o.s])`,
	}
	values, failures := compare(t, text, expressions)
	if values < 100 || failures < 12 {
		t.Errorf("%d values, %d failures", values, failures)
	}
}

func newEnv(t testing.TB) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("o", cel.DynType), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.TwoVarComprehensions(), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func program(t testing.TB, env *cel.Env, source string) cel.Program {
	t.Helper()
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		t.Fatal(source, issues.Err())
	}
	out, err := env.Program(ast, cel.CostTracking(nil))
	if err != nil {
		t.Fatal(source, err)
	}
	return out
}

func scan(t testing.TB, text string) rawjson.Value {
	t.Helper()
	doc, err := rawjson.Scan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(doc.Release)
	return doc.Root()
}

// compare evaluates expressions on a text and on the decoded text, each in the view of this package and as cel-go decodes it. All of them share one value,
// as the conditions on a request do.
func compare(t *testing.T, text string, expressions []string) (values, failures int) {
	t.Helper()
	var decoded any
	if err := utiljson.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	env, shared := newEnv(t), []any{Of(scan(t, text)), Decoded(decoded)}
	for i := range 2 * len(expressions) {
		source := expressions[i/2]
		evaluated := program(t, env, source)
		want, spent, wantErr := evaluated.Eval(map[string]any{"o": decoded})
		got, details, err := evaluated.Eval(map[string]any{"o": shared[i%2]})
		switch {
		case err != nil || wantErr != nil:
			failures++
			if err == nil || wantErr == nil || err.Error() != wantErr.Error() {
				t.Errorf("%s: %v, %v; decoded %v, %v", source, got, err, want, wantErr)
			}
		default:
			values++
			if got.Type().TypeName() != want.Type().TypeName() || got.Equal(want) != types.True || want.Equal(got) != types.True {
				t.Errorf("%s: %v, decoded %v", source, got.Value(), want.Value())
			}
		}
		if *details.ActualCost() != *spent.ActualCost() {
			t.Errorf("%s: costs %d, decoded %d", source, *details.ActualCost(), *spent.ActualCost())
		}
	}
	return values, failures
}

// TestK4_ANameThatOccursTwiceIsAnError: parsers disagree about such an object. So nothing is read of a document that has one, wherever it is, and an
// empty list beside it is not empty.
func TestK4_ANameThatOccursTwiceIsAnError(t *testing.T) {
	large := make([]string, 500)
	for i := range large {
		large[i] = fmt.Sprintf(`"k%d":%d`, i, i)
	}
	env := newEnv(t)
	for _, text := range []string{`{"a":1,"a":2,"b":3}`, `{"a":1,` + strings.Join(large, ",") + `,"\u0061":2,"b":3}`} {
		shared := Of(scan(t, `{"o":`+text+`,"l":[`+text+`],"same":{"o":`+text+`},"none":[]}`))
		for range 2 {
			for _, source := range []string{
				`o.o.a == 1`, `o.o.a == 2`, `has(o.o.a)`, `"a" in o.o`, `size(o.o) == 2`, `o.o == {"a": 2, "b": 3}`, `o.o.b == 3`, `o.o[1] == 3`, `o.o.?a.hasValue()`, `o.o == o.same.o`, `{"o": o.o} == o.same`,
				`o.same == {"o": o.o}`, `o.l == [o.o]`, `o.o in o.l`, `{"b": 1} in o.l`, `o == o`, `3 in o.l`, `o.l == []`, `o == {}`, `type(o.o) == map`, `o.l + [1] == [1, 1]`, `[1] + o.l == [1, 1]`, `o.none == []`, `has(o.none)`, `o != null`,
			} {
				if out, _, err := program(t, env, source).Eval(map[string]any{"o": shared}); err == nil {
					t.Errorf("%.40s: %s: %v", text, source, out)
				}
			}
		}
	}
}

// TestK4_ALoopIsInOneOrder: that of the document, or that of the names of a decoded object. The loops of cel-go are in a different order each time.
func TestK4_ALoopIsInOneOrder(t *testing.T) {
	var members, names []string
	decoded := map[string]any{}
	for i := range 50 {
		name := fmt.Sprintf("k%d", 99-i)
		members, names = append(members, fmt.Sprintf("%q:{%q:%d}", name, name, i)), append(names, fmt.Sprintf("%q", name))
		decoded[name] = map[string]any{name: int64(i)}
	}
	sorted := slices.Sorted(slices.Values(names))
	for of, c := range map[string]struct {
		value any
		names []string
	}{"JSON": {Of(scan(t, "{"+strings.Join(members, ",")+"}")), names}, "decoded": {Decoded(decoded), sorted}, "decoded, in a list": {Decoded([]any{decoded}).(traits.Lister).Get(types.IntZero), sorted}} {
		p := program(t, newEnv(t), `o.map(k, k) == [`+strings.Join(c.names, ",")+`] && o.transformList(k, v, k + string(v[k]))[7] == [`+strings.Join(c.names, ",")+`][7] + string(o[`+c.names[7]+`][`+c.names[7]+`])`)
		if out, _, err := p.Eval(map[string]any{"o": c.value}); err != nil || out != types.True {
			t.Errorf("%s: %v, %v", of, out, err)
		}
	}
}
