package exact

import (
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// subject is the basis for judging a pair of objects: a compiled kind, and the types from which it was compiled. The generator and the
// oracle read these types instead of the nodes of the kind.
type subject struct {
	kind  *schema.Kind
	types *smd.Schema
	root  smd.TypeRef
	// loose are the same types for structured-merge-diff's Compare; see loosen.
	loose     *smd.Schema
	uncovered schema.VerbSet
	// stored is set if a stored object is judged, see Stored.
	stored *Stored
	// through is the version through which the request wrote, if it is not the version of the judged object.
	through string
	// others are all versions of the kind, including this one, by apiVersion.
	others map[string]*subject
	// source shows the origin of the schema, for the report of a failure.
	source string
}

func newSubject(kind *schema.Kind, topology *compile.Topology, loose *smd.Schema) *subject {
	name := topology.Kinds[kind.GroupVersionKind]
	return &subject{kind: kind, types: topology.Types, root: smd.TypeRef{NamedType: &name}, loose: loose}
}

// related links each subject to the other versions of its kind.
func related(subjects []*subject) {
	all := map[runtimeschema.GroupKind]map[string]*subject{}
	for _, s := range subjects {
		if all[s.kind.GroupKind()] == nil {
			all[s.kind.GroupKind()] = map[string]*subject{}
		}
		s.others = all[s.kind.GroupKind()]
		s.others[s.kind.GroupVersion().String()] = s
	}
}

// resolve returns the possible forms of a type. Without a type every form is possible (D6).
func (s *subject) resolve(ref smd.TypeRef) smd.Atom {
	if atom, ok := s.types.Resolve(ref); ok && atom != (smd.Atom{}) {
		return atom
	}
	return anything()
}

func anything() smd.Atom {
	untyped := smd.Untyped
	return smd.Atom{
		Scalar: &untyped,
		List:   &smd.List{ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementRelationship: smd.Separable},
	}
}

// memberType returns the type below a key. The zero reference is the type of unknown fields.
func memberType(m *smd.Map, name string) smd.TypeRef {
	if f, ok := m.FindField(name); ok {
		return f.Type
	}
	return m.ElementType
}

// fieldsOf returns the fields of a struct sorted by name: converters return them in the order of a Go map, but random draws must be the
// same in each run.
func fieldsOf(m *smd.Map) []smd.StructField {
	return slices.SortedFunc(slices.Values(m.Fields), func(a, b smd.StructField) int { return strings.Compare(a.Name, b.Name) })
}

// keysOf returns the key properties of a list's items; none for a set and for an atomic list.
func keysOf(l *smd.List) []string {
	if l.ElementRelationship != smd.Associative {
		return nil
	}
	return l.Keys
}

// keyDefault returns the value that replaces an absent key property, nil for none.
func (s *subject) keyDefault(l *smd.List, name string) *value {
	atom := s.resolve(l.ElementType)
	if atom.Map == nil {
		return nil
	}
	f, _ := atom.Map.FindField(name)
	return fromGo(f.Default)
}

// fromGo reads a default in the form of schemas.
func fromGo(v any) *value {
	switch v := v.(type) {
	case string:
		return textValue(v)
	case bool:
		return boolValue(v)
	case int64, int, int32, uint64:
		return numberValue(fmt.Sprint(v))
	case float64:
		return numberValue(fmt.Sprintf("%g", v))
	}
	return nil
}

const anythingName = "exact.anything"

// loosen returns types for Compare that accept every object that fieldperm accepts. Compare only has to find the differences and their
// places:
//   - every type accepts any scalar, because the API server does the validation, and because values that Compare cannot
//     hold (null, an object with a duplicate name, a list whose keys do not identify its items) are passed to it as a
//     scalar of their own;
//   - a struct accepts fields that it does not declare, because they are compared too (D6).
func loosen(types *smd.Schema) *smd.Schema {
	untyped := smd.Untyped
	out := &smd.Schema{}
	for _, t := range types.Types {
		out.Types = append(out.Types, smd.TypeDef{Name: t.Name, Atom: loosenAtom(t.Atom)})
	}
	ref := smd.TypeRef{NamedType: ptr(anythingName)}
	return &smd.Schema{Types: append(out.Types, smd.TypeDef{Name: anythingName, Atom: smd.Atom{
		Scalar: &untyped,
		List:   &smd.List{ElementRelationship: smd.Atomic, ElementType: ref},
		Map:    &smd.Map{ElementRelationship: smd.Separable, ElementType: ref},
	}})}
}

func loosenAtom(a smd.Atom) smd.Atom {
	if a == (smd.Atom{}) {
		return smd.Atom{}
	}
	untyped := smd.Untyped
	a.Scalar = &untyped
	if a.List != nil {
		l := *a.List
		l.ElementType = loosenRef(l.ElementType)
		a.List = &l
	}
	if a.Map != nil {
		m := &smd.Map{ElementRelationship: a.Map.ElementRelationship, ElementType: loosenRef(a.Map.ElementType)}
		for _, f := range a.Map.Fields {
			m.Fields = append(m.Fields, smd.StructField{Name: f.Name, Default: f.Default, Type: loosenRef(f.Type)})
		}
		a.Map = m
	}
	return a
}

func loosenRef(ref smd.TypeRef) smd.TypeRef {
	if ref.NamedType == nil && ref.Inlined == (smd.Atom{}) {
		return smd.TypeRef{NamedType: ptr(anythingName)}
	}
	ref.Inlined = loosenAtom(ref.Inlined)
	return ref
}

func ptr[T any](v T) *T { return &v }
