package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// annotated returns the metadata of a definition that declares its conversion lossless and has permissions for v1 and v1beta1.
func annotated(v1, v1beta1 string) string {
	return `, annotations: {fieldperm.dev/lossless-conversion: "true", fieldperm.dev/permission-verbs: '{"v1":[` + v1 + `],"v1beta1":[` + v1beta1 + `]}'}`
}

// says returns the permission of one path in an annotation.
func says(path, verb, rest string) string {
	return fmt.Sprintf(`{"path":%q,"verb":%q%s}`, path, verb, rest)
}

func list(permissions ...string) string { return strings.Join(permissions, ",") }

// TestC3_RenamedFieldsShareVerbs: the two versions of a definition have no field of the specification in common but size. v1 has copies,
// color, pod.image and low and high, v1beta1 has replicas, tint, image, box.image and range. A version is lossy if a field may have another
// verb under its name in the other version. unshared are the fields without a counterpart.
func TestC3_RenamedFieldsShareVerbs(t *testing.T) {
	const (
		text  = `{type: string}`
		image = `{type: object, properties: {image: ` + text + `}}`
		v1    = `{type: object, properties: {size: {type: integer}, copies: ` + text + `, color: ` + text + `, pod: ` + image + `, low: ` + text + `, high: ` + text + `, teams: {type: object, additionalProperties: ` + text + `}}}`
		v1b   = `{type: object, properties: {size: {type: integer}, replicas: ` + text + `, tint: ` + text + `, image: ` + text + `, box: ` + image + `, range: ` + text + `, groups: {type: object, additionalProperties: ` + text + `}}}`
	)
	copies, replicas := says(".spec.copies", "scale", ""), says(".spec.replicas", "scale", "")
	color, tint := says(".spec.color", "color", ""), says(".spec.tint", "color", "")
	for name, c := range map[string]struct {
		v1, v1beta1 string
		documents   []string
		lossy       []string
		unshared    []string
	}{
		"the same verbs":                   {v1: list(copies, color), v1beta1: list(replicas, tint)},
		"a version without verbs":          {v1: copies, unshared: []string{"v1 .spec.copies scale"}},
		"another verb":                     {v1: copies, v1beta1: says(".spec.replicas", "count", ""), lossy: []string{"v1", "v1beta1"}},
		"a verb of another field":          {v1: list(copies, color), v1beta1: list(says(".spec.replicas", "color", ""), tint), lossy: []string{"v1", "v1beta1"}},
		"exchanged, which cannot be told":  {v1: list(copies, color), v1beta1: list(says(".spec.replicas", "color", ""), says(".spec.tint", "scale", ""))},
		"two fields become one":            {v1: list(says(".spec.low", "range", ""), says(".spec.high", "range", "")), v1beta1: says(".spec.range", "range", "")},
		"below the same verb":              {v1: list(says(".spec.pod", "pod", ""), says(".spec.pod.image", "image", "")), v1beta1: list(says(".spec.box", "pod", ""), says(".spec.box.image", "image", ""))},
		"below another verb":               {v1: list(says(".spec.pod", "pod", ""), says(".spec.pod.image", "image", "")), v1beta1: list(says(".spec.box", "box", ""), says(".spec.box.image", "image", "")), lossy: []string{"v1", "v1beta1"}},
		"below no verb":                    {v1: says(".spec.pod.image", "image", ""), v1beta1: says(".spec.image", "image", "")},
		"a parameter":                      {v1: says(".spec.teams[*]", "team", `,"parameterSource":"t","parameterizedBy":"t"`), v1beta1: says(".spec.groups[*]", "team", `,"parameterSource":"t","parameterizedBy":"t"`)},
		"no parameter in the other":        {v1: says(".spec.teams[*]", "team", `,"parameterSource":"t","parameterizedBy":"t"`), v1beta1: says(".spec.groups[*]", "team", ""), lossy: []string{"v1", "v1beta1"}},
		"kept in an annotation":            {v1: list(copies, says(`.metadata.annotations["example.com/tint"]`, "color", "")), v1beta1: list(replicas, tint, says(`.metadata.annotations["example.com/tint"]`, "color", ""))},
		"a barrier is hidden":              {v1: says(".spec.copies", "scale", `,"excluded":true`), v1beta1: says(".spec.replicas", "count", ""), lossy: []string{"v1"}, unshared: []string{"v1beta1 .spec.replicas count"}},
		"of a field that both have":        {v1: list(copies, says(".spec.size", "size", "")), v1beta1: list(replicas, says(".spec.size", "size", ""))},
		"an administrator, for one":        {v1: copies, v1beta1: replicas, documents: []string{guardOf("Box", "v1", `{path: .spec.copies, verb: capacity}`)}, lossy: []string{"v1beta1"}, unshared: []string{"v1 .spec.copies capacity"}},
		"an administrator, for every path": {v1: copies, v1beta1: replicas, documents: []string{guardOf("Box", "", `{path: .spec.copies, verb: capacity}`)}, lossy: []string{"v1beta1"}, unshared: []string{"v1 .spec.copies capacity"}},
		"an administrator, who exchanges them in one": {v1: list(copies, color), v1beta1: list(replicas, tint), documents: []string{guardOf("Box", "v1", `{path: .spec.copies, verb: color}, {path: .spec.color, verb: scale}`)},
			lossy: []string{"v1beta1"}, unshared: []string{"v1 .spec.color scale", "v1 .spec.copies color"}},
		"an administrator, for both": {v1: copies, v1beta1: replicas, documents: []string{guardOf("Box", "v1", `{path: .spec.copies, verb: capacity}`),
			strings.Replace(guardOf("Box", "v1beta1", `{path: .spec.replicas, verb: capacity}`), "name: x", "name: another", 1)}},
		"an administrator, where the author says nothing": {documents: []string{guardOf("Box", "v1", `{path: .spec.copies, verb: capacity}`)}, unshared: []string{"v1 .spec.copies capacity"}},
	} {
		t.Run(name, func(t *testing.T) {
			definition := versions{v1: v1, v1beta1: v1b, metadata: annotated(c.v1, c.v1beta1), top: byWebhook}.String()
			s := compileBox(t, definition, c.documents...)
			var lossy, unshared []string
			for _, version := range []string{"v1", "v1beta1"} {
				k, err := s.Kind(boxOf(version))
				if err != nil {
					t.Fatal(err)
				}
				if k.Lossy() {
					lossy = append(lossy, version)
					if !strings.Contains(k.Instead(), "give each field the same verb in both versions") {
						t.Errorf("the advice of %s is %q", version, k.Instead())
					}
				}
				for _, u := range k.Unshared() {
					if u.Contradicts != k.Lossy() {
						t.Errorf("%s is lossy: %v, and %+v", version, k.Lossy(), u)
					}
					if u.Contradicts {
						continue
					}
					unshared = append(unshared, version+" "+u.Path+" "+u.Verb)
				}
			}
			if !slices.Equal(lossy, c.lossy) {
				t.Errorf("lossy are %q, want %q", lossy, c.lossy)
			}
			if !slices.Equal(unshared, c.unshared) {
				t.Errorf("unshared are %q, want %q", unshared, c.unshared)
			}
		})
	}
}
