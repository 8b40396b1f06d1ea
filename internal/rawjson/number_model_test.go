package rawjson

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestD1_ANumberThatBeginsAsAnother: a long number is the model of the next one, but does not determine where the next one ends.
func TestD1_ANumberThatBeginsAsAnother(t *testing.T) {
	digits := strings.Repeat("7", 64)
	for _, tail := range []string{"", "1", "7", ".5", "e5", "E+5", "x", "-", "+1", ".", "e", " 1", "}"} {
		for _, shape := range []string{`[[D],[DT]]`, `{"a":{"b":D,"c":1},"d":{"b":DT,"c":1}}`, `{"object":{"x":D},"oldObject":{"x":DT}}`, `[D,DT]`, `[[D,"PAD"],[DT,"PAD"]]`, `[{"x":-D,"y":"PAD"},{"x":-DT,"y":"PAD"}]`} {
			text := strings.NewReplacer("DT", digits+tail, "D", digits, "PAD", strings.Repeat("p", 600)).Replace(shape)
			doc, err := Scan([]byte(text))
			if want := json.Valid([]byte(text)); (err == nil) != want {
				t.Errorf("%s with %q: %v, valid is %t", shape, tail, err, want)
			}
			if err == nil {
				doc.Release()
			}
		}
	}
}
