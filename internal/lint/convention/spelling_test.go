package convention

import (
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// TestMisspelt_OneFix: a verb is replaced only if there is no doubt what it is meant to be.
func TestMisspelt_OneFix(t *testing.T) {
	path, err := fieldpath.ParsePattern(".spec.x")
	if err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string]string{
		"Color":                    "color",
		"team-budget":              "teamBudget",
		"example.com/Team_budget":  "example.com/teamBudget",
		"granular:scale":           "scale",
		"granular:example.com/a-b": "example.com/aB",
		"granular:*":               "",
		"granular:":                "",
		"granular:image(web)":      "",
		"*":                        "",
		"!!":                       "",
		"example.com/":             "",
		"label(x)":                 "",
		"éa":                       "",
		"example.com/x/y":          "",
		"pod.color":                "",
		"9lives":                   "",
	} {
		got := (&Checker{}).Verb(Use{Verb: verb, Path: path})
		if len(got) != 1 || got[0].Rule != VerbSpelling || got[0].Instead != want {
			t.Errorf("%q: %+v, want %q", verb, got, want)
		}
	}
}
