package load

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema/catalog"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Fragments returns the names of the fragments of the built-in catalogue that documents may include, sorted. The other fragments are
// parts of these, or give roles, which only the catalogue may give. The API type v1alpha1.FieldPermission has the same list.
func Fragments() []string {
	return []string{"conditions", "jobSpec", "podSpec", "podTemplate", "templateMetadata"}
}

// shipped are the fragments of the embedded catalogue, which never changes.
var shipped = sync.OnceValues(func() (*catalogueReader, error) {
	names, err := fs.Glob(catalog.Files(), "*.yaml")
	if err != nil {
		return nil, err
	}
	r, _ := newCatalogueReader(catalog.Files(), names, true)
	return r, errors.Join(r.errs...)
})

// expansion expands the includes of one document. An include stands for hundreds of entries, each of which a compile holds in memory.
type expansion struct {
	source string
	// left is how many more entries the document may have.
	left int
	// contained are the fragments that the last call of include has included, also those that others include.
	contained []compile.Contained
}

func expansionOf(source string) *expansion {
	return &expansion{source: source, left: v1alpha1.MaxExpandedPermissions}
}

// take counts entries of the document. It returns a fault if there are too many.
func (x *expansion) take(entries []compile.Entry) error {
	if x.left -= len(entries); x.left >= 0 || len(entries) == 0 {
		return nil
	}
	return fault(x.source, entries[0].Pointer, "the document has more than %d entries, with those that its includes stand for: include fragments at fewer fields, or divide the document into several PermissionSchemas",
		v1alpha1.MaxExpandedPermissions)
}

// include replaces the includes among entries of the document. The entries of a fragment come after those of the author. If both have
// a path, the author's entry counts. Of two includes the deeper one counts. Entries that do not count are counted, too.
func (x *expansion) include(entries []compile.Entry) ([]compile.Entry, []error) {
	source := x.source
	x.contained = nil
	if err := x.take(entries); err != nil {
		return nil, []error{err}
	}
	if !slices.ContainsFunc(entries, func(e compile.Entry) bool { return e.Include != "" }) {
		return entries, nil
	}
	var includes, out []compile.Entry
	for _, e := range entries {
		if e.Include != "" {
			includes = append(includes, e)
		}
		own := e.FieldPermission
		if own.Include = ""; e.Include == "" || own != (v1alpha1.FieldPermission{Path: e.Path}) {
			e.FieldPermission = own
			out = append(out, e)
		}
	}
	known := make(map[string]int, len(out))
	for i := range out {
		known[normal(out[i].Path)] = i
	}
	slices.SortStableFunc(includes, func(a, b compile.Entry) int { return cmp.Compare(depth(b.Path), depth(a.Path)) })
	var errs []error
	for _, e := range includes {
		if err := mayInclude(source, e); err != nil {
			errs = append(errs, err)
			continue
		}
		fragment, contained, err := expandFragment(e)
		if err != nil {
			return nil, append(errs, fault(source, e.Pointer, "fragment %q: %v", e.Include, err))
		}
		if err := x.take(fragment); err != nil {
			return nil, append(errs, err)
		}
		x.contained = append(x.contained, contained...)
		for _, f := range fragment {
			at, twice := known[normal(f.Path)]
			if !twice {
				known[normal(f.Path)] = len(out)
				out = append(out, f)
				continue
			}
			// Without the parameter, verbs of the fragment would disappear.
			out[at].ParameterSource = cmp.Or(out[at].ParameterSource, f.ParameterSource)
		}
	}
	return out, errs
}

// mayInclude returns the fault of an include whose fragment or place is not possible.
func mayInclude(source string, e compile.Entry) error {
	if slices.Contains(Fragments(), e.Include) {
		p, err := fieldpath.ParsePattern(e.Path)
		switch {
		case err != nil:
			return fault(source, e.Pointer, "%v", err)
		case len(p) == 0:
			return fault(source, e.Pointer, "fragment %q is included at the root of an object: include it at a field", e.Include)
		}
		return nil
	}
	cure := "use one of " + strings.Join(Fragments(), ", ")
	if near := spelling.Nearest(e.Include, Fragments()); near != "" {
		cure = "write " + near
	}
	if e.Include == "metadata" {
		cure = "the metadata of an object has its verbs in every kind. For metadata that other objects are made with, write templateMetadata"
	}
	return fault(source, e.Pointer, "fragment %q cannot be included: %s", e.Include, cure)
}

// expandFragment returns the entries of the fragment at the place of an include, and the fragments that they are of. An error of one of them names
// the include.
func expandFragment(e compile.Entry) ([]compile.Entry, []compile.Contained, error) {
	r, err := shipped()
	if err != nil {
		return nil, nil, err
	}
	one := catalogueReader{fragments: r.fragments}
	out := one.expand("catalogue", e.Pointer, e.Path, inclusion{bare: true, part: true}, r.fragments[e.Include], []string{e.Include})
	for i := range out {
		out[i].Fragment, out[i].Pointer = compile.Fragment{Name: e.Include, At: normal(e.Path)}, e.Pointer
	}
	return out, append(one.contained, compile.Contained{Fragment: compile.Fragment{Name: e.Include, At: normal(e.Path)}, IsPart: true}), errors.Join(one.errs...)
}

// depth returns the number of steps of a path.
func depth(path string) int {
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		return 0
	}
	return len(p)
}

// normal returns the normal spelling of a path. The compiler refuses an invalid path.
func normal(path string) string {
	if p, err := fieldpath.ParsePattern(path); err == nil {
		return p.String()
	}
	return path
}
