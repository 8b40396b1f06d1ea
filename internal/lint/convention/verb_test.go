package convention

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
)

func builtIn(t *testing.T) Registry {
	t.Helper()
	r, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	return *r
}

func pattern(t *testing.T, path string) fieldpath.Pattern {
	t.Helper()
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestVerb_Conventions(t *testing.T) {
	c := Checker{Registry: builtIn(t)}
	for _, test := range []struct {
		verb, path string
		// want is "rule: cure" of each problem.
		want []string
	}{
		{"scale", ".spec.replicas", nil},
		{"example.com/budget", ".spec.budget", nil},
		{"gadgets.example.com/budget", ".spec.budget", nil},
		{"com/budget", ".spec.budget", nil},
		{"Color", ".spec.color", []string{`verb-spelling: use "color"`}},
		{"example.com/team-budget", ".spec.x", []string{`verb-spelling: use "example.com/teamBudget"`}},
		{"pod.color", ".spec.color", []string{`verb-spelling: use "podColor"`}},
		{"Example.com/x", ".spec.x", []string{`verb-spelling: use one that you own, such as "example.com/x"`}},
		{"frobnication", ".spec.x", []string{`verb-not-registered: give it a domain that you own, such as "example.com/frobnication", or list it in a registry`}},
		{"images", ".spec.x", []string{`verb-not-registered: use the well-known "image" if that is meant, or give it a domain that you own, such as "example.com/images", or list it in a registry`}},
		{"kubernetes.io/foo", ".spec.x", []string{`reserved-domain: use a domain that you own, such as "example.com/foo"`}},
		{"apps.k8s.io/foo", ".spec.x", []string{`reserved-domain: use a domain that you own, such as "example.com/foo"`}},
		{"fieldperm.dev/foo", ".spec.x", []string{`reserved-domain: use a domain that you own, such as "example.com/foo"`}},
		{"notk8s.io/foo", ".spec.x", []string{`domain-not-of-group: use "example.com/foo", or list the verb in a registry if it is shared`}},
		{"other.org/foo", ".spec.x", []string{`domain-not-of-group: use "example.com/foo", or list the verb in a registry if it is shared`}},
		{"badexample.com/foo", ".spec.x", []string{`domain-not-of-group: use "example.com/foo", or list the verb in a registry if it is shared`}},
		{"example.com/enable", ".spec.x", []string{`verb-not-a-noun: name what is written, with a noun`}},
		{"example.com/setColor", ".spec.x", []string{`verb-not-a-noun: name what is written, such as "example.com/color"`}},
		{"example.com/suspended", ".spec.suspended", []string{`verb-not-a-noun: name the concept, with a noun: suspension, not suspended`}},
		{"example.com/setting", ".spec.x", nil},
		{"example.com/gadgetNodeName", ".spec.nodeName", []string{`verb-names-path: name the concept, so that the verb can be used under another parent`}},
		{"example.com/specColor", ".spec.color", []string{`verb-names-path: name the concept, so that the verb can be used under another parent`}},
		{"example.com/paintTint", ".spec.paint.hue", []string{`verb-repeats-ancestor: leave it out, as in "example.com/tint"`}},
		{"example.com/gadgetTint", ".spec.hue", []string{`verb-repeats-ancestor: leave it out, as in "example.com/tint"`}},
		{"example.com/teamBudget", ".spec.budget[*]", nil},
		{"example.com/budget", ".spec.budgets[*]", nil},
		{"example.com/paint", ".spec.paint.hue", nil},
		{"example.com/scale", ".spec.x", []string{`verb-near-duplicate: use "scale" if the concept is the same`}},
		{"example.com/immage", ".spec.x", []string{`verb-near-duplicate: use "image" if the concept is the same`}},
	} {
		var got []string
		for _, p := range c.Verb(Use{Verb: test.verb, Path: pattern(t, test.path), Group: "example.com", Kind: "Gadget", Own: true}) {
			got = append(got, p.Rule+": "+p.Cure)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s at %s: got %q, want %q", test.verb, test.path, got, test.want)
		}
	}
}

// An administrator adds to the kinds of others, so the group of the kind says nothing about whose domain a verb has. Nor does it permit a
// domain of Kubernetes.
func TestVerb_OfAnAdministrator(t *testing.T) {
	c := Checker{Registry: builtIn(t)}
	for verb, want := range map[string]string{
		"mine.org/stage":             "",
		"networking.k8s.io/stage":    ReservedDomain,
		"stage":                      VerbNotRegistered,
		"example.com/ingressBackend": VerbRepeats,
	} {
		var got []string
		for _, p := range c.Verb(Use{Verb: verb, Path: pattern(t, ".spec.x"), Group: "networking.k8s.io", Kind: "Ingress"}) {
			got = append(got, p.Rule)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %q", verb, got, want)
		}
	}
	own := Use{Verb: "gateway.networking.k8s.io/route", Path: pattern(t, ".spec.x"), Group: "gateway.networking.k8s.io", Kind: "Gateway", Own: true}
	if got := c.Verb(own); len(got) > 0 {
		t.Errorf("the owner of a group may not use its domain: %v", got)
	}
}

func TestNear(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"example.com/colour", "example.com/color", true}, {"example.com/color", "example.com/color", false}, {"example.com/budgets", "example.com/budget", false},
		{"example.com/color", "color", false}, {"tls", "tli", false}, {"organisation", "organization", true}, {"example.com/tint", "example.org/tint", false},
	} {
		if _, got := Near(test.a, test.b); got != test.want {
			t.Errorf("%s, %s: %t", test.a, test.b, got)
		}
	}
}

