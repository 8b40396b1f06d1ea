//go:build !race

// With the race detector on, pools drop objects at random.

package rawjson

import (
	"strings"
	"testing"
)

// TestScan_ReusesMemory: the second scan of a text allocates no memory.
func TestScan_ReusesMemory(t *testing.T) {
	data := []byte(`{"a":[{"b":"` + strings.Repeat("x", 100) + `"},{"c":{}}],"d":[[],[],[]]}`)
	n := testing.AllocsPerRun(100, func() {
		doc, err := Scan(data)
		if err != nil {
			t.Fatal(err)
		}
		for m := doc.Root().Members(); m.Next(); {
			if !m.Name().Is("a") && !m.Name().Is("d") || m.Value().IsAbsent() {
				t.Fatal(m.Name())
			}
		}
		doc.Release()
	})
	if n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
