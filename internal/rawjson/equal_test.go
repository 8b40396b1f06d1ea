package rawjson

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// checkEqual compares Equal, Same, Sum and NormalNumber with the results of jsontext and math/big.
func checkEqual(t *testing.T, a, b []byte) {
	t.Helper()
	x, err := decodeAll(a)
	if err != nil {
		return
	}
	y, err := decodeAll(b)
	if err != nil {
		return
	}
	was, err := Scan(a)
	if err != nil {
		t.Fatal(err)
	}
	defer was.Release()
	is, err := Scan(b)
	if err != nil {
		t.Fatal(err)
	}
	defer is.Release()
	left, right := x.String(), y.String()
	if strings.Contains(left+right, "beyond") {
		return
	}
	var c Comparison
	want := left == right
	for range 2 { // the second time uses cached sums
		if got := c.Equal(was.Root(), is.Root()); got != want {
			t.Fatalf("%.300q and %.300q: equal is %t, want %t", a, b, got, want)
		}
	}
	if want && was.Root().Sum() != is.Root().Sum() {
		t.Fatalf("%.300q and %.300q: are equal, their sums are not", a, b)
	}
	if got, same := c.Same(was.Root(), is.Root()), string(was.Root().Raw()) == string(is.Root().Raw()); got != same {
		t.Fatalf("%.300q and %.300q: same is %t, want %t", a, b, got, same)
	}
}

func TestEqual_Pairs(t *testing.T) {
	same := []string{
		`0`, `-0`, `0.0`, `0e5`, `-0E-7`, `100`, `1e2`, `1E+2`, `100.0`, `1000e-1`, `-100`, `-1.0e2`, `9007199254740993`, `9007199254740992`, `9007199254740993.0`, `1e300`, `10e299`, `0.1`, `1e-1`, `123456789012345678901234567890`,
		`"a"`, `"\u0061"`, `"A"`, `"é"`, `"\u00e9"`, `"\u00E9"`, `"😀"`, `"\ud83d\ude00"`, `"\n"`, `"\u000a"`, `"/"`, `"\/"`, `"\\u0061"`, `""`, `null`, `true`, `false`, `[]`, `{}`, `[null]`, `{"a":null}`,
		`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"b":2.0,"\u0061":1}`, `{"a":1,"a":1}`, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":1}`, `[1,2]`, `[2,1]`, `[1.0,2]`, `[[1],[2]]`, `[[1],[2],[]]`,
		`{"x":{"a":[1,{"b":2,"c":3}]},"y":1}`, `{"y":1,"x":{"a":[1,{"c":3,"b":2}]}}`, `{"y":1,"x":{"a":[1,{"c":3,"b":3}]}}`,
		`"` + strings.Repeat(`\n`, 300) + `a"`, `"` + strings.Repeat(`\n`, 300) + `\u0061"`, `"` + strings.Repeat(`\u000a`, 300) + `a"`, `"` + strings.Repeat(`\n`, 300) + `b"`, `"` + strings.Repeat("x", 2000) + `\u0061"`, `"` + strings.Repeat("x", 2000) + `a"`,
	}
	for _, a := range same {
		for _, b := range same {
			checkEqual(t, []byte(a), []byte(b))
			checkEqual(t, []byte(`{"k":[`+a+`,`+b+`]}`), []byte(`{"k":[`+b+`,`+a+`]}`))
		}
	}
}

// FuzzEqual compares pairs from hostile input.
func FuzzEqual(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":2}`), []byte(`{"b":2,"\u0061":1.0}`))
	f.Add([]byte(`["\ud83d\ude00",1e2]`), []byte(`["😀",100]`))
	f.Fuzz(checkEqual)
}

