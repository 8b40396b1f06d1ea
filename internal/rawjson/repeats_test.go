package rawjson

import (
	"fmt"
	"strings"
	"testing"
)

func TestD10_NamesRepeat(t *testing.T) {
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`"name%d":%d`, i, i)
	}
	wide := strings.Join(many, ",")
	big := `{"x":{` + wide + `,"name7":0}}`
	for text, want := range map[string]bool{
		`{}`:                                      false,
		`[1,1]`:                                   false,
		`{"a":1,"b":1}`:                           false,
		`{"a":1,"b":{"a":1}}`:                     false,
		`[{"a":1},{"a":1}]`:                       false,
		`{"a":1,"a":1}`:                           true,
		`{"a":1,"b":2,"\u0061":1}`:                true,
		`{"\u0061":1,"\u0062":1}`:                 false,
		`{"":1,"":2}`:                             true,
		`{"a":{"b":[{"c":1,"c":2}]}}`:             true,
		`{"a":{"b":1},"c":{},"a":[]}`:             true,
		`{` + wide + `}`:                          false,
		`{` + wide + `,"name299":{}}`:             true,
		`{"x":{` + wide + `},"y":{` + wide + `}}`: false,
		`{"old":` + big + `,"new":` + big + `}`:   true,
		`{"a":{"b":1},"` + strings.Repeat("n", 100) + `":1,"` + strings.Repeat("n", 100) + `":1}`: true,
	} {
		doc, err := Scan([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := doc.Root().NamesRepeat(); got != want {
			t.Errorf("%.60s: %v", text, got)
		}
		doc.Release()
	}
}

// A scan finds the repeated names that a map finds.
func FuzzD10_NamesRepeat(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"b":2},"a":[{"c":{}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Scan(data)
		if err != nil {
			t.Skip()
		}
		defer doc.Release()
		if got, want := doc.Root().NamesRepeat(), twice(doc.Root()); got != want {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
	})
}

func twice(v Value) bool {
	names := map[string]bool{}
	for m := v.Members(); m.Next(); {
		if names[m.Name().String()] || twice(m.Value()) {
			return true
		}
		names[m.Name().String()] = true
	}
	for i := v.Items(); i.Next(); {
		if twice(i.Value()) {
			return true
		}
	}
	return false
}
