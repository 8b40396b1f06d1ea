package fieldperm

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// gadgetOf returns a gadget of about n bytes, with one field to change.
func gadgetOf(n, replicas int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","labels":{"a/x":"1"}},"spec":{"replicas":%d,"containers":[`, replicas)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"c%d","image":"registry.example.com/some/image:v%d"}`, i, i)
	}
	b.WriteString(`]}}`)
	return []byte(b.String())
}

// BenchmarkDiff measures the plain case, for comparison with later versions. The bytes are those of both objects.
func BenchmarkDiff(b *testing.B) {
	k, none := compileGadget(b)
	for _, size := range []int{1 << 10, 16 << 10, 1 << 20} {
		for name, replicas := range map[string]int{"none": 1, "one": 2} {
			old, new := gadgetOf(size, 1), gadgetOf(size, replicas)
			b.Run(fmt.Sprintf("%dKiB/change=%s", size>>10, name), func(b *testing.B) {
				b.SetBytes(int64(len(old) + len(new)))
				b.ReportAllocs()
				for b.Loop() {
					if got, err := Diff(b.Context(), old, new, k, none); err != nil || len(got) != replicas-1 {
						b.Fatal(got, err)
					}
				}
			})
		}
	}
}

// BenchmarkDecide counts checks as well as time: 30 labels of one prefix each, all granted.
func BenchmarkDecide(b *testing.B) {
	var rs []Requirement
	g := holds("granular")
	for i := range 20 {
		rs = append(rs, need(fmt.Sprintf("l%d", i), "*", "metadata", "labels", fmt.Sprintf("label(p%d)", i)))
		g.allowed[fmt.Sprintf("granular:label(p%d)", i)] = ""
	}
	checks := 0
	for b.Loop() {
		g.asked = nil
		d, err := Decide(context.Background(), g, Review{Generic: update, Requirements: rs}, Limits{})
		if err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
		checks = len(d.Checks)
	}
	b.ReportMetric(float64(checks), "checks/op")
}

// BenchmarkDiffHostile doubles the input that an attacker can choose. The time should double and not grow with the square.
func BenchmarkDiffHostile(b *testing.B) {
	k, none := compileGadget(b)
	deep := func(n, bottom int) []byte {
		wide := "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]"
		return []byte(`{"extra":` + strings.Repeat(`{"a":`, n/4) + fmt.Sprintf(`{"l":%s,"x":%d}`, wide, bottom) + strings.Repeat("}", n/4) + `}`)
	}
	owners := func(n, _ int) []byte {
		var items, paths strings.Builder
		for i := range n {
			fmt.Fprintf(&items, `{"name":"c%d","image":"i"},`, i)
			fmt.Fprintf(&paths, `"k:{\"name\":\"c%d\"}":{".":{},"f:image":{},"f:name":{}},`, i)
		}
		return []byte(owned(`|,"spec":{"containers":[`+strings.TrimSuffix(items.String(), ",")+`]}`, owner("me", "Apply", `{"f:spec":{"f:containers":{`+strings.TrimSuffix(paths.String(), ",")+`}}}`)))
	}
	for _, n := range []int{2000, 4000, 8000} {
		for name, c := range map[string]struct{ old, new []byte }{
			"deep":   {deep(n, 1), deep(n, 2)},
			"owners": {[]byte(strings.Replace(string(owners(n, 0)), `"managedFields":[`, `"managedFields":[],"ignored":[`, 1)), owners(n, 0)},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					if got, err := Diff(b.Context(), c.old, c.new, k, none); err != nil || len(got) == 0 {
						b.Fatal(len(got), err)
					}
				}
			})
		}
	}
}
