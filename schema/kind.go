package schema

import (
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Kind is the compiled tree of one kind. It is immutable.
type Kind struct {
	runtimeschema.GroupVersionKind
	// Root is the node of the object itself; its only verb is granular:*.
	Root  *Node
	parts KindParts
	// mayBar: see MayBar. folds: see Folds. typed: see Type.
	mayBar, folds bool
	typed         func() typed.ParseableType
}

// KindParts are what a kind is made of. The methods of Kind explain them.
type KindParts struct {
	GroupVersionKind runtimeschema.GroupVersionKind
	Root             *Node
	ShownInFull      bool
	// Reads: see Read. It is nil if a review shows objects as readers get them.
	Reads func(object map[string]any) bool
	// Hidden describes the fields that a write through this version may change without showing them; nil means none.
	Hidden *Hidden
	// Versions are the versions that compiled, by apiVersion; nil if there is only one.
	Versions map[string]*Kind
	// Alike says which fields are the same in other versions, by apiVersion.
	Alike                   map[string]*Likeness
	ConvertsByName, Renames bool
	// BuiltIn means that the code of kube-apiserver converts the kind.
	BuiltIn bool
	// Trace is nil if the compile was not traced.
	Trace *Trace
}

// NewKind makes a kind.
func NewKind(p KindParts) *Kind {
	k := &Kind{GroupVersionKind: p.GroupVersionKind, Root: p.Root, parts: p, mayBar: p.Root.MayBarWithin()}
	p.Root.Each(func(n *Node) { k.folds = k.folds || n.Folds() })
	k.typed = sync.OnceValue(func() typed.ParseableType { return typeOf(p.Root) })
	return k
}

// Parts returns a copy of what the kind is made of. Callers must not change what it points to.
func (k *Kind) Parts() KindParts { return k.parts }

// With returns a changed copy of the kind.
func (k *Kind) With(change func(*KindParts)) *Kind {
	p := k.parts
	change(&p)
	if p.Root != k.Root {
		return NewKind(p)
	}
	out := *k
	out.parts = p
	return &out
}

// In returns the kind in another version, nil if that version is not known.
func (k *Kind) In(apiVersion string) *Kind {
	if apiVersion == k.GroupVersion().String() {
		return k
	}
	return k.parts.Versions[apiVersion]
}

// MayBar reports whether the kind's schema has a barrier, conditional ones included.
// UncoveredPermissionSets are not counted.
func (k *Kind) MayBar() bool { return k.mayBar }

// Folds reports whether a node of the kind folds: see Node.Folds.
func (k *Kind) Folds() bool { return k.folds }

// ShownInFull reports whether a review shows all contents of an object, because the API server receives and stores the kind as JSON. This is
// true of custom resources. Objects of other kinds may be sent and stored as protobuf, which holds more than JSON can show: the unused
// half of an IntOrString, and strings that are not UTF-8. They may also hold JSON text byte for byte (RawExtension).
func (k *Kind) ShownInFull() bool { return k.parts.ShownInFull }

// ShownAsRead reports whether a review shows every object in the form in which readers get it, so that Read changes nothing.
func (k *Kind) ShownAsRead() bool { return k.parts.Reads == nil }

// Read brings a new object into the form in which readers get it. The object is decoded JSON with int64 and float64 for numbers. Read
// returns false if readers get it without some of its fields, or if it is no object. A condition on it then says nothing of the object that
// readers get.
func (k *Kind) Read(object any) bool {
	if k.parts.Reads == nil {
		return true
	}
	fields, ok := object.(map[string]any)
	return ok && k.parts.Reads(fields)
}
