package rawjson

import (
	"strconv"
	"strings"
	"testing"
)

// The tests of this file are here because test/mutation broke the code and nothing else noticed.

func scanned(t *testing.T, text string) Value {
	t.Helper()
	doc, err := Scan([]byte(text))
	if err != nil {
		t.Fatalf("%.100s: %v", text, err)
	}
	t.Cleanup(doc.Release)
	return doc.Root()
}

func TestScan_ListsBesideEachOtherAreNotNested(t *testing.T) {
	for _, one := range []string{"[]", "[0]", "{}", `{"a":0}`} {
		check(t, []byte("["+strings.Repeat(one+",", maxDepth)+one+"]"))
	}
}

// TestD10_WhatWasFoundOfOtherTextsIsNotBelieved: an index of owners may ask about what Diff did not scan.
func TestD10_WhatWasFoundOfOtherTextsIsNotBelieved(t *testing.T) {
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

func TestD5_ANameThatOccursTwiceIsNotPutInOrder(t *testing.T) {
	checkEqual(t, []byte(`{"a":1,"a":1,"b":2}`), []byte(`{"b":2,"a":1,"a":1}`))
}

func TestD5_ANameMayOccurTwiceAmongMany(t *testing.T) {
	for _, n := range []int{few - 1, few, few + 1, 10 * few} {
		var b strings.Builder
		for i := n; i > 0; i-- { // Names that rise are another case.
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

func TestD1_PowersBeyondInt64Carry(t *testing.T) {
	nines, one := strings.Repeat("9", 30), "1"+strings.Repeat("0", 30)
	for _, equal := range [][]string{
		{"1e" + one, "10e" + nines, "100e" + nines[1:] + "8", "0.1e" + one[:30] + "1"},
		{"1e-" + nines, "10e-" + one, "0.1e-" + nines[1:] + "8"},
	} {
		for _, a := range equal {
			if got, want := normalNumber([]byte(a)), equal[0]; got != want {
				t.Errorf("%s is %s, want %s", a, got, want)
			}
		}
	}
}
