package markers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Form is the form of generated CustomResourceDefinitions.
type Form string

const (
	// Deployable has the permission keys in the annotation fieldperm.dev/permission-verbs, which an API server accepts.
	Deployable Form = "deployable"
	// Annotated has the permission keys in the schemas. An API server drops or refuses them there.
	Annotated Form = "annotated"
)

// CRDs returns the CustomResourceDefinitions of all kinds in the roots: what controller-gen's generator with the same options writes, byte
// for byte, and the permission keys. A definition whose annotation would be too long comes without it, and with a second file that has its
// permissions as PermissionSchemas.
//
// If a marker of the roots, or of a type that a kind uses, has a mistake or would have no effect, there are errors and no files. It is an
// error if there is no marker at all. The errors are *Error where the place is known.
func CRDs(ctx *genall.GenerationContext, generator Generator) ([]generators.CRDFiles, []error) {
	set := newSet(ctx.Roots, ctx.Checker)
	if errs := set.read(); len(errs) > 0 {
		return nil, errs
	}
	plain, errs := plainCRDs(ctx, generator.Generator)
	if len(errs) > 0 {
		return nil, errs
	}
	g := &crdGeneration{set: set, errs: &mistakes{}}
	if err := g.place(ctx, generator.Generator, plain); err != nil {
		return nil, []error{err}
	}
	if len(*g.errs) > 0 {
		return nil, g.errs.errors()
	}
	var out []generators.CRDFiles
	for _, d := range g.definitions {
		files, faults := d.files(&generator)
		out, errs = append(out, files), append(errs, faults...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// crdGeneration is one run of CRDs.
type crdGeneration struct {
	set         *Set
	definitions []*definition
	errs        *mistakes
}

// definition is one CustomResourceDefinition with the markers of its versions.
type definition struct {
	file     *artifact
	tree     map[string]any
	versions map[string]*version
}

type version struct {
	root   *Type
	places map[string]*place
}

// place finds the place of each marker in controller-gen's definitions.
func (g *crdGeneration) place(ctx *genall.GenerationContext, generator crd.Generator, plain artifacts) error {
	parser := &crd.Parser{Collector: ctx.Collector, Checker: ctx.Checker, GenerateEmbeddedObjectMeta: generator.GenerateEmbeddedObjectMeta != nil && *generator.GenerateEmbeddedObjectMeta}
	crd.AddKnownTypes(parser)
	for _, root := range ctx.Roots {
		parser.NeedPackage(root)
	}
	types := newGraph(g.set, parser)
	g.packageMarkers()
	for _, file := range plain {
		tree, err := file.tree()
		if err != nil {
			return err
		}
		g.definitions = append(g.definitions, g.definition(types, file, tree))
	}
	g.unused(types)
	*g.errs = append(*g.errs, g.set.ErrorsBeside(maps.Keys(types.uses))...)
	if len(*g.errs) > 0 {
		return nil
	}
	markers := 0
	for _, d := range g.definitions {
		for _, v := range d.versions {
			v.places = types.walk(v.root, g.errs)
			markers += len(v.places)
		}
	}
	if markers == 0 && len(*g.errs) == 0 {
		return errNone(ctx.Roots)
	}
	if len(*g.errs) > 0 {
		return nil
	}
	var p probes
	landed, err := p.run(types, generator, ctx)
	if err != nil {
		return err
	}
	for _, d := range g.definitions {
		for name, v := range d.versions {
			g.compare(types, d, name, v, landed[d.file.name][name])
		}
	}
	return nil
}

// ErrNone is the error of packages without any marker.
var ErrNone = errors.New("no permission marker")

func errNone(roots []*loader.Package) error {
	var names []string
	for _, root := range roots {
		names = append(names, root.PkgPath)
	}
	slices.Sort(names)
	return fmt.Errorf("%w in the kinds of packages %s: write one above a field, such as +permission-verb:\"example.com/color\", or name other packages", ErrNone, strings.Join(names, ", "))
}

// definition finds the Go types of a definition's versions.
func (g *crdGeneration) definition(types *graph, file *artifact, tree map[string]any) *definition {
	d := &definition{file: file, tree: tree, versions: map[string]*version{}}
	spec, _ := tree["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	versionSchemas(tree, func(_ int, name string, _ map[string]any) {
		for _, p := range slices.SortedFunc(maps.Keys(types.parser.GroupVersions), func(a, b *loader.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) }) {
			gv := types.parser.GroupVersions[p]
			root := g.set.Type(p, kind)
			if gv.Group != spec["group"] || gv.Version != name || root == nil {
				continue
			}
			if first, known := d.versions[name]; known && first.root != root {
				g.errs.at(root.Position, "kind %s of %s is declared in two packages, first at %s: give each package a version of its own with +versionName", kind, gv, first.root.Position)
				continue
			}
			d.versions[name] = &version{root: root}
			types.reach(root)
		}
	})
	return d
}

// unused refuses markers of the roots that no kind uses. Generated files are left out: generators copy comments.
func (g *crdGeneration) unused(types *graph) {
	for _, t := range g.set.Types() {
		if _, used := types.uses[t]; used || t.Generated {
			continue
		}
		keys := slices.Clone(t.Keys)
		for _, f := range t.Fields {
			keys = append(keys, f.Keys...)
		}
		for _, v := range keys {
			g.errs.at(v.Position, "marker %q belongs to type %s, which no generated kind uses: use the type in a kind, remove the marker, or leave package %s out of the paths", v.Key.Marker(), t.Name, t.Package.PkgPath)
		}
	}
}

// compare compares the places that the types say with those where controller-gen has put the markers.
func (g *crdGeneration) compare(types *graph, d *definition, name string, v *version, found landed) {
	nodes := map[string]bool{}
	versionSchemas(d.tree, func(_ int, version string, schema map[string]any) {
		if version == name {
			visitSchema(schema, "", "", func(node map[string]any, path, _ string) {
				nodes[path] = true
				if !typed(node) {
					g.errs.at(types.recursion(v.root), "the schema at %q of %s has no type, which an API server refuses: end a recursion of types with a field of type apiextensionsv1.JSON, or give the field a type with +kubebuilder:validation:Type", path, v.root.Name)
				}
			})
		}
	})
	for path, p := range v.places {
		for _, value := range p.all {
			switch {
			case strings.HasPrefix(path, ".metadata"):
				g.errs.at(value.Position, "marker %q would be at %q of %s, and controller-gen writes no schema of metadata, whose fields have verbs in every kind: remove the marker", value.Key.Marker(), path, v.root.Name)
			case !nodes[path]:
				g.errs.at(value.Position, "marker %q would be at %q of %s, and the schema that controller-gen writes has no such node, because a field above it has a schema of its own or none: put the marker above that field", value.Key.Marker(), path, v.root.Name)
			case !slices.Contains(found[path], value):
				g.errs.at(value.Position, "marker %q would be at %q of %s, and controller-gen ignores the markers there, because the field is an alias or has no schema of its type (Schemaless): put the marker above the field", value.Key.Marker(), path, v.root.Name)
			}
		}
	}
	for path, values := range found {
		for _, value := range values {
			if p := v.places[path]; p == nil || !slices.Contains(p.all, value) {
				g.errs.at(value.Position, "marker %q lands at %q of %s, where no field has it: put it above each field, and report this", value.Key.Marker(), path, v.root.Name)
			}
		}
	}
}

// typed reports whether an API server accepts a node of a schema without a type, or it has one.
func typed(node map[string]any) bool {
	return node["type"] != nil || node["x-kubernetes-int-or-string"] == true || node["x-kubernetes-preserve-unknown-fields"] == true
}

// files returns the definition in a form, and the file of its permissions if they do not fit into it.
func (d *definition) files(generator *Generator) (generators.CRDFiles, []error) {
	out := generators.CRDFiles{CRD: generators.File{Name: d.file.name}}
	places := d.annotate()
	body, err := document(d.tree)
	if err != nil {
		return out, []error{err}
	}
	if len(places) > 0 {
		converted, errs := generators.Convert(d.file.name, body)
		if len(errs) > 0 {
			return out, d.positioned(errs, places)
		}
		out.Warnings = converted.Warnings
		named, errs := d.names(generator.Registry)
		if len(errs) > 0 {
			return out, errs
		}
		out.Warnings = append(out.Warnings, named...)
		if generator.Form != Annotated {
			out.Permissions, out.PermissionsName = converted.Permissions, converted.PermissionsName
			if body, err = d.deployable(converted.Annotation); err != nil {
				return out, []error{err}
			}
		}
	}
	out.CRD.Data = append([]byte(d.file.header), body...)
	return out, nil
}

// annotate puts the keys into the schemas of the tree. It returns the places by the pointers of their nodes.
func (d *definition) annotate() map[string]*place {
	out := map[string]*place{}
	versionSchemas(d.tree, func(i int, name string, schema map[string]any) {
		v := d.versions[name]
		if v == nil {
			return
		}
		visitSchema(schema, "", fieldpath.Pointer(versionPointer(i), "schema", "openAPIV3Schema"), func(node map[string]any, path, pointer string) {
			p := v.places[path]
			if p == nil {
				return
			}
			out[pointer] = p
			for _, value := range p.merged {
				node[value.Key.Extension()] = value.schemaValue()
			}
		})
	})
	return out
}

// deployable returns controller-gen's document with the annotation, "" for none.
func (d *definition) deployable(annotation string) ([]byte, error) {
	tree, err := d.file.tree()
	if err != nil || annotation == "" {
		return d.file.body.Bytes(), err
	}
	setAnnotation(tree, v1alpha1.PermissionVerbsAnnotation, annotation)
	return document(tree)
}