// The registry has each verb that the catalogue gives to a field, and no other.
func TestBuiltIn_IsTheCatalogue(t *testing.T) {
	documents, err := load.Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, d := range documents {
		for _, e := range d.Entries {
			if e.Verb != "" {
				want[e.Verb] = true
			}
		}
	}
	r := builtIn(t)
	for verb := range want {
		if !r.Has(verb) {
			t.Errorf("%s is not registered", verb)
		}
	}
	for _, v := range r.All() {
		if !want[v.Verb] {
			t.Errorf("%s is registered, and no field has it", v.Verb)
		}
	}
}

// reviewed are verbs of the catalogue that break a convention with a reason.
var reviewed = map[string]string{
	"deviceConfiguration": "a configuration, constraints, requests or a status alone would be those of the claim",
	"deviceConstraints":   "see deviceConfiguration",
	"deviceRequests":      "see deviceConfiguration",
	"deviceStatus":        "see deviceConfiguration",
	"templateMetadata":    "metadata in a template never has the verbs of the object's own metadata",
	"templateLabels":      "see templateMetadata",
	"templateLabel":       "see templateMetadata",
	"templateAnnotations": "see templateMetadata",
	"templateAnnotation":  "see templateMetadata",
	"templateFinalizers":  "see templateMetadata",
	"templateFinalizer":   "see templateMetadata",
}

// G12: the verbs of the catalogue follow the conventions that fieldperm asks of others. A verb that does not has a reason.
func TestG12_TheCatalogueFollowsTheConventions(t *testing.T) {
	documents, err := load.Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	c := Checker{} // Nothing is registered, so that each verb is checked.
	used := map[string]bool{}
	for _, d := range documents {
		for _, e := range d.Entries {
			if e.Verb == "" {
				continue
			}
			kind := d.Kind
			if kind == "*" {
				kind = ""
			}
			for _, p := range c.Verb(Use{Verb: e.Verb, Path: pattern(t, e.Path), Group: d.Group, Kind: kind}) {
				if p.Rule == VerbNotRegistered {
					continue
				}
				if reviewed[e.Verb] == "" {
					t.Errorf("%s %s: %s [%s]", d.Kind, e.Path, p.Message, p.Rule)
				}
				used[e.Verb] = true
			}
		}
	}
	for verb := range reviewed {
		if !used[verb] {
			t.Errorf("%s breaks no convention: leave it out of the list", verb)
		}
	}
}

func TestPowerOf(t *testing.T) {
	r := builtIn(t)
	var known []string
	for _, p := range schema.AllPowers() {
		known = append(known, string(p))
	}
	check := func(name string, p Power) {
		if !slices.Contains(known, p.Word) || p.Verb != "" && !r.Has(p.Verb) || p.Effect == "" {
			t.Errorf("%s: %+v: the word or the verb is unknown", name, p)
		}
	}
	for name, p := range powers {
		check(name, p)
	}
	for _, s := range suffixes {
		check(s.end, s.Power)
	}
	for name, want := range map[string]string{
		"image": "runsCode", "secretRef": "readsSecrets", "adminSecretName": "readsSecrets", "serviceAccountName": "escalates", "tlsCABundle": "redirectsTraffic",
		"imagine": "", "color": "", "secretary": "", "": "",
	} {
		if got, _ := PowerOf(name); got.Word != want {
			t.Errorf("%s: got %q, want %q", name, got.Word, want)
		}
	}
	if p, ok := Unguarded("image", ""); !ok || p.Level != "warning" || p.Message != `field "image" has no verb of its own: a holder of a verb above it, such as "specification", can run code of its choice (runsCode)` {
		t.Errorf("%t %+v", ok, p)
	}
	if p, ok := Unguarded("image", "runner"); !ok || p.Level != "note" || !strings.Contains(p.Message, `"runner"`) {
		t.Errorf("%t %+v", ok, p)
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{"teamBudget": "[team budget]", "hostIPC": "[host ipc]", "tlsCABundle": "[tls ca bundle]", "x": "[x]", "": "[]", "V1": "[v1]"} {
		if got := fmt.Sprint(words(name)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
