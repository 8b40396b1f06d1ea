package generators

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

const losslessPointer = "/metadata/annotations/fieldperm.dev~1lossless-conversion"

// sharedVerbs checks the served versions of a definition that declares its conversion lossless (rule C3): each verb of a field that has
// another name in another version is on a field there too, as a barrier if it is one. Then a user has the same grants through both versions. It does
// not matter whether the definition names a conversion webhook yet, because a later step of a build may add it. raw is JSON, and docs are its
// documents after compile.
func (d *definition) sharedVerbs(raw []byte, docs compile.Documents) []error {
	switch value, ok := d.crd.Annotations[v1alpha1.LosslessConversionAnnotation]; {
	case !ok:
		return nil
	case value != "true":
		return []error{d.fault(losslessPointer, "value %q has no effect: write %q, or leave the annotation out", value, "true")}
	}
	s, errs := d.converted(raw, docs)
	if len(errs) > 0 {
		return errs
	}
	for _, v := range d.crd.Spec.Versions {
		k, err := s.Kind(d.kind(v.Name))
		if err != nil {
			continue // It is not served.
		}
		for _, u := range k.Unplaced() {
			what := "verb"
			if u.IsBarrier {
				what = "barrier"
			}
			errs = append(errs, d.fault(d.pointerOf(docs, u.Version, u.Path), "path %q of served version %q has %s %q, which has no place in served version %q: guard the field that it becomes there in the same way", u.Path, u.Version, what, u.Verb.Name(), v.Name))
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}

// pointerOf returns the place of the entry for a path in the author's file. Of several entries the last one counts: what the author says
// comes after what follows from the subresource scale.
func (d *definition) pointerOf(docs compile.Documents, version, path string) string {
	pointer := ""
	for i := range docs.Permissions {
		p := &docs.Permissions[i]
		if !slices.Contains(p.Versions, version) {
			continue
		}
		for _, e := range p.Entries {
			if normal(e.Path) == path {
				pointer = e.Pointer
			}
		}
	}
	return pointer
}

func (d *definition) kind(version string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: d.crd.Spec.Group, Version: version, Kind: d.crd.Spec.Names.Kind}
}

// converted compiles the definition as if a webhook converted its versions.
func (d *definition) converted(raw []byte, docs compile.Documents) (*schema.Schema, []error) {
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, []error{d.fault("", "%v", err)}
	}
	if spec, ok := tree["spec"].(map[string]any); ok {
		spec["conversion"] = map[string]any{"strategy": "Webhook"}
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, []error{d.fault("", "%v", err)}
	}
	types, errs := load.Decode(d.source, raw)
	if len(errs) > 0 {
		return nil, errs
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		return nil, []error{err}
	}
	return compile.Compile(compile.Documents{Permissions: catalogue}.Append(compile.Documents{Topologies: types.Topologies, Permissions: docs.Permissions}))
}

// lossyVersions returns the lossy versions that have permissions of their own: these count only beside granular:*, and the author may not
// expect that. docs are the documents of the definition after compile. Where a conversion is declared lossless and the definition has no
// webhook yet, a later step of the build adds it.
func (d *definition) lossyVersions(docs compile.Documents) []error {
	if c := d.crd.Spec.Conversion; d.crd.Annotations[v1alpha1.LosslessConversionAnnotation] == "true" && (c == nil || c.Strategy != apiextensionsv1.WebhookConverter) {
		return nil
	}
	s, errs := compile.Compile(docs)
	for i, v := range d.crd.Spec.Versions {
		k, err := s.Kind(d.kind(v.Name))
		if err != nil || !k.Lossy() || len(d.permissions[v.Name]) == 0 {
			continue
		}
		cure := k.Instead()
		if len(d.crd.Spec.Versions) > 1 && d.crd.Annotations[v1alpha1.LosslessConversionAnnotation] == "" {
			cure += fmt.Sprintf("; or, if a conversion webhook keeps every field, declare that with the annotation %s: %q", v1alpha1.LosslessConversionAnnotation, "true")
		}
		errs = append(errs, d.fault(fmt.Sprintf("/spec/versions/%d", i), "the verbs of version %q count only beside %q: %s", v.Name, "granular:*", cure))
	}
	return errs
}
