package generators

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
)

// CRDFiles are the files of a generated CustomResourceDefinition.
type CRDFiles struct {
	CRD File
	// Permissions has all permissions as PermissionSchemas if they do not fit into the CRD; nil otherwise.
	Permissions *File
	// PermissionsName is the name of the file of Permissions, also if there is none.
	PermissionsName string
	// Warnings are about verbs that are valid and do less than their author probably expects, such as those of a lossy version. They have the
	// form of errors.
	Warnings []error
}

// Warning says what Permissions is for, "" if there is none.
func (f CRDFiles) Warning() string {
	if f.Permissions == nil {
		return ""
	}
	return fmt.Sprintf("the annotations would have more than %d bytes, so all permissions are PermissionSchemas in %s: install both files", validation.TotalAnnotationSizeLimitB, f.Permissions.Name)
}

// Converted is what an author's CustomResourceDefinition becomes.
type Converted struct {
	CRDFiles
	// Annotation is the value of the annotation fieldperm.dev/permission-verbs in the CRD, "" for none.
	Annotation string
}

// CRD converts an author's CustomResourceDefinition, as Convert does, into one document. It is an error if the annotation is too long.
func CRD(source string, raw []byte) ([]byte, []error) {
	converted, errs := Convert(source, raw)
	if len(errs) > 0 {
		return nil, errs
	}
	if converted.Permissions != nil {
		return nil, []error{(&definition{source: source}).fault("/metadata/annotations", "would have more than %d bytes with the permission verbs: guard a common parent in place of single fields, or move permissions into a PermissionSchema", validation.TotalAnnotationSizeLimitB)}
	}
	return converted.CRD.Data, nil
}

// Convert converts an author's CustomResourceDefinition, YAML or JSON, with x-kubernetes-permission-* keys in its schemas, into one that an
// API server accepts. The result is YAML with the keys in the annotation fieldperm.dev/permission-verbs. Existing entries of the
// annotation for other paths stay; for the same path the schema counts. Convert does not change its own result.
//
// If the annotations would exceed the limit of an API server, all permissions become PermissionSchemas. No part of them stays in the
// annotation: one of two halves looks like the whole, and without the other one it would take barriers away.
//
// The errors are *schema.Error, "source:pointer: message", with pointers into raw. Convert also compiles the result, so that it finds
// mistakes before an installation.
func Convert(source string, raw []byte) (Converted, []error) {
	tree, errs := parseCRD(source, raw)
	if len(errs) > 0 {
		return Converted{}, errs
	}
	docs, errs := load.Decode(source, raw)
	if len(errs) > 0 {
		return Converted{}, errs
	}
	inline, errs := load.InlinePermissions(raw)
	if len(errs) > 0 {
		return Converted{}, errs
	}
	d, err := newDefinition(source, tree.json, inline)
	if err != nil {
		return Converted{}, []error{err}
	}
	if errs = d.names(); len(errs) > 0 {
		return Converted{}, errs
	}
	errs = append(d.compile(docs), d.sameVerbs(docs)...)
	if len(errs) > 0 {
		return Converted{}, errs
	}
	if errs = d.sharedVerbs(tree.json, docs); len(errs) > 0 {
		return Converted{}, errs
	}
	out := Converted{CRDFiles: CRDFiles{CRD: File{Name: source}, PermissionsName: d.permissionsName(), Warnings: d.lossyVersions(docs)}}
	value, fits, err := d.annotation()
	if err != nil {
		return Converted{}, []error{err}
	}
	if fits {
		out.Annotation = value
	} else {
		if out.Permissions, err = d.permissionSchemas(); err != nil {
			return Converted{}, []error{err}
		}
	}
	if out.CRD.Data, err = tree.finish(out.Annotation, !fits); err != nil {
		return Converted{}, []error{err}
	}
	if left, errs := load.InlinePermissions(out.CRD.Data); len(left) > 0 || len(errs) > 0 {
		return Converted{}, []error{d.fault("", "permission keys would stay in the schemas %v: put them on properties, items or additionalProperties %v", left, errs)}
	}
	if !fits {
		errs = d.compileParts(out)
	}
	if len(errs) > 0 {
		return Converted{}, errs
	}
	return out, nil
}

