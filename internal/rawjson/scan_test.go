package rawjson

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

var texts = []string{
	`null`, ` true `, `false`, `0`, `-0`, `-0.0e-0`, `12.5E+3`, `""`, `"a"`, `"\u0061\"\\\/\b\f\n\r\t"`, `"\ud83d\ude00"`, `"é😀"`, `[]`, `{}`, "[\t\r\n ]",
	`[1,[2,[3]],{}]`, `{"a":{"b":[{"c":1}]},"d":null}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"":0}`, `[ 1 , 2 ]`, `{ "a" : [ ] , "b" : { } }`,
	`"` + strings.Repeat("x", 200) + `"`, `{"` + strings.Repeat("n", 100) + `":"` + strings.Repeat(`\n`, 100) + `"}`, `["` + strings.Repeat("é", 33) + `",1]`,
	`{"z":1,"y":2,"x":[1e400,-1e-400,123456789012345678901234567890]}`, strings.Repeat("[", 9999) + "{}" + strings.Repeat("]", 9999),
	// The texts below are not JSON.
	``, ` `, `tru`, `nul`, `+1`, `01`, `1.`, `.5`, `1e`, `1e+`, `-`, `"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0061"`, `"\ude00"`, "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"",
	"\"\x00\"", "\"a\nb\"", `[`, `[1`, `[1,`, `[1,]`, `[,1]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{1:2}`, `[1}`, `{"a":1]`, `{}{}`, `1 2`, `]`, "\ufeff{}", "[\v]", "[\x00]",
	strings.Repeat("[", 10001) + strings.Repeat("]", 10001), `"` + strings.Repeat("x", 200) + "\x01\"", `[truefalse]`, `nullx`, `{"a":tru}`, `[1 2]`,
}

// check compares Scan with jsontext.
func check(t *testing.T, data []byte) {
	t.Helper()
	want, wantErr := decodeAll(data)
	doc, err := Scan(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%.200q: got error %v, jsontext says %v", data, err, wantErr)
	}
	if err != nil {
		if err.Error() == "" {
			t.Fatalf("%.200q: %T %v", data, err, err)
		}
		return
	}
	defer doc.Release()
	if at := want.differs(doc.Root()); at != "" {
		t.Fatalf("%.200q: %.300s", data, at)
	}
	var c Comparison
	if !c.Equal(doc.Root(), doc.Root()) {
		t.Fatalf("%.200q: is not equal to itself", data)
	}
}

func scanned(t *testing.T, text string) Value {
	t.Helper()
	doc, err := Scan([]byte(text))
	if err != nil {
		t.Fatalf("%.100s: %v", text, err)
	}
	t.Cleanup(doc.Release)
	return doc.Root()
}

func TestScan_AcceptsTheJSONThatJsontextAccepts(t *testing.T) {
	for _, text := range texts {
		check(t, []byte(text))
	}
}

// TestScan_RandomBytes damages texts at random, so that the scanner gets unexpected bytes at every position.
func TestScan_RandomBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3617))
	const bytes = "{}[]:,\"\\u0eE.+-x \n\xff\xc3\xa9\x00"
	for range 20000 {
		data := []byte(texts[r.IntN(26)])
		for range 1 + r.IntN(3) {
			at := r.IntN(len(data) + 1)
			switch insert := bytes[r.IntN(len(bytes))]; {
			case at < len(data) && r.IntN(2) == 0:
				data[at] = insert
			case r.IntN(4) == 0:
				data = data[:at]
			default:
				data = append(data[:at:at], append([]byte{insert}, data[at:]...)...)
			}
		}
		check(t, data)
	}
}

func TestScan_TooMuchIsNamed(t *testing.T) {
	_, err := Scan([]byte(`{} {}`))
	if !errors.Is(err, ErrMore) {
		t.Errorf("got %v, want ErrMore", err)
	}
}

func TestScan_ListsBesideEachOtherAreNotNested(t *testing.T) {
	for _, one := range []string{"[]", "[0]", "{}", `{"a":0}`} {
		check(t, []byte("["+strings.Repeat(one+",", maxDepth)+one+"]"))
	}
}

// FuzzScan scans hostile input.
func FuzzScan(f *testing.F) {
	for _, text := range texts {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(check)
}

func TestZeroValueIsAbsent(t *testing.T) {
	var v Value
	var c Comparison
	if !v.IsAbsent() || v.Kind() != Absent || v.Raw() != nil || v.IsScalar() || v.IsList() || v.IsObject() || v.Ambiguous() || v.Text() != "" || !c.Equal(v, v) {
		t.Errorf("the zero Value is %s", v.Kind())
	}
	doc, err := Scan([]byte("null"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Equal(v, doc.Root()) || c.Equal(doc.Root(), v) || c.Same(v, doc.Root()) {
		t.Error("absent is null")
	}
	for i := v.Items(); i.Next(); {
		t.Error("an absent value has items")
	}
	for m := v.Members(); m.Next(); {
		t.Error("an absent value has members")
	}
}

// TestScan_ModelsOnlySaveWork: the use of models has no effect on the result for adjacent values that are nearly the same, even if
// one is invalid at any position.
func TestScan_ModelsOnlySaveWork(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3617))
	models, faults := 0, 0
	for range 4000 {
		var b strings.Builder
		b.WriteString(`{"pad":"` + strings.Repeat("p", r.IntN(600)) + `"`)
		for b.Len() < alike+100 {
			b.WriteString(`,"` + strings.Repeat("k", r.IntN(80)) + `":` + drawn(r, 5))
		}
		first := b.String() + "}"
		second := first
		for range r.IntN(4) {
			at := r.IntN(len(second))
			switch r.IntN(5) {
			case 0: // usually no longer JSON
				second = second[:at] + string("{}[]:,\"\\ 1x"[r.IntN(11)]) + second[at:]
			case 1:
				second = second[:at] + second[at+1:]
			case 2:
				second = strings.Replace(second, "1", "10", 1+r.IntN(3))
			case 3:
				second = strings.Replace(second, "[", "[[],", 1)
			case 4:
				second = strings.Replace(second, ",", `,"`+strings.Repeat("new", r.IntN(40))+`":{"a":[`+drawn(r, 2)+`]},`, 1)
			}
		}
		data := []byte(`{"uid":"u","object":` + first + `,"oldObject":` + second + `,"options":{"a":{}}}`)
		check(t, data)
		if doc, err := Scan(data); err == nil {
			models++
			doc.Release()
		} else {
			faults++
		}
	}
	if models < 500 || faults < 500 {
		t.Errorf("%d texts are JSON and %d are none: the draw proves little", models, faults)
	}
}
