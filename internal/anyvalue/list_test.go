package anyvalue

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// engine is the only part of the object.
func engine(t *testing.T, tree *fieldtree.Kind) func(Located) []Located {
	return func(of Located) []Located {
		if of.Path != ".spec.parts" {
			return nil
		}
		path := of.Path + `[name="engine"]`
		p, err := tree.Find(path)
		must(t, err)
		return []Located{{path, p}}
	}
}

func TestListHasARowWhereTheAnswerChanges(t *testing.T) {
	tree, err := fieldtree.Of(schematest.Traced(t, widgets), widgetKind, widgetRef)
	must(t, err)
	for verbs, want := range map[string]string{
		"":                                   "",
		"granular":                           "",
		"granular granular:example.com/size": ".spec.size yes",
		"update":                             ` yes, .spec.colour no, .spec.parts[name="engine"].weight no, .spec.plain depends, .spec.point.z no, .spec.size depends`,
		"update granular:example.com/colour granular:example.com/plain granular:example.com/size granular:example.com/weight(engine) granular:example.com/z": ` yes`,
		"granular granular:specification":                            ".spec yes, .spec.colour no, .spec.parts[name=\"engine\"].weight no, .spec.plain depends, .spec.point.z no, .spec.size depends",
		"granular granular:example.com/part(engine)":                 `.spec.parts[name="engine"] yes, .spec.parts[name="engine"].weight no`,
		"granular granular:example.com/part(wheel)":                  "",
		"granular granular:example.com/weight(engine)":               `.spec.parts[name="engine"].weight yes`,
		"granular:example.com/weight(engine) granular:specification": "",
		// The verb of a field of an atomic value covers nothing without that of the whole, and a barrier inside needs its own in addition.
		"granular granular:example.com/x granular:example.com/left granular:deletionBlock": "",
		"granular granular:example.com/point granular:example.com/x":                       ".spec.point yes, .spec.point.z no",
		"granular granular:example.com/z":                                                  "",
	} {
		l := &Lister{
			Judge: &Judge{Holdings: &Holdings{Authorizer: holding(append(strings.Fields(verbs), "get")...)}, Verb: "update", TakesMarker: true},
			Items: engine(t, tree), Skips: func(path string) bool { return path == ".status" },
		}
		rows, err := l.List(t.Context(), tree)
		must(t, err)
		var got []string
		for _, r := range rows {
			got = append(got, r.Path+" "+r.Answer.Outcome.String())
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%q: got %s, want %s", verbs, text, want)
		}
	}
}

// interrupted ends the context at a verb.
type interrupted struct {
	*holder
	at  string
	end func()
}

func (i interrupted) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	if verb == i.at {
		i.end()
	}
	return i.holder.Authorize(ctx, verb, generic)
}

func TestAnInterruptLeavesTheRowsThatWereFound(t *testing.T) {
	tree, err := fieldtree.Of(schematest.Traced(t, widgets), widgetKind, widgetRef)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	of := interrupted{holding("granular", "get", "granular:metadata"), "granular:example.com/colour", cancel}
	l := &Lister{Judge: &Judge{Holdings: &Holdings{Authorizer: of}, Verb: "update", TakesMarker: true}, Items: engine(t, tree), Skips: func(string) bool { return false }}
	rows, err := l.List(ctx, tree)
	if !errors.Is(err, context.Canceled) || len(rows) != 1 || rows[0].Path != ".metadata" {
		t.Errorf("%+v, %v", rows, err)
	}
}