// definition is the part of a CustomResourceDefinition that is used here.
type definition struct {
	source      string
	crd         apiextensionsv1.CustomResourceDefinition
	permissions map[string][]v1alpha1.FieldPermission
	// inline holds the version and path of every key in the schemas.
	inline map[[2]string]bool
}

// newDefinition merges both forms. raw is JSON that package load has decoded without an error.
func newDefinition(source string, raw []byte, inline map[string][]compile.Entry) (*definition, error) {
	d := &definition{source: source, permissions: map[string][]v1alpha1.FieldPermission{}, inline: map[[2]string]bool{}}
	if err := json.Unmarshal(raw, &d.crd); err != nil {
		return nil, d.fault("", "%v", err)
	}
	for version, entries := range inline {
		for _, e := range entries {
			d.inline[[2]string{version, normal(e.Path)}] = true
			d.permissions[version] = append(d.permissions[version], e.FieldPermission)
		}
	}
	var annotated map[string][]v1alpha1.FieldPermission
	if text, ok := d.crd.Annotations[v1alpha1.PermissionVerbsAnnotation]; ok {
		if err := json.Unmarshal([]byte(text), &annotated); err != nil {
			return nil, d.fault(annotationPointer, "%v", err)
		}
	}
	for version, permissions := range annotated {
		for _, p := range permissions {
			if !d.inline[[2]string{version, normal(p.Path)}] {
				d.permissions[version] = append(d.permissions[version], p)
			}
		}
	}
	for _, permissions := range d.permissions {
		slices.SortStableFunc(permissions, func(a, b v1alpha1.FieldPermission) int { return cmp.Compare(a.Path, b.Path) })
	}
	return d, nil
}

const annotationPointer = "/metadata/annotations/fieldperm.dev~1permission-verbs"