// drawn returns one of few values in one of many spellings.
func drawn(r *rand.Rand, depth int) string {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		items := make([]string, r.IntN(3))
		for i := range items {
			items[i] = drawn(r, depth-1)
		}
		return "[" + strings.Join(items, ",") + "]"
	case n < 3 && depth > 0:
		members := make([]string, r.IntN(4))
		for i := range members {
			members[i] = []string{`"a"`, `"\u0061"`, `"b"`, `"` + strings.Repeat("n", 70) + `"`}[r.IntN(4)] + ":" + drawn(r, depth-1)
		}
		return "{" + strings.Join(members, ",") + "}"
	case n < 6:
		return []string{"1", "1.0", "10e-1", "2", `"x"`, `"\u0078"`, `"` + strings.Repeat(`\n`, 40) + `"`, `"` + strings.Repeat(`\u000a`, 40) + `"`}[r.IntN(8)]
	}
	return []string{"null", "true", "[]", "{}"}[r.IntN(4)]
}

func TestEqual_RandomPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 3617))
	for range 40000 {
		checkEqual(t, []byte(drawn(r, 4)), []byte(drawn(r, 4)))
	}
}

func TestD5_ANameThatOccursTwiceIsNotPutInOrder(t *testing.T) {
	checkEqual(t, []byte(`{"a":1,"a":1,"b":2}`), []byte(`{"b":2,"a":1,"a":1}`))
}

func TestD5_ANameMayOccurTwiceAmongMany(t *testing.T) {
	for _, n := range []int{1, 7, 63, 64, 640} {
		var b strings.Builder
		for i := n; i > 0; i-- { // names in ascending order are another case
			b.WriteString(`"name` + strconv.Itoa(100000+i) + `":0,`)
		}
		for text, want := range map[string]bool{
			"{" + b.String() + `"last":0}`: false, "{" + b.String() + `"name100001":0}`: true, `{"name100001":0,` + strings.TrimSuffix(b.String(), ",") + "}": true,
		} {
			if got := scanned(t, text).Ambiguous(); got != want {
				t.Errorf("%d names, of which one occurs twice is %t: ambiguous is %t", n+1, want, got)
			}
		}
	}
}

// TestSame_Recall: whatever was compared before, in any order, Same reports whether the bytes are equal.
func TestSame_Recall(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3617))
	for range 3000 {
		a := "[" + drawn(r, 2) + "," + drawn(r, 3) + "," + drawn(r, 2) + "]"
		b := a
		if r.IntN(4) > 0 {
			b = strings.Replace(a, []string{"1", "x", "null", "n"}[r.IntN(4)], []string{"2", "y", "true", "m"}[r.IntN(4)], 1)
		}
		was, err := Scan([]byte(a))
		if err != nil {
			continue
		}
		is, err := Scan([]byte(b))
		if err != nil {
			continue
		}
		var left, right []Value
		collect(was.Root(), &left)
		collect(is.Root(), &right)
		var c Comparison
		type known struct {
			a, b Value
			Prefix
		}
		runs := []known{{left[0], right[0], 0}}
		for range 60 {
			i := r.IntN(len(left))
			j := min(i, len(right)-1)
			if r.IntN(4) == 0 {
				j = r.IntN(len(right))
			}
			if r.IntN(3) == 0 {
				run := runs[r.IntN(len(runs))]
				c.Recall(run.a, run.b, run.Prefix)
			}
			if got, want := c.Same(left[i], right[j]), string(left[i].Raw()) == string(right[j].Raw()); got != want {
				t.Fatalf("%s and %s: %s and %s: same is %t", a, b, left[i].Raw(), right[j].Raw(), got)
			}
			// Any two values may be asked about. If the range does not cover them, nothing is known.
			other := right[r.IntN(len(right))]
			runs = append(runs, known{left[i], right[j], c.Last(left[i], right[j])}, known{left[i], other, c.Last(left[i], other)})
		}
	}
}

// TestD10_CachedResultsOfOtherTextsAreNotUsed: an index of owners may compare texts that Diff did not scan.
func TestD10_CachedResultsOfOtherTextsAreNotUsed(t *testing.T) {
	same, other := [2]Value{scanned(t, `{"a":1}`), scanned(t, `{"a":1}`)}, scanned(t, `{"a":2}`)
	var c Comparison
	for _, pair := range [][2]Value{{same[0], other}, {other, same[1]}} {
		if !c.Same(same[0], same[1]) {
			t.Fatal("the same bytes are not the same")
		}
		if c.Same(pair[0], pair[1]) {
			t.Errorf("%s and %s are the same", pair[0].Raw(), pair[1].Raw())
		}
	}
}

