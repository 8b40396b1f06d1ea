package owners

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// TestD8_FieldsV1AreThoseThatTheLibraryWrites compares the decoder with the library on drawn texts: it accepts a text if and only if the library
// writes what it has read from it again, and then both have the same paths.
func TestD8_FieldsV1AreThoseThatTheLibraryWrites(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 20_000 {
		text := drawFields(rnd, 3)
		doc, err := rawjson.Scan([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := &smdpath.Set{}
		isWritten := writesAgain(t, want, doc.Root())
		switch got, ok := readFields(doc.Root()); {
		case ok != isWritten:
			t.Errorf("%s: accepted: %v, the library writes it again: %v", text, ok, isWritten)
		case ok && !got.Equals(want):
			t.Errorf("%s: paths %v, those of the library %v", text, got, want)
		case ok:
			accepted++
		default:
			refused++
		}
	}
	if accepted < 2000 || refused < 2000 {
		t.Errorf("%d texts are accepted and %d refused: the drawn texts prove nothing", accepted, refused)
	}
}

// writesAgain reads FieldsV1 with the library, and reports whether the library writes the same JSON value, whatever its order.
func writesAgain(t *testing.T, set *smdpath.Set, v rawjson.Value) bool {
	t.Helper()
	if err := set.FromJSON(bytes.NewReader(v.Raw())); err != nil {
		return false
	}
	raw, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := rawjson.Scan(raw)
	if err != nil {
		t.Fatal(err)
	}
	var c rawjson.Comparison
	return c.Equal(doc.Root(), v)
}

// drawFields draws FieldsV1, most of them as API servers write them.
func drawFields(rnd *rand.Rand, depth int) string {
	var members []string
	add := func(name, below string) { members = append(members, fmt.Sprintf("%s:%s", name, below)) }
	if depth < 3 && rnd.IntN(6) == 0 || rnd.IntN(200) == 0 {
		add(`"."`, `{}`)
	}
	for range rnd.IntN(4) {
		names := []string{`"f:a"`, `"f:b"`, `"f:c"`, `"f:é"`, `"v:1"`, `"v:\"x\""`, `"i:0"`, `"i:2"`, `"k:{\"a\":1}"`, `"k:{\"a\":\"x\",\"b\":2}"`, `"v:\"\\u003c\""`}
		if rnd.IntN(20) == 0 {
			names = []string{
				`"f:\u0061"`, `"v:1.0"`, `"v: 1"`, `"v:12345678901234567890"`, `"v:\"<\""`, `"v:\"\\u003C\""`, `"i:02"`, `"k:{\"b\":2,\"a\":\"x\"}"`, `"k:{ \"a\":1}"`, `"k:{\"a\":1,\"a\":1}"`,
				`"k:{\"a\":null}"`, `"x:1"`, `"f"`, `""`, `"v:"`, `"v:1 2"`, `"k:[]"`, `"i:x"`, `"v:{\"a\":[1]}"`, `"k:{}"`, `"v:1e3"`, `"f:"`,
			}
		}
		below := "{}"
		if depth > 0 && rnd.IntN(2) == 0 {
			below = drawFields(rnd, depth-1)
		}
		if rnd.IntN(100) == 0 {
			below = []string{`null`, `1`, `[]`, `"x"`, `[{}]`}[rnd.IntN(5)]
		}
		add(names[rnd.IntN(len(names))], below)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestD8_P8_FieldsV1InAnotherOrderAreReadUpToABound: the library takes time with the square of the elements that are not in its order.
func TestD8_P8_FieldsV1InAnotherOrderAreReadUpToABound(t *testing.T) {
	for n, want := range map[int]bool{10_000: true, 25_000: false} {
		names := make([]string, n)
		for i := range names {
			names[n-1-i] = fmt.Sprintf(`"f:%06d":{}`, i)
		}
		doc, err := rawjson.Scan([]byte("{" + strings.Join(names, ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		if set, ok := readFields(doc.Root()); ok != want || ok && set.Size() != n {
			t.Errorf("%d elements: read %t, want %t", n, ok, want)
		}
	}
}
