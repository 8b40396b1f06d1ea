package admission

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

func TestP7_AnnotationNamesWhoDecided(t *testing.T) {
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
