package cel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// configMaps returns two ConfigMaps with n keys, which differ in the last.
func configMaps(n int) string {
	of := func(last string) string {
		pairs := make([]string, n)
		for i := range pairs {
			pairs[i] = fmt.Sprintf(`"key-%d":"value of %d"`, i, i)
		}
		pairs[n-1] = `"last":"` + last + `"`
		return `{"metadata":{"name":"c"},"data":{` + strings.Join(pairs, ",") + `}}`
	}
	return `{"object":` + of("new") + `,"old":` + of("old") + `}`
}

// TestK4_LargeJSONIsReadAsDecoded: large lists and objects have the same values, errors and costs, on the first reading and later.
func TestK4_LargeJSONIsReadAsDecoded(t *testing.T) {
	const n = 300
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // No secret depends on it.
	var members, shuffled, rows, numbers []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"k%d":{"n":%d,"l":[%d,"x"],"\u006f":{}}`, i, i, i))
		rows = append(rows, fmt.Sprintf(`{"name":"r%d","spec":{"size":%d}}`, i, i%7))
		numbers = append(numbers, []string{fmt.Sprint(i), fmt.Sprint(i, ".5"), "null", "1e3"}[i%4])
		numbers[i] = strings.ReplaceAll(numbers[i], " ", "")
	}
	for _, i := range random.Perm(n) {
		shuffled = append(shuffled, members[i])
	}
	object := func(of []string) string { return "{" + strings.Join(of, " , ") + "}" }
	list := func(of []string) string { return "[" + strings.Join(of, " , ") + "]" }
	text := `{"m":` + object(members) + `,"other":` + object(shuffled) + `,"less":` + object(shuffled[1:]) + `,"rows":` + list(rows) + `,"numbers":` + list(numbers) +
		`,"within":{"m":` + object(members) + `,"rows":` + list(rows) + `},"few":{"long":"` + strings.Repeat("x", 1024) + `","a":1},"lists":[` + list(rows) + `,` + list(numbers) + `]}`
	expressions := []string{
		`o.m.all(k, k in o.other && o.other[k] == o.m[k])`, `o.m.filter(k, k in o.less).size()`, `o.m == o.other`, `o.other == o.m`, `o.m == o.less`, `o.m == o.within.m`, `o.within.m.all(k, o.within.m[k].n >= 0 && o.m[k] == o.within.m[k])`,
		`o.m.k7.n`, `o.m.k7.o`, `o.m["k299"].l[1]`, `o.m.missing`, `has(o.m.missing)`, `o.m[1]`, `size(o.m)`, `o.?m.?k8.n`, `o.m.all(k, k != "k299" || o.m[k].n == 299)`, `o.m.transformMap(k, v, v.n).size()`, `o.m.transformList(k, v, v.n).size()`,
		`o.rows[299].name`, `o.rows[300]`, `o.rows[-1]`, `o.rows[1.5]`, `o.rows[7.0].name`, `o.rows["x"]`, `size(o.rows)`, `o.rows.all(r, r in o.within.rows)`, `{"name": "r3", "spec": {"size": 3}} in o.rows`, `{"name": "r3", "spec": {"size": 4}} in o.rows`,
		`o.rows == o.within.rows`, `o.rows == o.lists[0]`, `o.numbers == o.lists[1]`, `o.lists[1].all(x, x in o.numbers)`, `1000 in o.numbers`, `null in o.numbers`, `"x" in o.numbers`, `[1] in o.lists`, `o.numbers in o.lists`,
		`o.numbers.transformList(i, x, o.numbers[i] == x).all(x, x)`, `o.rows.map(r, r.spec.size) == o.within.rows.map(r, r.spec.size)`, `o.rows.filter(r, r.spec.size == 3).size()`, `(o.rows + o.numbers).size()`, `(o.rows + o.numbers)[300]`,
		`(o.rows + o.numbers)[600]`, `(o.rows + o.numbers)[-1]`, `(o.rows + o.numbers)["x"]`, `(o.rows + [1]) == (o.within.rows + [1])`, `(o.rows + [1]) == (o.within.rows + [2])`, `1 in (o.rows + [1])`, `2 in (o.rows + [1])`, `(o.rows + [1] + [2])[301]`,
		`o.rows + 1`, `o.rows + [] == o.rows`, `[] + o.rows == o.rows`, `(o.rows + o.rows).map(r, r.name).size()`, `[o.rows, o.numbers] == o.lists`, `o.lists == [o.rows, o.numbers]`, `o.lists + [1] == [o.rows, o.numbers, 1]`,
		`o.few.a`, `o.few.long == o.few.long + ""`, `o.few.long in o.few`, `o.few.long.contains("xx")`, `o.few.long.size()`, `o.few.b`, `size(o.few)`, `o.rows.exists_one(r, r.name == "r4")`, `sets.contains(o.rows, [o.rows[4]])`, `sets.equivalent(o.rows, o.within.rows)`, `type(o.rows + [1])`, `optional.ofNonZeroValue(o.rows + [1]).hasValue()`,
		`o.rows.map(r, r.name).join(",").size()`, `(o.rows.map(r, r.name) + ["x"]).join(",").size()`, `o.within == {"m": o.m, "rows": o.rows}`, `{"m": o.m, "rows": o.rows} == o.within`,
	}
	values, failures := compare(t, text, append(expressions, expressions...))
	if values < 220 || failures < 32 {
		t.Errorf("%d values, %d failures", values, failures)
	}
}

// TestK4_ALookupTakesConstantTime: the conditions of an Allow policy on a ConfigMap with many keys end in time.
func TestK4_ALookupTakesConstantTime(t *testing.T) {
	text := configMaps(10_000)
	var decoded any
	if err := utiljson.Unmarshal([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	env := newEnv(t)
	for _, source := range []string{
		`o.old.data.all(k, k in o.object.data && (k == "last" || o.object.data[k] == o.old.data[k]))`, `o.old.data.all(k, size(o.object.data) == 10000)`,
	} {
		p := program(t, env, source)
		took := func(value any) time.Duration {
			start := time.Now()
			if out, _, err := p.Eval(map[string]any{"o": value}); err != nil || out != types.True {
				t.Fatalf("%s: %v, %v", source, out, err)
			}
			return time.Since(start)
		}
		want := took(decoded)
		got := took(Of(scan(t, text)))
		t.Logf("%s: %s, decoded %s", source, got, want)
		if got > 10*want+100*time.Millisecond {
			t.Errorf("%s: takes %s, and %s on the decoded object", source, got, want)
		}
	}
}

// TestK4_ALongTextIsDecodedOnce: a loop that reads one long field does not copy it each time.
func TestK4_ALongTextIsDecodedOnce(t *testing.T) {
	const long, n = 200_000, 1000
	p := program(t, newEnv(t), `o.l.all(x, !o.text.startsWith(x) && o.escaped.startsWith(x) && o.number > 0.0 && has(o.text))`)
	value := Of(scan(t, `{"l":["a"`+strings.Repeat(`,"a"`, n-1)+`],"text":"`+strings.Repeat("x", long)+`","escaped":"\u0061`+strings.Repeat("y", long)+`","number":1.`+strings.Repeat("1", long/20)+`}`))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if out, _, err := p.Eval(map[string]any{"o": value}); err != nil || out != types.True {
		t.Fatal(out, err)
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 20*long {
		t.Errorf("%d reads of texts of %d bytes allocate %d bytes", n, long, made)
	}
}

// TestK4_OneValueIsSafeForConcurrentUse is for the race detector.
func TestK4_OneValueIsSafeForConcurrentUse(t *testing.T) {
	shared, env := Of(scan(t, configMaps(200))), newEnv(t)
	p := program(t, env, `o.old.data.all(k, k in o.object.data && size(o.object.data) == 200) && o.old.data != o.object.data`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				if out, _, err := p.Eval(map[string]any{"o": shared}); err != nil || out != types.True {
					t.Errorf("%v, %v", out, err)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkLookups reads each key of two ConfigMaps, which are scanned or decoded.
func BenchmarkLookups(b *testing.B) {
	p := program(b, newEnv(b), `o.old.data.all(k, k in o.object.data && (k == "last" || o.object.data[k] == o.old.data[k]))`)
	for _, n := range []int{5, 30, 1000, 20_000} {
		text := configMaps(n)
		b.Run(fmt.Sprintf("in place/%d", n), func(b *testing.B) {
			root := scan(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if out, _, err := p.Eval(map[string]any{"o": Of(root)}); err != nil || out != types.True {
					b.Fatal(out, err)
				}
			}
		})
		b.Run(fmt.Sprintf("decoded/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var decoded any
				if err := utiljson.Unmarshal([]byte(text), &decoded); err != nil {
					b.Fatal(err)
				}
				if out, _, err := p.Eval(map[string]any{"o": decoded}); err != nil || out != types.True {
					b.Fatal(out, err)
				}
			}
		})
	}
}
