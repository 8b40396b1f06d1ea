package rawjson

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// TestK4_AnIndexFindsWhatAScanFinds compares the index with the scan: large objects, escapes, names that occur twice, nested values.
func TestK4_AnIndexFindsWhatAScanFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // No secret depends on it.
	for _, size := range []int{0, 1, 2, 3, 7, 8, 31, 32, 33, 200, 3000} {
		var members, items []string
		for i := range size {
			name := fmt.Sprintf("k%d", random.IntN(2*size))
			spelled := name
			if i%5 == 0 {
				spelled = `\u006b` + name[1:]
			}
			value := []string{fmt.Sprint(i), `"text, with [ and {"`, `{"k1":[1,{"k2":2}]}`, `[ 1 , 2 ]`, `"` + strings.Repeat("long", 30) + `"`, "null"}[i%6]
			members, items = append(members, ` "`+spelled+`" : `+value), append(items, value)
		}
		doc, err := Scan([]byte(`[{` + strings.Join(members, ",") + ` },[ ` + strings.Join(items, " ,") + `]]`))
		if err != nil {
			t.Fatal(err)
		}
		both := doc.Root().Items()
		both.Next()
		object := both.Value()
		x := NewIndex(object)
		for i := range 2*size + 1 {
			name := fmt.Sprintf("k%d", i)
			want, n := object.Find(name)
			if got, found := x.Find(name); got != want || found != min(n, 2) {
				t.Fatalf("%d members: %q is %q, %d times, want %q, %d times", size, name, got.Raw(), found, want.Raw(), n)
			}
		}
		if x.Len() != size || x.Ambiguous() != object.Ambiguous() || !x.Item(0).IsAbsent() {
			t.Errorf("%d members: length %d, ambiguous %t", size, x.Len(), x.Ambiguous())
		}
		both.Next()
		list := NewIndex(both.Value())
		at := 0
		for i := both.Value().Items(); i.Next(); at++ {
			if got := list.Item(at); got != i.Value() {
				t.Fatalf("item %d of %d is %q, want %q", at, size, got.Raw(), i.Value().Raw())
			}
		}
		if _, n := list.Find("k1"); list.Len() != size || n != 0 || !list.Item(-1).IsAbsent() || !list.Item(size).IsAbsent() {
			t.Errorf("a list of %d has an index of %d", size, list.Len())
		}
		doc.Release()
	}
	for _, empty := range []*Index{{}, NewIndex(Value{})} {
		if _, n := empty.Find("a"); n != 0 || empty.Len() != 0 || !empty.Item(0).IsAbsent() || empty.Ambiguous() {
			t.Error("an empty index is not empty")
		}
	}
}

// TestK4_AnIndexIsASmallMultipleOfTheText bounds what a client can make the server hold.
func TestK4_AnIndexIsASmallMultipleOfTheText(t *testing.T) {
	var members []string
	for i := range 1<<15 + 1 {
		members = append(members, fmt.Sprintf(`"%x":1`, i))
	}
	for _, text := range []string{`{` + strings.Join(members, ",") + `}`, `[` + strings.Repeat("1,", 1<<15) + `1]`} {
		doc, err := Scan([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		x := NewIndex(doc.Root())
		if held := cap(x.places) * int(unsafe.Sizeof(place{})); held > 6*len(text) {
			t.Errorf("the index of %d bytes takes %d", len(text), held)
		}
		doc.Release()
	}
}
