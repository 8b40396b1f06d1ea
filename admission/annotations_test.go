package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/verbs"
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

func TestKEP3221_P7_AnnotationNamesSkippedWebhooks(t *testing.T) {
	for name, test := range map[string]struct {
		checks []fieldperm.Check
		want   string
	}{
		"nobody asked":    {nil, ""},
		"nothing skipped": {[]fieldperm.Check{{Verb: "update", By: "rbac"}}, ""},
		"one of one":      {[]fieldperm.Check{{Verb: "update", Skipped: "opa"}}, "opa=update"},
		"several": {
			[]fieldperm.Check{{Verb: "update", Skipped: "opa,crd"}, {Verb: "granular", By: "rbac"}, {Verb: "granular:scale", Allowed: true, Skipped: "crd"}, {Verb: "granular:x", Skipped: "last,opa"}},
			"opa=update,granular:x crd=update,granular:scale last=granular:x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, present := annotations(&Result{Decision: fieldperm.Decision{Checks: test.checks}})[AnnotationSkipped]
			if got != test.want || present != (test.want != "") {
				t.Errorf("got %q, present %t; want %q", got, present, test.want)
			}
		})
	}
	long := strings.Repeat("x", 300)
	var checks []fieldperm.Check
	for i := range 5 {
		checks = append(checks, fieldperm.Check{Verb: fmt.Sprintf("granular:%s%d", long, i), Skipped: "a,b"})
	}
	if got := annotations(&Result{Decision: fieldperm.Decision{Checks: checks}})[AnnotationSkipped]; len(got) > maxAnnotation || !strings.HasPrefix(got, "a=granular:x") || !strings.HasSuffix(got, "x2,…") {
		t.Errorf("%d bytes: %s", len(got), got)
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

func TestP7_AnnotationListsTheVerbsOfTheChangedFields(t *testing.T) {
	chain := func(texts ...string) (out []verbs.Verb) {
		for _, text := range texts {
			verb, err := verbs.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, verb)
		}
		return out
	}
	long := strings.Repeat("x", 500)
	labels := func(n int) (out []fieldperm.Requirement) {
		for i := range n {
			out = append(out, fieldperm.Requirement{Barrier: -1, Chain: chain("granular:*", fmt.Sprintf("granular:label(%s%03d)", long, i))})
		}
		return out
	}
	label := func(i int) string { return fmt.Sprintf("granular:label(%s%03d)", long, i) }
	for name, test := range map[string]struct {
		requirements []fieldperm.Requirement
		want         string
	}{
		"no change": {nil, ""},
		"each once, sorted": {[]fieldperm.Requirement{
			{Barrier: -1, Chain: chain("granular:*", "granular:template", "granular:image", "granular:image(web)")},
			{Barrier: -1, Chain: chain("granular:*", "granular:scale")},
			{Barrier: 2, Chain: chain("granular:*", "granular:template", "granular:image", "granular:image(web)")},
			{Barrier: -1, Chain: chain("granular:*")},
		}, "granular:*,granular:image(web),granular:scale"},
		"behind a barrier":      {[]fieldperm.Requirement{{Barrier: 1, Chain: chain("granular:*", "granular:scale")}}, "granular:scale"},
		"no verb covers it":     {[]fieldperm.Requirement{{Barrier: 1, Chain: chain("granular:*")}}, "none"},
		"the zero requirement":  {[]fieldperm.Requirement{{}}, "none"},
		"one that fits":         {labels(1), label(0)},
		"cut":                   {labels(12), label(0) + ",…+11"},
		"not even one fits":     {[]fieldperm.Requirement{{Barrier: -1, Chain: chain("granular:label(" + long + long + "x)")}, {Barrier: -1, Chain: chain("granular:z(" + long + ")")}}, "…+2"},
		"one that does not fit": {[]fieldperm.Requirement{{Barrier: -1, Chain: chain("granular:label(" + long + long + "0123456789)")}}, "…+1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, present := annotations(&Result{Requirements: test.requirements})[AnnotationFields]
			if got != test.want || !present || len(got) > maxAnnotation {
				t.Errorf("present %t, %d bytes: %s; want %s", present, len(got), got, test.want)
			}
		})
	}
}
