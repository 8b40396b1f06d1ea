package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// secretChains returns the verbs for a change of the secret through a version: for each requirement the verbs that cover it, which are
// all of the chain, or those from the last barrier on.
func secretChains(t *testing.T, s *schema.Schema, version, old, new string, uncovered ...string) []string {
	t.Helper()
	k, err := s.Kind(boxOf(version))
	if err != nil {
		t.Fatal(err)
	}
	set := barriersOf(t, uncovered...)
	spec := func(secret string) []byte {
		return []byte(`{"metadata":{"name":"x"},"spec":{"size":1,"secret":"` + secret + `"}}`)
	}
	got, err := fieldperm.Diff(t.Context(), spec(old), spec(new), k, set)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range got {
		text := strings.ReplaceAll(fmt.Sprint(got[i].Candidates()), "granular:", "")
		if got[i].Barred() {
			text = "barred " + text
		}
		out = append(out, text)
	}
	return out
}

// twoSchemas returns PermissionSchemas of the two versions, each with one entry or none.
func twoSchemas(v1, v1beta1 string) []string {
	var out []string
	for version, entry := range map[string]string{"v1": v1, "v1beta1": v1beta1} {
		if entry != "" {
			out = append(out, strings.Replace(guardOf("Box", version, "{path: .spec.secret, "+entry+"}"), "name: x", "name: of-"+version, 1))
		}
	}
	slices.Sort(out)
	return out
}

// everyConversion holds definitions with the same field in both versions, by the way in which they are converted.
func everyConversion() map[string]versions {
	return map[string]versions{
		"by name":                    {v1: named, v1beta1: named},
		"by a webhook":               {v1: named, v1beta1: named, metadata: vouched, top: byWebhook},
		"by a webhook, other fields": {v1: named, v1beta1: renamedBeside, metadata: vouched, top: byWebhook},
	}
}

// renamedBeside has the secret, and another name for another field.
const renamedBeside = `{type: object, properties: {count: {type: integer}, secret: {type: string}, pair: {type: object, properties: {a: {type: string}}}}}`

