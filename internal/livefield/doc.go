// Package livefield finds fields in one object by the paths that users write, and makes the object with another value of a field.
//
// Start at Resolve: it takes a path in any form of fieldtree.Kind.Find and returns the fields of the object that it names, items of lists by their
// keys. Field.Set is the change. The package reads no cluster and decides nothing.
package livefield
