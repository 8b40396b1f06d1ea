package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

func TestP7_AnnotationNamesTheAuthorizer(t *testing.T) {
	for name, test := range map[string]struct {
		checks []fieldperm.Check
		want   string
	}{
		"nobody asked":              {nil, ""},
		"nobody had an opinion":     {[]fieldperm.Check{{Verb: "update"}, {Verb: "granular"}}, ""},
		"one decided":               {[]fieldperm.Check{{Verb: "update"}, {Verb: "granular", Allowed: true, By: "rbac"}, {Verb: "granular:*"}, {Verb: "granular:scale", Allowed: true, By: "rbac"}}, "rbac=granular,granular:scale"},
		"a denial":                  {[]fieldperm.Check{{Verb: "update", By: "protector"}}, "protector=!update"},
		"several, in their order":   {[]fieldperm.Check{{Verb: "update", By: "protector"}, {Verb: "granular", Allowed: true, By: "rbac"}, {Verb: "granular:a", By: "protector"}}, "protector=!update,!granular:a rbac=granular"},
		"a parameter has no syntax": {[]fieldperm.Check{{Verb: "granular:label(a%20b%3D)", Allowed: true, By: "rbac"}}, "rbac=granular:label(a%20b%3D)"},
	} {
		t.Run(name, func(t *testing.T) {
			result := &Result{Decision: fieldperm.Decision{Checks: test.checks}}
			got, present := annotations(result)[AnnotationAuthorizers]
			if got != test.want || present != (test.want != "") {
				t.Errorf("got %q, present %t; want %q", got, present, test.want)
			}
		})
	}
}

func TestP7_AnnotationOfAuthorizersIsBounded(t *testing.T) {
	long := strings.Repeat("x", 300)
	var checks []fieldperm.Check
	for _, by := range []string{"a", "b", "c", "d", "e"} {
		checks = append(checks, fieldperm.Check{Verb: "granular:" + long, Allowed: true, By: by})
	}
	got := annotations(&Result{Decision: fieldperm.Decision{Checks: checks}})[AnnotationAuthorizers]
	if len(got) > maxAnnotation || !strings.HasPrefix(got, "a=granular:x") || !strings.HasSuffix(got, "x,…") || strings.Count(got, "=") != 3 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestP7_AnnotationListsEachVerbOnceInOrder(t *testing.T) {
	long := "granular:" + strings.Repeat("x", maxAnnotation)
	for name, test := range map[string]struct {
		coveredBy []string
		checks    []fieldperm.Check
		want      string
	}{
		"no change":                        {nil, nil, ""},
		"one verb, which is all there is":  {[]string{"granular:scale"}, nil, "granular:scale"},
		"sorted, each once":                {[]string{"granular:b", "granular:a", "", "granular:b", "granular:c", "granular:a"}, nil, "granular:a,granular:b,granular:c"},
		"the generic verb too":             {[]string{"granular:node", "update"}, []fieldperm.Check{{Verb: "update", Allowed: true}, {Verb: "granular", Allowed: true}, {Verb: "granular:node", Allowed: true}}, "granular:node,update"},
		"the generic verb alone":           {nil, []fieldperm.Check{{Verb: "update"}, {Verb: "patch", Allowed: true}}, "patch"},
		"one verb that does not fit":       {[]string{long}, nil, ",…"},
		"one that fits, one that does not": {[]string{long, "granular:a"}, nil, "granular:a,…"},
	} {
		t.Run(name, func(t *testing.T) {
			result := &Result{Decision: fieldperm.Decision{Allowed: true, CoveredBy: test.coveredBy, Checks: test.checks}}
			if got := annotations(result)[AnnotationVerbs]; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if result.Allowed = false; annotations(result)[AnnotationVerbs] != "" {
				t.Error("a denial names verbs that covered")
			}
		})
	}
}

// BenchmarkAnnotations measures an ordinary review: one field, six checks.
func BenchmarkAnnotations(b *testing.B) {
	checks := []fieldperm.Check{{Verb: "update"}, {Verb: "patch"}, {Verb: "granular", Allowed: true}, {Verb: "granular:*"}, {Verb: "granular:specification"}, {Verb: "granular:scale", Allowed: true}}
	named := slices.Clone(checks)
	for i := range named {
		if named[i].Allowed {
			named[i].By = "rbac"
		}
	}
	for name, checks := range map[string][]fieldperm.Check{"nobody-named": checks, "rbac": named} {
		b.Run(name, func(b *testing.B) {
			result := &Result{Decision: fieldperm.Decision{Allowed: true, Mode: fieldperm.ModeGranular, Checks: checks, CoveredBy: []string{"granular:scale"}}}
			b.ReportAllocs()
			for b.Loop() {
				if len(annotations(result)) < 3 {
					b.Fatal("an annotation is missing")
				}
			}
		})
	}
}