func collect(v Value, into *[]Value) {
	*into = append(*into, v)
	for i := v.Items(); i.Next(); {
		collect(i.Value(), into)
	}
	for m := v.Members(); m.Next(); {
		collect(m.Value(), into)
	}
}

func TestNormalNumber(t *testing.T) {
	digits := strings.Repeat("7", 1000)
	for _, same := range [][]string{
		{"0", "-0", "0.000", "0e999999999999999999999999"},
		{"1e1000000000000000000", "10e999999999999999999", "0.1e1000000000000000001", "1000e+0999999999999999997"},
		{"-1e-1000000000000000000", "-10e-1000000000000000001", "-0.1e-999999999999999999", "-0.01e-999999999999999998"},
		{"1e" + digits, "10e" + digits[:999] + "6", "0.1e" + digits[:999] + "8"},
		{"1e-" + digits, "10e-" + digits[:999] + "8", "0.1e-" + digits[:999] + "6"},
		{digits + "000", digits + "e3", digits[:500] + "." + digits[500:] + "e503"},
	} {
		for _, a := range same {
			for _, b := range same {
				if x, y := string(appendNormal(nil, []byte(a))), string(appendNormal(nil, []byte(b))); x != y {
					t.Errorf("%.40s is %.40s, %.40s is %.40s", a, x, b, y)
				}
				if !equalNumbers([]byte(a), []byte(b)) {
					t.Errorf("%.40s and %.40s are not equal", a, b)
				}
			}
			if string(appendNormal(nil, []byte(a))) == string(appendNormal(nil, []byte("1"+strings.TrimPrefix(a, "-")))) {
				t.Errorf("%.40s equals another", a)
			}
		}
	}
	for _, i := range []int64{0, 1, -1, 10, 9223372036854775807, -9223372036854775808, 1000000000000000000} {
		text := strconv.FormatInt(i, 10)
		for _, spelled := range []string{text, text + ".0", text + "e0", text + ".00e-0"} {
			doc, err := Scan([]byte(spelled))
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := doc.Root().Int(); got != i || !ok {
				t.Errorf("%s is %d, %t", spelled, got, ok)
			}
		}
	}
	for _, none := range []string{"9223372036854775808", "1.5", "1e19", "1e-1", "1e99999999999999999999", "-9223372036854775809"} {
		doc, err := Scan([]byte(none))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := doc.Root().Int(); ok {
			t.Errorf("%s is %d", none, got)
		}
	}
}

func TestD1_PowersBeyondInt64Carry(t *testing.T) {
	nines, one := strings.Repeat("9", 30), "1"+strings.Repeat("0", 30)
	for _, equal := range [][]string{
		{"1e" + one, "10e" + nines, "100e" + nines[1:] + "8", "0.1e" + one[:30] + "1"},
		{"1e-" + nines, "10e-" + one, "0.1e-" + nines[1:] + "8"},
	} {
		for _, a := range equal {
			if got, want := string(appendNormal(nil, []byte(a))), equal[0]; got != want {
				t.Errorf("%s is %s, want %s", a, got, want)
			}
		}
	}
}

func TestName_Compare(t *testing.T) {
	names := []string{``, `a`, `\u0061b`, `a\nb`, `é`, `\u00ea`, `😀`}
	for i, a := range names {
		for j, b := range names {
			x, y := Name{[]byte(a)}, Name{[]byte(b)}
			if got, want := x.Compare(y), strings.Compare(x.String(), y.String()); got != want || x.Equal(y) != (want == 0) {
				t.Errorf("%d %d: %s and %s: %d, want %d", i, j, a, b, got, want)
			}
		}
	}
	for _, escaped := range []string{`\n`, `a\nb`, `\u0061`} {
		if n := (Name{[]byte(escaped)}); n.Is(escaped) || !n.Is(n.String()) {
			t.Errorf("%s is compared by its spelling", escaped)
		}
	}
	if !slices.IsSortedFunc([]string{`a`, `\u0062`, `c`}, func(a, b string) int { return Name{[]byte(a)}.Compare(Name{[]byte(b)}) }) {
		t.Error("names are not compared after decoding")
	}
}
