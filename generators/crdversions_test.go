package generators

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// annotated is the YAML of a string with a permission verb and more keys.
func annotatedField(name, verb, more string) string {
	return fmt.Sprintf("%s: {type: string, x-kubernetes-permission-verb: example.com/%s%s}", name, verb, more)
}

// TestC3_CRDOfALosslessConversion: the versions of a definition that is declared lossless share verbs, or the message says where a verb is
// missing. Most definitions have no conversion webhook: a later step of a build adds it.
func TestC3_CRDOfALosslessConversion(t *testing.T) {
	const (
		declared = `{fieldperm.dev/lossless-conversion: "true"}`
		first    = "f.yaml:/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
		second   = "f.yaml:/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/"
		excluded = ", x-kubernetes-permission-excluded: true"
		tinted   = `x: {type: string, x-kubernetes-permission-verb: example.com/tint}`
	)
	join := func(fields ...string) string { return strings.Join(fields, ", ") }
	for name, c := range map[string]struct {
		annotations, v1, v2 string
		want                []string
	}{
		"the same verb": {declared, annotatedField("a", "a", ""), annotatedField("b", "a", ""), nil},
		"no verb in the other": {declared, annotatedField("a", "a", ""), "b: {type: string}", []string{
			first + `a: path ".spec.a" of served version "v1" has verb "example.com/a", which has no place in served version "v2": guard the field that it becomes there in the same way`}},
		"another verb in the other": {declared, annotatedField("a", "a", ""), annotatedField("b", "b", ""), []string{
			first + `a: path ".spec.a" of served version "v1" has verb "example.com/a", which has no place in served version "v2"`,
			second + `b: path ".spec.b" of served version "v2" has verb "example.com/b", which has no place in served version "v1"`}},
		"the verb of a third field": {declared, join(annotatedField("a", "a", ""), annotatedField("c", "tint", "")), join(annotatedField("b", "tint", ""), tinted), []string{
			first + `a: path ".spec.a" of served version "v1" has verb "example.com/a", which has no place in served version "v2"`,
			second + `b: path ".spec.b" of served version "v2" has verb "example.com/tint", which has no place in served version "v1"`}},
		"a barrier": {declared, annotatedField("a", "a", excluded), annotatedField("b", "a", excluded), nil},
		"a barrier that is hidden": {declared, annotatedField("a", "a", excluded), annotatedField("b", "a", ""), []string{
			first + `a: path ".spec.a" of served version "v1" has barrier "example.com/a", which has no place in served version "v2"`}},
		"a barrier that is weaker": {declared, annotatedField("a", "a", excluded), annotatedField("b", "a", ", x-kubernetes-permission-excluded-when: self == 'x'"), []string{
			first + `a: path ".spec.a" of served version "v1" has barrier "example.com/a", which has no place`}},
		"a barrier without a counterpart": {declared, annotatedField("a", "a", excluded), "b: {type: string}", []string{
			first + `a: path ".spec.a" of served version "v1" has barrier "example.com/a", which has no place`}},
		"no declaration":                {`{}`, annotatedField("a", "a", ""), annotatedField("b", "b", ""), nil},
		"a declaration that is no true": {`{fieldperm.dev/lossless-conversion: "yes"}`, annotatedField("a", "a", ""), annotatedField("b", "a", ""), []string{`f.yaml:/metadata/annotations/fieldperm.dev~1lossless-conversion: value "yes" has no effect: write "true", or leave the annotation out`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := CRD("f.yaml", definitionYAML(c.annotations, c.v1, c.v2))
			if len(errs) != len(c.want) {
				t.Fatalf("got %v, want %q", errors.Join(errs...), c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(errs[i].Error(), want) {
					t.Errorf("got %v, want %s", errs[i], want)
				}
			}
		})
	}
}

// TestC3_CRDOfAScale: the place of a verb is where the author says it, not the subresource that has the same field.
func TestC3_CRDOfAScale(t *testing.T) {
	raw := strings.Replace(string(definitionYAML(`{fieldperm.dev/lossless-conversion: "true"}`, "a: {type: integer, x-kubernetes-permission-verb: scale}", "b: {type: integer}")),
		"    storage: true\n", "    storage: true\n    subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}\n", 1)
	_, errs := CRD("f.yaml", []byte(raw))
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), `f.yaml:/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a: path ".spec.a"`) {
		t.Errorf("got %v", errs)
	}
}

// TestC3_CRDExchangedVerbs: without a webhook a path is the same field in both versions, whatever other field has its verb.
func TestC3_CRDExchangedVerbs(t *testing.T) {
	exchanged := definitionYAML("{}", annotatedField("a", "a", "")+", "+annotatedField("b", "b", ""), annotatedField("a", "b", "")+", "+annotatedField("b", "a", ""))
	_, errs := CRD("f.yaml", exchanged)
	if len(errs) != 2 || !strings.Contains(errs[0].Error(), `path ".spec.a" of served version "v2" lacks verb "example.com/a"`) {
		t.Errorf("got %v", errs)
	}
	byWebhook := strings.Replace(string(exchanged), "  versions:", "  conversion: {strategy: Webhook}\n  versions:", 1)
	if _, errs := CRD("f.yaml", []byte(byWebhook)); len(errs) > 0 {
		t.Errorf("with a webhook: %v", errs)
	}
}

// TestC3_CRDLossyVersions names versions whose verbs count only beside granular:*.
func TestC3_CRDLossyVersions(t *testing.T) {
	const advice = `; or, if a conversion webhook keeps every field, declare that with the annotation fieldperm.dev/lossless-conversion: "true"`
	same := annotatedField("a", "a", "")
	for name, c := range map[string]struct {
		annotations, v1, v2 string
		webhook             bool
		want                string
	}{
		"another name": {annotations: "{}", v1: same, v2: annotatedField("b", "a", ""),
			want: `f.yaml:/spec/versions/1: the verbs of version "v2" count only beside "granular:*": version "v2" does not keep every field: write through version "v1"` + advice},
		"a webhook": {annotations: "{}", v1: same, v2: same, webhook: true,
			want: `f.yaml:/spec/versions/1: the verbs of version "v2" count only beside "granular:*": version "v2" is converted by a webhook, which may change any field: write through version "v1"` + advice},
		"declared":                              {annotations: `{fieldperm.dev/lossless-conversion: "true"}`, v1: same, v2: annotatedField("b", "a", ""), webhook: true},
		"declared, and the webhook comes later": {annotations: `{fieldperm.dev/lossless-conversion: "true"}`, v1: same, v2: annotatedField("b", "a", "")},
		"no verb to count":                      {annotations: "{}", v1: same, v2: ""},
	} {
		raw := string(definitionYAML(c.annotations, c.v1, c.v2))
		if c.webhook {
			raw = strings.Replace(raw, "  versions:", "  conversion: {strategy: Webhook}\n  versions:", 1)
		}
		converted, errs := Convert("f.yaml", []byte(raw))
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		got := errors.Join(converted.Warnings...)
		if got == nil && c.want != "" || got != nil && got.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}
