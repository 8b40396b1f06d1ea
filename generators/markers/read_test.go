package markers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/schema/load"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if text != string(want) {
		t.Errorf("%s differs: run go test -update and look at the difference; it is now\n%s", path, text)
	}
}

// relative removes the directory of the test from positions.
func relative(t *testing.T, text string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, dir+string(filepath.Separator), "")
}

func lines(t *testing.T, errs []error) string {
	t.Helper()
	var b strings.Builder
	for _, err := range errs {
		fmt.Fprintln(&b, err)
	}
	return relative(t, b.String())
}

// TestRead_EveryPlace: every marker of the package is in the result or has an error.
func TestRead_EveryPlace(t *testing.T) {
	roots, err := Load("", nil, "./testdata/places")
	if err != nil {
		t.Fatal(err)
	}
	set, errs := Read(roots)
	var b strings.Builder
	write := func(name string, keys Keys) {
		for _, v := range keys {
			fmt.Fprintf(&b, "%s: %s %s = %q\n", v.Position, name, v.Key.Marker(), v.Value)
			for _, same := range v.Same {
				fmt.Fprintf(&b, "%s: %s the same\n", same.Position, name)
			}
		}
	}
	for _, typ := range set.Types() {
		name := typ.Name
		if typ.Generated {
			name += " (generated)"
		}
		write(name, typ.Keys)
		for _, f := range typ.Fields {
			write(name+"."+f.Name, f.Keys)
		}
	}
	result, faults := relative(t, b.String()), lines(t, errs)
	golden(t, "places.golden", result+"\n"+faults)

	// The text of each marker's line has to be at a position of the result or the errors.
	raw, err := os.ReadFile("testdata/places/types.go")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(raw), "\n") {
		isMarker := strings.Contains(line, `permis`) && !strings.Contains(line, "prose") && !strings.Contains(line, "const ")
		if at := fmt.Sprintf("types.go:%d:", i+1); isMarker && !strings.Contains(result+faults, at) {
			t.Errorf("line %d is silently ignored: %s", i+1, line)
		}
	}
}

func TestOverride_AsPackageLoadDoes(t *testing.T) {
	all := grammar.Keys()
	value := func(key grammar.Key, text string) *Value {
		if key == grammar.Excluded {
			text = "true"
		}
		return &Value{Marker: grammar.Marker{Key: key, Value: text}}
	}
	subset := func(bits int, text string) Keys {
		var out Keys
		for i, key := range all {
			if bits&(1<<i) != 0 {
				out = append(out, value(key, text))
			}
		}
		return out
	}
	for i := range 1 << len(all) {
		for j := range 1 << len(all) {
			inner, outer := subset(i, "inner"), subset(j, "outer")
			if got, want := Override(inner, outer).Permission(), load.Override(inner.Permission(), outer.Permission()); got != want {
				t.Fatalf("%+v with %+v: got %+v, want %+v", inner.Permission(), outer.Permission(), got, want)
			}
		}
	}
}