func (d *definition) fault(pointer, format string, args ...any) error {
	return &schema.Error{Source: d.source, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// normal returns the normal spelling of a path. The compiler refuses an invalid path.
func normal(path string) string {
	if p, err := fieldpath.ParsePattern(path); err == nil {
		return p.String()
	}
	return path
}

// compile compiles the definition together with the catalogue entries for every kind. The documents keep their places in the author's
// file, because in the file the annotation would take precedence over the schemas.
func (d *definition) compile(docs compile.Documents) []error {
	for i := range docs.Permissions {
		p := &docs.Permissions[i]
		p.Entries = slices.DeleteFunc(p.Entries, func(e compile.Entry) bool {
			return strings.HasPrefix(e.Pointer, annotationPointer+"/") && slices.ContainsFunc(p.Versions, func(version string) bool {
				return d.inline[[2]string{version, normal(e.Path)}]
			})
		})
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		return []error{err}
	}
	_, errs := compile.Compile(compile.Documents{Permissions: catalogue}.Append(docs))
	return errs
}

// sameVerbs checks that a field has the same verb in all served versions that have the field. A user of one version must need the same
// verb as a user of another. A field that only some versions have may have its own verb.
func (d *definition) sameVerbs(docs compile.Documents) []error {
	first := map[string]string{} // path to the first served version that guards it
	verbs := map[string]string{}
	var order []string
	for _, v := range d.crd.Spec.Versions {
		for _, p := range d.permissions[v.Name] {
			path := normal(p.Path)
			if _, known := first[path]; v.Served && says(p) != "" && !known {
				first[path], verbs[path] = v.Name, says(p)
				order = append(order, path)
			}
		}
	}
	var errs []error
	for i, v := range d.crd.Spec.Versions {
		if !v.Served {
			continue
		}
		const anyPath = "any"       // No path is equal, because paths begin with a period.
		own := map[[2]string]bool{} // what the version says of a path, and of any path
		for _, p := range d.permissions[v.Name] {
			own[[2]string{normal(p.Path), says(p)}], own[[2]string{anyPath, says(p)}] = true, true
		}
		unguarded := slices.DeleteFunc(slices.Clone(order), func(path string) bool {
			return own[[2]string{path, verbs[path]}] || d.mayRename() && own[[2]string{anyPath, verbs[path]}]
		})
		lacks := d.lacks(docs, v.Name, unguarded)
		for at, path := range unguarded {
			if !lacks[at] {
				errs = append(errs, d.fault(fmt.Sprintf("/spec/versions/%d", i), "path %q of served version %q lacks %s, which version %q has: guard it with the same in every served version that has it", path, v.Name, verbs[path], first[path]))
			}
		}
	}
	return errs
}

// says returns the verb and the fragment of an entry, as messages show them, "" for neither.
func says(p v1alpha1.FieldPermission) string {
	var out []string
	if p.Verb != "" {
		out = append(out, fmt.Sprintf("verb %q", p.Verb))
	}
	if p.Include != "" {
		out = append(out, fmt.Sprintf("fragment %q", p.Include))
	}
	return strings.Join(out, " and ")
}

// mayRename reports whether conversion may give a path another meaning. Without a webhook it changes only the apiVersion.
func (d *definition) mayRename() bool {
	c := d.crd.Spec.Conversion
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter || d.crd.Annotations[v1alpha1.LosslessConversionAnnotation] != ""
}

// lacks reports for each path whether the schema of a version does not declare it. The compiler reports an invalid path.
func (d *definition) lacks(docs compile.Documents, version string, paths []string) map[int]bool {
	if len(paths) == 0 {
		return nil
	}
	kind := runtimeschema.GroupVersionKind{Group: d.crd.Spec.Group, Version: version, Kind: d.crd.Spec.Names.Kind}
	probe := compile.PermissionDocument{Source: "probe", Rank: compile.RankAdministrator, Group: kind.Group, Kind: kind.Kind, Versions: []string{version}}
	pointers := map[string]int{}
	for i, path := range paths {
		pointer := fmt.Sprintf("/%d", i)
		pointers[pointer] = i
		probe.Entries = append(probe.Entries, compile.Entry{FieldPermission: v1alpha1.FieldPermission{Path: path, Verb: "probe"}, Pointer: pointer})
	}
	_, errs := compile.Compile(compile.Documents{Topologies: docs.Topologies, Permissions: []compile.PermissionDocument{probe}})
	out := map[int]bool{}
	for _, err := range errs {
		var fault *schema.Error
		at, known := 0, errors.As(err, &fault) && fault.Source == probe.Source
		if known {
			at, known = pointers[fault.Pointer]
		}
		if known {
			out[at] = true
			continue
		}
		// A fault of the definition itself, which the compile of its documents reports.
		for i := range paths {
			out[i] = true
		}
	}
	return out
}

// annotation returns the value of the annotation, "" for none: compact JSON with sorted versions and paths. It also returns whether the
// annotations stay within the limit.
func (d *definition) annotation() (value string, fits bool, err error) {
	if len(d.permissions) == 0 {
		return "", true, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d.allVersions()); err != nil {
		return "", false, d.fault(annotationPointer, "%v", err)
	}
	value = strings.TrimSuffix(b.String(), "\n")
	all := map[string]string{v1alpha1.PermissionVerbsAnnotation: value}
	for key, other := range d.crd.Annotations {
		if key != v1alpha1.PermissionVerbsAnnotation {
			all[key] = other
		}
	}
	return value, validation.ValidateAnnotationsSize(all) == nil, nil
}

// allVersions returns the permissions of the versions. If there is a barrier, it has every served version: the loader refuses an annotation
// that says nothing of one.
func (d *definition) allVersions() map[string][]v1alpha1.FieldPermission {
	barred := false
	for _, permissions := range d.permissions {
		barred = barred || slices.ContainsFunc(permissions, func(p v1alpha1.FieldPermission) bool { return p.Excluded || p.ExcludedWhen != "" })
	}
	out := maps.Clone(d.permissions)
	for _, v := range d.crd.Spec.Versions {
		if _, known := out[v.Name]; !known && v.Served && barred {
			out[v.Name] = []v1alpha1.FieldPermission{}
		}
	}
	return out
}
