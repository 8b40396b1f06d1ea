package exact

import (
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Stored judges the objects that an API server has stored, before a request and after it. It is the oracle of this package, except for the
// free changes: the roles of the catalogue do not count here, and the caller says which fields the server writes by itself.
type Stored struct {
	// Free reports whether the API server made a change that no client can have made. The path has the notation of charges. It is not below
	// a path that was already free.
	Free     func(Change) bool
	subjects map[runtimeschema.GroupVersionKind]*subject
}

// ownersPath is the field with the owners of all fields.
const ownersPath = ".metadata.managedFields"

// Change is one place that differs. Old and New are JSON, nil for a missing value.
type Change struct {
	Kind   runtimeschema.GroupVersionKind
	Path   string
	Create bool
	// Default says that a created object has the default value that the schema declares for this place.
	Default bool
	// Barred says that the place is behind a barrier.
	Barred bool
	Old    func() []byte
	New    func() []byte
	// Field returns the values of another field of the object, by its names, before and after.
	Field func(names ...string) (before, after []byte)
}

// Charge has the verbs for a changed place. Any one verb of Chain covers it, starting at index Barrier if that is not negative.
type Charge struct {
	Operation, Path string
	Chain           []verbs.Verb
	Barrier         int
}

func (c Charge) String() string {
	return charge{operation: c.Operation, path: c.Path, chain: c.Chain, barrier: c.Barrier}.String()
}

// NewStored compiles the documents. The result can judge every kind in them.
func NewStored(docs compile.Documents) (*Stored, []error) {
	compiled, errs := compile.Compile(docs)
	if len(errs) > 0 {
		return nil, errs
	}
	s := &Stored{subjects: map[runtimeschema.GroupVersionKind]*subject{}}
	for i := range docs.Topologies {
		topology := &docs.Topologies[i]
		loose := loosen(topology.Types)
		for gvk := range topology.Kinds {
			kind, err := compiled.Kind(gvk)
			if err != nil {
				return nil, []error{err}
			}
			one := newSubject(kind, topology, loose)
			one.stored = s
			s.subjects[gvk] = one
		}
	}
	return s, nil
}

// Knows reports whether objects of the kind can be judged.
func (s *Stored) Knows(gvk runtimeschema.GroupVersionKind) bool { return s.subjects[gvk] != nil }

// Walk visits every place of a kind with its verbs. It is for code that draws grants.
func (s *Stored) Walk(gvk runtimeschema.GroupVersionKind, visit func(fieldpath.Pattern, *schema.Node)) {
	if one := s.subjects[gvk]; one != nil {
		one.kind.Walk(visit)
	}
}

// VerbsAt lists the own verbs of a place without parameters. It leaves out the verbs above it.
func (s *Stored) VerbsAt(gvk runtimeschema.GroupVersionKind, path string) (out []verbs.Verb) {
	s.Walk(gvk, func(at fieldpath.Pattern, n *schema.Node) {
		if at.String() != path {
			return
		}
		for _, p := range n.Permissions() {
			out = append(out, p.Base())
		}
	})
	return out
}

// Charges compares two stored objects of a kind. old is nil if there was none. Verbs in uncovered are barriers. The version is the version
// through which the request wrote: an entry of managedFields may have it.
func (s *Stored) Charges(gvk runtimeschema.GroupVersionKind, old, new []byte, uncovered schema.VerbSet, version string) ([]Charge, error) {
	known := s.subjects[gvk]
	if known == nil {
		return nil, fmt.Errorf("kind %q is not known", gvk)
	}
	one := *known
	one.uncovered, one.through = uncovered, version
	var before *value
	var err error
	if old != nil {
		if before, err = parseWhole(old); err != nil {
			return nil, fmt.Errorf("old: %w", err)
		}
	}
	after, err := parseWhole(new)
	if err != nil {
		return nil, fmt.Errorf("new: %w", err)
	}
	o, refused, err := one.charges(before, after)
	if err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		return nil, fmt.Errorf("does not fit its schema at %q", refused)
	}
	out := make([]Charge, 0, len(o.charges))
	for _, c := range o.charges {
		out = append(out, Charge{c.operation, c.path, c.chain, c.barrier})
	}
	return out, nil
}

// passes reports whether a place is ignored.
func (o *oracle) passes(p place) bool {
	if o.stored.Free == nil {
		return false
	}
	plain := func(v *value) []byte {
		if v == nil {
			return nil
		}
		return v.compact()
	}
	text := func(v *value) func() []byte { return func() []byte { return plain(v) } }
	field := func(names ...string) (before, after []byte) {
		was, is := o.old, o.new
		for _, name := range names {
			was, is = was.get(name), is.get(name)
		}
		return plain(was), plain(is)
	}
	fallback := false
	if raw := p.node.Default(); o.create && raw != nil {
		declared, err := parse(raw)
		fallback = err == nil && declared.canonical() == p.new.canonical()
	}
	return o.stored.Free(Change{
		Kind: o.kind.GroupVersionKind, Path: p.path, Create: o.create, Default: fallback, Barred: p.barred(), Old: text(p.old), New: text(p.new), Field: field,
	})
}
