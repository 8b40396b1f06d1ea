package verbs

import (
	"strings"
	"testing"
)

func TestGrammar_ParseIsTheInverseOfString(t *testing.T) {
	for _, text := range []string{
		"granular", "granular:*", "granular:scale", "granular:label(example.com)", "granular:example.com/budget",
		"granular:example.com/budget(a%20b)", "granular:condition(SuperSafe)", "granular:datum(%29)",
		"granular:x(" + strings.Repeat("a", MaxParameterBytes) + ")",
	} {
		v, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if v.String() != text {
			t.Errorf("Parse(%q).String() = %q", text, v)
		}
	}
}

func TestGrammar_Refuses(t *testing.T) {
	for _, text := range []string{
		"", "update", "*", "granular:", "Granular:scale", "granular:Scale", "granular:scale ", "granular:sc_ale", "granular:1x",
		"granular:*(x)", "granular:label()", "granular:label(a", "granular:label(a))", "granular:label(a b)", "granular:label(%2)",
		"granular:label(%zz)", "granular:label(%2f)", "granular:label(%41)", "granular:label(%FF)", "granular:/scale", "granular:-a/scale",
		"granular:Example.com/scale", "granular:a/b/c", "granular:x(" + strings.Repeat("a", MaxParameterBytes+1) + ")", "granular:label(a)b",
		"granular:" + strings.Repeat("a", maxNameLength+1), "granular:a..b/scale",
	} {
		if v, err := Parse(text); err == nil || !v.IsZero() {
			t.Errorf("Parse(%q) = %q, want an error and the zero verb", text, v)
		}
	}
}

func TestGrammar_ErrorNamesTheCure(t *testing.T) {
	for name, want := range map[string]string{"Scale": `use "scale"`, "node-name": `use "nodeName"`, "3": `use "name"`, "X/y": "DNS subdomain", "granular:scale": `use "scale"`, "granular:*": "prefix of granted verbs", "example.com/Foo": `use "example.com/foo"`} {
		if err := ValidateName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ValidateName(%q) = %v, want %q in it", name, err, want)
		}
	}
}

func TestGrammar_ValueThatCannotBeAParameterYieldsNoVerb(t *testing.T) {
	v, err := New("label")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"", strings.Repeat("a", MaxParameterBytes+1), strings.Repeat("(", MaxParameterBytes/3+1), "\xff"} {
		if got, ok := v.WithParameter(value); ok || !got.IsZero() {
			t.Errorf("WithParameter(%q) = %q, %v", value, got, ok)
		}
	}
	p, _ := v.WithParameter("a")
	for _, base := range []Verb{{}, MarkerVerb(), All(), p} {
		if got, ok := base.WithParameter("b"); ok || !got.IsZero() {
			t.Errorf("%q.WithParameter = %q, %v", base, got, ok)
		}
	}
}

func TestGrammar_ParameterIsSpelledInOneWay(t *testing.T) {
	label, err := New("label")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"app.kubernetes.io/name": "granular:label(app.kubernetes.io/name)",
		"aZ09._~:/@-":            "granular:label(aZ09._~:/@-)",
		"a b":                    "granular:label(a%20b)",
		"(%)":                    "granular:label(%28%25%29)",
		"é\x00\x7f":              "granular:label(%C3%A9%00%7F)",
		"!*'+,;=?#[]{}\"\\":      "granular:label(%21%2A%27%2B%2C%3B%3D%3F%23%5B%5D%7B%7D%22%5C)",
	} {
		v, ok := label.WithParameter(value)
		if !ok || v.String() != want {
			t.Errorf("WithParameter(%q) = %q, %v, want %q", value, v, ok, want)
		}
		if got := testing.AllocsPerRun(10, func() { v, _ = label.WithParameter(value) }); got > 1 {
			t.Errorf("WithParameter(%q) allocates %v times, want the text of the verb alone", value, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"granular", "granular:*", "granular:a(b)", "granular:x.y/z(%C3%A4)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err != nil {
			if !v.IsZero() {
				t.Fatalf("Parse(%q) failed with the verb %q", s, v)
			}
			return
		}
		if v.String() != s {
			t.Fatalf("Parse(%q).String() = %q", s, v)
		}
		if value, ok := v.Parameter(); ok {
			base, err := New(v.Name())
			if err != nil {
				t.Fatal(err)
			}
			if again, ok := base.WithParameter(value); !ok || again != v {
				t.Fatalf("%q: parameter %q makes %q", v, value, again)
			}
		}
	})
}

func FuzzParameter(f *testing.F) {
	f.Add("a/b")
	f.Add("a)b(%")
	f.Fuzz(func(t *testing.T, value string) {
		base, _ := New("label")
		v, ok := base.WithParameter(value)
		if !ok {
			return
		}
		if got, err := Parse(v.String()); err != nil || got != v {
			t.Fatalf("Parse(%q) = %q, %v", v, got, err)
		}
		if got, ok := v.Parameter(); !ok || got != value {
			t.Fatalf("%q.Parameter() = %q, want %q", v, got, value)
		}
	})
}

// C5: the verb of the existence of objects is no verb of a field.
func TestC5_ValidateFieldVerb(t *testing.T) {
	for name, want := range map[string]string{"creation": `"example.com/creation"`, "Creation": `use "creation"`, "example.com/creation": "", "creations": ""} {
		if err := ValidateFieldVerb(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
