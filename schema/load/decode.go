package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
)

const acceptedKinds = "PermissionSchema and UncoveredPermissionSet (fieldperm.dev/v1alpha1), CustomResourceDefinition (apiextensions.k8s.io/v1), and a v1 List of them"

// Decode decodes a file of permission documents: YAML or JSON, one or several documents of the accepted kinds. Unknown keys are errors.
// Each document is a source of its own, named SOURCE#N, or SOURCE if there is only one. The items of a list are named SOURCE/items/N.
func Decode(source string, raw []byte) (compile.Documents, []error) {
	parts, err := manifest.Split(raw)
	if err != nil {
		return compile.Documents{}, syntaxFaults(source, err)
	}
	var all []compile.Documents
	var errs []error
	for i, part := range parts {
		name := source
		if len(parts) > 1 {
			name = fmt.Sprintf("%s#%d", source, i+1)
		}
		if part.Err != nil {
			errs = append(errs, syntaxFaults(name, part.Err)...)
			continue
		}
		more, faults := decodeDocument(name, part.JSON)
		all, errs = append(all, more), append(errs, faults...)
	}
	return compile.Documents{}.Append(all...), errs
}

func decodeDocument(source string, raw json.RawMessage) (compile.Documents, []error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(raw, &head); err != nil {
		return compile.Documents{}, []error{fault(source, "", "is no object with apiVersion and kind: give %s", acceptedKinds)}
	}
	switch head {
	case metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PermissionSchema"}:
		var object v1alpha1.PermissionSchema
		if errs := decodeStrict(source, "", raw, &object); len(errs) > 0 {
			return compile.Documents{}, errs
		}
		return PermissionSchema(source, &object)
	case metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "UncoveredPermissionSet"}:
		var set v1alpha1.UncoveredPermissionSet
		if errs := decodeStrict(source, "", raw, &set); len(errs) > 0 {
			return compile.Documents{}, errs
		}
		return compile.Documents{Uncovered: []sets.Document{{Source: source, Set: set}}}, nil
	case metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}:
		return customResource(source, raw, true)
	case metav1.TypeMeta{APIVersion: "v1", Kind: "List"}:
		return decodeList(source, raw)
	}
	cure := "give " + acceptedKinds
	if head.Kind == v1alpha1.ConditionalPolicyKind {
		cure = "apply it to the cluster, or give it to kubectl fieldperm with --policies"
	}
	return compile.Documents{}, []error{fault(source, "/kind", "kind %q of %q is not accepted: %s", head.Kind, head.APIVersion, cure)}
}

func decodeList(source string, raw []byte) (compile.Documents, []error) {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata,omitempty"`
		Items           []json.RawMessage `json:"items"`
	}
	if errs := decodeStrict(source, "", raw, &list); len(errs) > 0 {
		return compile.Documents{}, errs
	}
	var all []compile.Documents
	var errs []error
	for i, item := range list.Items {
		more, faults := decodeDocument(fmt.Sprintf("%s/items/%d", source, i), item)
		all, errs = append(all, more), append(errs, faults...)
	}
	return compile.Documents{}.Append(all...), errs
}

// PermissionSchema converts an administrator's object into a document.
func PermissionSchema(source string, object *v1alpha1.PermissionSchema) (compile.Documents, []error) {
	var errs []error
	if err := ofFragment(source, &object.Spec); err != nil {
		errs = append(errs, err)
	}
	if kind := object.Spec.Kind; kind == "" && object.Spec.Fragment == "" || kind == "*" {
		errs = append(errs, fault(source, "/spec/kind", "is %q: name one kind, or a fragment", kind))
	}
	if object.Spec.Group == "*" {
		errs = append(errs, fault(source, "/spec/group", "is %q: name one group, or leave it out for the core group", object.Spec.Group))
	}
	for i, v := range object.Spec.Versions {
		if v == "" || v == "*" {
			errs = append(errs, fault(source, fmt.Sprintf("/spec/versions/%d", i), "is %q: name a version, or leave versions out for all", v))
		}
	}
	if len(object.Spec.Permissions) == 0 {
		errs = append(errs, fault(source, "/spec/permissions", "is empty: guard at least one path"))
	}
	x := expansionOf(source)
	guarded, faults := x.include(entries(object.Spec.Permissions, "/spec/permissions"))
	if errs = append(errs, faults...); len(errs) > 0 {
		return compile.Documents{}, errs
	}
	return compile.Documents{Permissions: []compile.PermissionDocument{{
		Source: source, Rank: compile.RankAdministrator, Form: schema.FormPermissionSchema,
		Group: object.Spec.Group, Kind: object.Spec.Kind, Versions: object.Spec.Versions, Fragment: object.Spec.Fragment,
		Entries: guarded, Contains: x.contained,
	}}}, nil
}

// ofFragment returns the fault of a PermissionSchema about a fragment, nil for none.
func ofFragment(source string, spec *v1alpha1.PermissionSchemaSpec) error {
	if spec.Fragment == "" {
		return nil
	}
	if !slices.Contains(v1alpha1.Fragments(), spec.Fragment) {
		return fault(source, "/spec/fragment", "fragment %q does not exist: use one of %q", spec.Fragment, v1alpha1.Fragments())
	}
	if spec.Group != "" || spec.Kind != "" || len(spec.Versions) > 0 {
		return fault(source, "/spec/fragment", "a fragment is in many kinds: leave out group, kind and versions, or name a kind in place of the fragment")
	}
	if i := slices.IndexFunc(spec.Permissions, func(p v1alpha1.FieldPermission) bool { return p.Include != "" }); i >= 0 {
		return fault(source, fmt.Sprintf("/spec/permissions/%d/include", i), "a fragment is included in a kind, not in another fragment: name the paths")
	}
	return nil
}

// single returns the only document of a file.
func single(source string, raw []byte) (json.RawMessage, []error) {
	parts, err := manifest.Split(raw)
	switch {
	case err != nil:
		return nil, syntaxFaults(source, err)
	case len(parts) != 1:
		return nil, []error{fault(source, "", "has %d documents: give one", len(parts))}
	case parts[0].Err != nil:
		return nil, syntaxFaults(source, parts[0].Err)
	}
	return parts[0].JSON, nil
}

// unknownField matches the error of sigs.k8s.io/json for a key that the type does not have.
var unknownField = regexp.MustCompile(`^unknown field "`)

// decodeStrict decodes JSON at a pointer of a document. Unknown and duplicate keys are errors.
func decodeStrict(source, pointer string, raw json.RawMessage, into any) []error {
	faults, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return []error{fault(source, pointer, "%s: correct the value", strings.TrimPrefix(err.Error(), "json: "))}
	}
	var errs []error
	for _, f := range faults {
		at, cure := pointer, "keep one of them"
		var field kjson.FieldError
		if errors.As(f, &field) {
			at += fieldPointer(field.FieldPath())
		}
		if unknownField.MatchString(f.Error()) {
			cure = "correct it or leave it out"
		}
		errs = append(errs, fault(source, at, "%s: %s", f, cure))
	}
	return errs
}
