package fieldpath

import "testing"

func TestPattern_StringIsItsInverse(t *testing.T) {
	for _, text := range []string{"", ".spec.replicas", ".spec.containers[*].image", `.metadata.annotations["example.com/key"]`, `["a\"b"][*]`, ".a-b"} {
		p, err := ParsePattern(text)
		if err != nil || p.String() != text {
			t.Errorf("ParsePattern(%q) = %q, %v", text, p, err)
		}
	}
	for _, text := range []string{"spec", ".", "..a", ".a.", `["a`, `["a"`, "[0]", ".a*", ".a]", `[a]`} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("ParsePattern(%q) = %q, want an error", text, p)
		}
	}
}

func TestPattern_ExtendAddsOneNameAsParsePatternReadsIt(t *testing.T) {
	for _, name := range []string{"replicas", "a-b", "example.com/key", "", "a\"b", "[*]", "*"} {
		p, err := ParsePattern(Extend(".spec[*]", name))
		if err != nil || len(p) != 3 || p[2] != (Element{Name: name}) {
			t.Errorf("%q: %q, %v", name, p, err)
		}
		if got, want := p.String(), ".spec[*]"+(Element{Name: name}).String(); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestPattern_CoversAndMeets(t *testing.T) {
	for _, c := range []struct {
		p, other      string
		covers, meets bool
	}{
		{".spec[*]", ".spec.a", true, true},
		{".spec.a", ".spec[*]", false, true},
		{".spec", ".spec.a", false, true},
		{".spec.a", ".spec.b", false, false},
		{"", ".spec", false, true},
	} {
		p, err := ParsePattern(c.p)
		if err != nil {
			t.Fatal(err)
		}
		other, err := ParsePattern(c.other)
		if err != nil {
			t.Fatal(err)
		}
		if p.Covers(other) != c.covers || p.Meets(other) != c.meets || other.Meets(p) != c.meets {
			t.Errorf("%q and %q: covers %t, meets %t", c.p, c.other, p.Covers(other), p.Meets(other))
		}
	}
}

func TestPointer_EscapesItsSteps(t *testing.T) {
	if got := Pointer("/a", "b/c", "~", "d"); got != "/a/b~1c/~0/d" {
		t.Errorf("got %q", got)
	}
}
