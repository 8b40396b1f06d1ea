package page

import "github.com/fieldperm/fieldperm/internal/fieldtree"

// Access is who may change what in one object, or in all objects of a kind in a namespace.
type Access struct {
	// Kind is a kind of the forest.
	Kind *fieldtree.Kind
	// Object is the namespace and the name (shop/web), or what the answer is about in place of an object.
	Object   string
	Subjects []Subject
	// Paths has the subjects that may change the field at a path of the kind. "" is the object itself. A field that is not a key has those of
	// the nearest key above it.
	Paths map[string][]Holder
}

// Subject is a user, a group or a service account. The Name of a ServiceAccount has its namespace: shop/deployer.
type Subject struct{ Kind, Name string }

// Holder is how a subject may change a field.
type Holder struct {
	// Subject is the index of the subject.
	Subject int
	// How is generic, granular, wildcard or conditional.
	How string
}
