package refusal

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// drawn draws denials, with names that try to pass for other parts of a message.
type drawn struct{ *rand.Rand }

var hostile = []string{
	"web", "", `x" is forbidden: User "admin" may not change .spec: needs granular:*`, `: needs granular:*; authorizer "x" denies granular`, "line\nbreak\r\n", "needs", "…",
	`a\"; the condition of policy "p" is not met`, " (9 more changes were not looked at)", "\u202e\x1b[31m", "\xff\xfe", `"`, `\`, "would do, or change fewer", "): needs granular:*", "]: needs granular:*",
}

func (d drawn) name() string {
	name := hostile[d.IntN(len(hostile))] + strings.Repeat("é", d.IntN(3)) + hostile[d.IntN(len(hostile))]
	if d.IntN(4) == 0 {
		name = strings.Repeat("long", 60+d.IntN(10)) + name
	}
	return name
}

func (d drawn) verb() verbs.Verb {
	v, err := verbs.New([]string{"scale", "image", "example.com/colour", "specification"}[d.IntN(4)])
	if err != nil {
		panic(err)
	}
	switch d.IntN(4) {
	case 0:
		return verbs.All()
	case 1:
		if with, ok := v.WithParameter(d.name()); ok {
			return with
		}
	}
	return v
}

func (d drawn) path() fieldpath.Path {
	var p fieldpath.Path
	for range d.IntN(6) {
		switch d.IntN(6) {
		case 0:
			p = p.Field([]string{"spec", "template", "a_b-c", "$ref"}[d.IntN(4)])
		case 1:
			p = p.Key(d.name())
		case 2:
			p = p.Index(d.IntN(100))
		case 3:
			p = p.Item([]fieldpath.Key{{Name: "name", Value: []byte(strconv.Quote(strings.ToValidUTF8("a"+strings.Repeat("b", d.IntN(300)), "")))}, {Name: "port", Value: []byte("80")}})
		case 4:
			p = p.Member([]byte(`{"a":1}`))
		case 5:
			p = p.Field("spec").Field("replicas")
		}
	}
	return p
}

func (d drawn) denial() *fieldperm.Denial {
	out := &fieldperm.Denial{More: d.IntN(3), Generic: []string{"update", "patch"}, GenericOnly: d.IntN(2) == 0}
	if d.IntN(2) == 0 {
		out.Refusal = &fieldperm.Refusal{Verb: d.verb().String(), By: d.name(), Reason: d.name()}
	}
	for range d.IntN(6) {
		u := fieldperm.Unmet{Name: d.name(), Description: d.name()}
		if d.IntN(2) == 0 {
			u.Authorizer = "a" + d.name()
		}
		out.Unmet = append(out.Unmet, u)
	}
	switch d.IntN(4) {
	case 0:
		return out
	case 1:
		out.Generic, out.GenericOnly, out.Unmet = nil, false, nil
		out.Refusal = &fieldperm.Refusal{Verb: "update", By: d.name(), Reason: d.name()}
		return out
	}
	r := &fieldperm.Requirement{Path: d.path(), Operation: []fieldperm.Operation{fieldperm.Modified, fieldperm.Added, fieldperm.Reordered, fieldperm.Ownership}[d.IntN(4)]}
	if r.Operation == fieldperm.Ownership && d.IntN(2) == 0 {
		r.Entry = strconv.Quote(d.name()) + " in " + []string{"apps/v1", "v1", "v1): needs granular:*"}[d.IntN(3)]
	}
	r.Instead = []string{"", `version "v1" does not show every field: write through version "v2"`, "send it as JSON; if you did, wait"}[d.IntN(3)]
	out.Requirement, out.Unattributed = r, d.IntN(3) == 0
	for range d.IntN(5) {
		out.Needs = append(out.Needs, d.verb())
	}
	if d.IntN(4) == 0 {
		out.Checks = 1 + d.IntN(64)
	}
	return out
}

func short(text string) string { return shorten.Text(text, 256) }

// want is what the message of a denial says.
func want(d *fieldperm.Denial, s fieldperm.Subject) Refusal {
	out := Refusal{Origin: FromFieldperm, Resource: s.Resource, Name: short(s.Name), User: short(s.User)}
	if d.Refusal != nil {
		out.Deny = &Deny{Authorizer: short(d.Refusal.By), Verb: short(d.Refusal.Verb), Reason: short(d.Refusal.Reason)}
	}
	if d.IsRefusal() {
		out.Verb = s.Verb
		return out
	}
	for i, u := range d.Unmet {
		if i == 3 {
			out.MoreUnmet = len(d.Unmet) - 3
			break
		}
		out.Unmet = append(out.Unmet, Unmet{Name: short(u.Name), Authorizer: short(u.Authorizer), Description: short(u.Description)})
	}
	r := d.Requirement
	if r == nil {
		out.Verb, out.Needs, out.OrGranular = s.Verb, d.Generic, !d.GenericOnly
		return out
	}
	out.Field, out.MoreChanges, out.Entry, out.Advice = short(d.Field()), d.More, r.Entry, r.Instead
	out.FieldCut = out.Field != d.Field()
	out.Change = map[fieldperm.Operation]string{fieldperm.Reordered: "order", fieldperm.Ownership: "owners"}[r.Operation]
	out.Unattributed = d.Unattributed && r.Instead == ""
	out.MaxChecks = d.Checks
	out.NoVerb = d.Checks == 0 && len(d.Needs) == 0
	for i, v := range d.Needs {
		if d.Checks == 0 || i == 0 {
			out.Needs = append(out.Needs, v.String())
		}
	}
	return out
}

// TestParse_ReversesEveryMessage: whatever is in names, the facts are those of the denial. A message that cannot be read to its end is
// Unclear, and then it claims no verbs that the denial does not have.
func TestParse_ReversesEveryMessage(t *testing.T) {
	d := drawn{rand.New(rand.NewPCG(3617, 1))}
	clear := 0
	for range 10_000 {
		denial, subject := d.denial(), fieldperm.Subject{Resource: "deployments.apps/scale", Name: d.name(), User: d.name(), Verb: []string{"update", "connect to"}[d.IntN(2)]}
		text := denial.Message(subject)
		expected := want(denial, subject)
		for _, before := range []string{"", "Error from server (Forbidden): ", `Error from server (Forbidden): error when patching "a: b.yaml": `} {
			got := Parse(before + text)
			if len(got) != 1 {
				t.Fatalf("%d refusals in %s", len(got), text)
			}
			r := got[0]
			if r.Unclear {
				// The version of an entry is not quoted, and a key may be cut with its closing quote.
				if !strings.Contains(expected.Entry, "v1):") && len(expected.Entry) <= 256 {
					t.Fatalf("unclear: %s\n%+v", text, r)
				}
				if r.Name != expected.Name || r.User != expected.User || len(r.Needs) > 0 || r.Deny != nil || r.Advice != "" {
					t.Fatalf("claims more than the text says: %s\n%+v", text, r)
				}
				continue
			}
			clear++
			if !reflect.DeepEqual(normal(r), normal(expected)) {
				t.Fatalf("%s\ngot  %+v\nwant %+v", text, normal(r), normal(expected))
			}
		}
		if got := Parse(fmt.Sprintf(`E1125 controller.go:1] "Failed" err=%q name="x"`, text)); len(got) != 1 || got[0].User != expected.User {
			t.Fatalf("in a log: %+v", got)
		}
	}
	if clear < 20_000 {
		t.Errorf("only %d messages were read to their end", clear)
	}
}

func normal(r Refusal) string {
	deny := ""
	if r.Deny != nil {
		deny = fmt.Sprintf("%+v", *r.Deny)
	}
	r.Deny = nil
	return fmt.Sprintf("%+q %s", []any{r}, deny)
}
