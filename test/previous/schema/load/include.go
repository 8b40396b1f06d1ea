package load

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/fieldperm/fieldperm/test/previous/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/previous/internal/spelling"
	"github.com/fieldperm/fieldperm/test/previous/schema"
	"github.com/fieldperm/fieldperm/test/previous/schema/catalog"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
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
}

func expansionOf(source string) *expansion {
	return &expansion{source, v1alpha1.MaxExpandedPermissions}
}

// take counts entries of the document. It returns a fault if there are too many.
func (x *expansion) take(entries []schema.Entry) error {
	if x.left -= len(entries); x.left >= 0 || len(entries) == 0 {
		return nil
	}
	return fault(x.source, entries[0].Pointer, "the document has more than %d entries, with those that its includes stand for: include fragments at fewer fields, or divide the document into several PermissionSchemas",
		v1alpha1.MaxExpandedPermissions)
}

// include replaces the includes among entries of the document. The entries of a fragment come after those of the author. If both have
// a path, the author's entry counts. Of two includes the deeper one counts. Entries that do not count are counted, too.
func (x *expansion) include(entries []schema.Entry) ([]schema.Entry, []error) {
	source := x.source
	if err := x.take(entries); err != nil {
		return nil, []error{err}
	}
	if !slices.ContainsFunc(entries, func(e schema.Entry) bool { return e.Include != "" }) {
		return entries, nil
	}
	var includes, out []schema.Entry
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
	slices.SortStableFunc(includes, func(a, b schema.Entry) int { return cmp.Compare(depth(b.Path), depth(a.Path)) })
	var errs []error
	for _, e := range includes {
		if err := mayInclude(source, e); err != nil {
			errs = append(errs, err)
			continue
		}
		fragment, err := expandFragment(e)
		if err != nil {
			return nil, append(errs, fault(source, e.Pointer, "fragment %q: %v", e.Include, err))
		}
		if err := x.take(fragment); err != nil {
			return nil, append(errs, err)
		}
		for _, f := range fragment {
			at, twice := known[normal(f.Path)]
			if !twice {
				known[normal(f.Path)] = len(out)
				out = append(out, f)
				continue
			}
			// Without the parameter, verbs of the fragment would disappear. Without the mark, barriers of Pods would not hold.
			own := &out[at]
			if own.Pod != f.Pod && own.Pod != schema.NoPod && f.Pod != schema.NoPod {
				errs = append(errs, fault(source, own.Pointer, "%q: the include makes the field the %s of Pods, and the include at %s makes it their %s: include one of the fragments at another field",
					f.Path, own.Pod, e.Pointer, f.Pod))
			}
			own.ParameterSource, own.Pod = cmp.Or(own.ParameterSource, f.ParameterSource), cmp.Or(own.Pod, f.Pod)
		}
	}
	return out, errs
}

// mayInclude returns the fault of an include whose fragment or place is not possible.
func mayInclude(source string, e schema.Entry) error {
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

// expandFragment returns the entries of the fragment at the place of an include. An error of one of them names the include.
func expandFragment(e schema.Entry) ([]schema.Entry, error) {
	r, err := shipped()
	if err != nil {
		return nil, err
	}
	one := catalogueReader{fragments: r.fragments}
	out := one.expand("catalogue", e.Pointer, e.Path, inclusion{bare: true}, r.fragments[e.Include], []string{e.Include})
	for i := range out {
		out[i].Fragment, out[i].Pointer = schema.Fragment{Name: e.Include, At: normal(e.Path)}, e.Pointer
	}
	return out, errors.Join(one.errs...)
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