// TestC2_AFieldOfTwoVersionsHasOneVerb: an entry for the field in one version also applies to the other versions.
func TestC2_AFieldOfTwoVersionsHasOneVerb(t *testing.T) {
	for conversion, v := range everyConversion() {
		for name, c := range map[string]struct {
			v1, v1beta1, metadata string
			uncovered             []string
			want                  []string
		}{
			"without a set":                             {v1: "verb: secret", want: []string{"[* secret]"}},
			"a set":                                     {v1: "verb: secret", uncovered: []string{"granular:secret"}, want: []string{"barred [secret]"}},
			"a set of another verb":                     {v1: "verb: secret", uncovered: []string{"granular:size"}, want: []string{"[* secret]"}},
			"a set, an annotation":                      {metadata: `, annotations: {fieldperm.dev/lossless-conversion: "true", fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"secret"}],"v1beta1":[]}'}`, uncovered: []string{"granular:secret"}, want: []string{"barred [secret]"}},
			"the verb of each":                          {v1: "verb: secret", v1beta1: "verb: other", want: []string{"[* other]"}},
			"a set on the verb of each":                 {v1: "verb: secret", v1beta1: "verb: other", uncovered: []string{"granular:other"}, want: []string{"barred [other]"}},
			"a set on the verb of other":                {v1: "verb: secret", v1beta1: "verb: other", uncovered: []string{"granular:secret"}, want: []string{"[* other]", "barred [secret]"}},
			"a parameter":                               {v1: "verb: secret, parameterSource: s, parameterizedBy: s", want: []string{"[* secret secret(a)]", "[* secret secret(b)]"}},
			"a set on a parameter":                      {v1: "verb: secret, parameterSource: s, parameterizedBy: s", uncovered: []string{"granular:secret(b)"}, want: []string{"[* secret secret(a)]", "barred [secret(b)]"}},
			"a set on a parameter that the other lacks": {v1: "verb: secret, parameterSource: s, parameterizedBy: s", v1beta1: "verb: secret", uncovered: []string{"granular:secret(b)"}, want: []string{"[* secret]", "[* secret]", "barred [secret(b)]"}},
		} {
			t.Run(conversion+"/"+name, func(t *testing.T) {
				v := v
				if c.metadata != "" {
					v.metadata = c.metadata
				}
				s := compileBox(t, v.String(), twoSchemas(c.v1, c.v1beta1)...)
				if got := secretChains(t, s, "v1beta1", "a", "b", c.uncovered...); !slices.Equal(got, c.want) {
					t.Errorf("through v1beta1: %q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestC2_AVerbDoesNotCoverAnotherField: a field with the same name and another type may be any field.
func TestC2_AVerbDoesNotCoverAnotherField(t *testing.T) {
	v := versions{v1: `{type: object, properties: {size: {type: integer}, secret: {type: integer}}}`, v1beta1: named, metadata: vouched, top: byWebhook}
	s := compileBox(t, v.String(), twoSchemas("verb: secret", "")...)
	if got := secretChains(t, s, "v1beta1", "a", "b"); !slices.Equal(got, []string{"[*]"}) {
		t.Errorf("got %q", got)
	}
	if got := secretChains(t, s, "v1beta1", "a", "b", "granular:secret"); !slices.Equal(got, []string{"[*]", "barred [secret]"}) {
		t.Errorf("with a set: %q", got)
	}
}

// TestC2_ABarrierOfOneVersionIsNotWeakerInAnother: this holds also if the other version has a weaker barrier of its own, or one with
// another verb.
func TestC2_ABarrierOfOneVersionIsNotWeakerInAnother(t *testing.T) {
	const always, whenX, whenY, other, otherWhenX = "verb: secret, excluded: true", `verb: secret, excludedWhen: "self == 'x'"`, `verb: secret, excludedWhen: "self == 'y'"`,
		"verb: other, excluded: true", `verb: other, excludedWhen: "self == 'x'"`
	for conversion, v := range everyConversion() {
		for name, c := range map[string]struct {
			one, two, new string
			want, back    []string
		}{
			"always and at times":                {always, whenX, "b", []string{"barred [secret]"}, []string{"barred [secret]"}},
			"always and never":                   {always, "verb: secret", "b", []string{"barred [secret]"}, []string{"barred [secret]"}},
			"two times, neither":                 {whenX, whenY, "b", []string{"[* secret]"}, []string{"[* secret]"}},
			"two times, the first":               {whenX, whenY, "x", []string{"barred [secret]"}, []string{"barred [secret]"}},
			"two times, the second":              {whenX, whenY, "y", []string{"barred [secret]"}, []string{"barred [secret]"}},
			"two verbs, always":                  {always, other, "b", []string{"barred [other]", "barred [secret]"}, []string{"barred [secret]", "barred [other]"}},
			"two verbs, always and at times":     {always, otherWhenX, "b", []string{"[* other]", "barred [secret]"}, []string{"barred [secret]"}},
			"two verbs, at times":                {whenX, otherWhenX, "x", []string{"barred [other]", "barred [secret]"}, []string{"barred [secret]", "barred [other]"}},
			"two verbs, one without a barrier":   {always, "verb: other", "b", []string{"[* other]", "barred [secret]"}, []string{"barred [secret]"}},
			"a barrier that takes no parameters": {"verb: secret, excluded: true, parameterSource: s, parameterizedBy: s", "verb: secret", "b", []string{"[* secret]", "barred [secret secret(a)]", "[* secret]", "barred [secret secret(b)]"}, []string{"barred [secret secret(a)]", "barred [secret secret(b)]"}},
		} {
			t.Run(conversion+"/"+name, func(t *testing.T) {
				s := compileBox(t, v.String(), twoSchemas(c.one, c.two)...)
				if got := secretChains(t, s, "v1beta1", "a", c.new); !slices.Equal(got, c.want) {
					t.Errorf("through v1beta1: %q, want %q", got, c.want)
				}
				if got := secretChains(t, s, "v1", "a", c.new); !slices.Equal(got, c.back) {
					t.Errorf("through v1: %q, want %q", got, c.back)
				}
				// The order of the documents does not matter.
				s = compileBox(t, v.String(), twoSchemas(c.two, c.one)...)
				if got := secretChains(t, s, "v1", "a", c.new); !slices.Equal(got, c.want) {
					t.Errorf("the other way round: %q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestC2_AnAdministratorLiftsNoBarrierOfTheAuthor, by entries for all versions or for one of them.
func TestC2_AnAdministratorLiftsNoBarrierOfTheAuthor(t *testing.T) {
	v := versions{v1: named, v1beta1: named, metadata: `, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"secret","excluded":true}],"v1beta1":[{"path":".spec.secret","verb":"secret","excluded":true}]}'}`}
	for _, versions := range []string{"", "v1", "v1beta1"} {
		for verb, want := range map[string][]string{"secret": {"barred [secret]"}, "other": {"[* other]", "barred [secret]"}} {
			s := compileBox(t, v.String(), guardOf("Box", versions, "{path: .spec.secret, verb: "+verb+"}"))
			for _, version := range []string{"v1", "v1beta1"} {
				if got := secretChains(t, s, version, "a", "b"); !slices.Contains(got, "barred [secret]") || len(got) > len(want) {
					t.Errorf("verb %s in %q, through %s: %q, want %q", verb, versions, version, got, want)
				}
			}
		}
	}
}

// TestC2_AParameterFromElsewhereIsAnother: one version takes the parameter from the key of a label, the other from its value.
func TestC2_AParameterFromElsewhereIsAnother(t *testing.T) {
	byKey := guardOf("Box", "v1", "{path: .metadata.labels, verb: labels, parameterSource: s}, {path: '.metadata.labels[*]', verb: label, parameterizedBy: s}")
	byValue := strings.Replace(guardOf("Box", "v1beta1", "{path: .metadata.labels, verb: labels, parameterSource: t}, {path: '.metadata.labels[*]', verb: label, parameterSource: s, parameterizedBy: s}"), "name: x", "name: second", 1)
	s := compileBox(t, versions{v1: named, v1beta1: named}.String(), byKey, byValue)
	for _, version := range []string{"v1", "v1beta1"} {
		got := barsOn(t, s, boxOf(version), schema.ResourceRef{}, `{"metadata":{"labels":{"a":"x"}}}`, `{"metadata":{"labels":{"a":"y"}}}`, "granular:label(a)", "granular:label(y)")
		if want := []string{"[granular:label(a)]", "[granular:label(y)]"}; !slices.Equal(got, want) {
			t.Errorf("through %s: got %q, want %q", version, got, want)
		}
	}
}

// TestA2_AScaleNeedsTheVerbThatAnotherVersionGives to a field that has another one here.
func TestA2_AScaleNeedsTheVerbThatAnotherVersionGives(t *testing.T) {
	want := []string{"[granular:secret]"}
	for _, path := range []string{".spec.size", ".spec.secret"} {
		entry := func(verb string) string { return "{path: " + path + ", verb: " + verb + "}" }
		s := compileBox(t, versions{v1: named, v1beta1: named}.String(), guardOf("Box", "v1", entry("secret")), strings.Replace(guardOf("Box", "v1beta1", entry("other")), "name: x", "name: second", 1))
		ref := schema.ResourceRef{Group: "example.com", Version: "v1beta1", Resource: "boxes", Subresource: "scale"}
		if got := barsOn(t, s, gvk("autoscaling", "v1", "Scale"), ref, `{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`, "granular:secret"); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
