package exact

import (
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// subject is what a pair of objects is judged by: a compiled kind, and the types that it was compiled
// from, which the generator and the oracle read instead of the kind's nodes.
type subject struct {
	kind  *schema.Kind
	types *smd.Schema
	root  smd.TypeRef
	// loose are the same types for structured-merge-diff's Compare; see loosen.
	loose     *smd.Schema
	uncovered schema.VerbSet
	// stored is set where what an API server has stored is judged, see Stored.
	stored *Stored
	// through is the version that was written through, where that is not the version of what is judged.
	through string
	// others are the versions of the kind, itself among them, by apiVersion.
	others map[string]*subject
	// source shows where the schema is from, for a failure's report.
	source string
}

func newSubject(kind *schema.Kind, topology *schema.Topology, loose *smd.Schema) *subject {
	name := topology.Kinds[kind.GroupVersionKind]
	return &subject{kind: kind, types: topology.Types, root: smd.TypeRef{NamedType: &name}, loose: loose}
}

// related tells each subject which others are versions of its kind.
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

// resolve returns what a type may be; what no type says, is anything (D6).
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

// memberType returns the type below a key. The zero reference is that of unknown fields.
func memberType(m *smd.Map, name string) smd.TypeRef {
	if f, ok := m.FindField(name); ok {
		return f.Type
	}
	return m.ElementType
}

// fieldsOf returns a struct's fields by name: converters give them in the order of a Go map, and chance must
// come out the same in each run.
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

// keyDefault returns what stands in for an absent key property, nil for nothing.
func (s *subject) keyDefault(l *smd.List, name string) *value {
	atom := s.resolve(l.ElementType)
	if atom.Map == nil {
		return nil
	}
	f, _ := atom.Map.FindField(name)
	return fromGo(f.Default)
}

// fromGo reads a default as schemas hold it.
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

// loosen returns types for Compare that take whatever fieldperm takes. Compare only has to see what
// differs and where:
//   - every type takes scalars of any sort, because validation is the API server's, and because what Compare cannot
//     hold (null, an object with a name twice, a list whose keys do not identify) is shown to it as a
//     scalar of its own;
//   - a struct takes fields that it does not declare, because they are compared, too (D6).
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
