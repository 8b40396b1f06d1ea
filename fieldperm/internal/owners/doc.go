// Package owners compares the owners of fields (D8). Changing the owner of a field needs the verb of that field.
//
// Charge charges what the managers of the list metadata.managedFields lost and gained (owners.compare), at the places of the paths
// (places.go). What the next apply of a manager then changes is not reasoned about: next.go asks structured-merge-diff, the library that API
// servers use. An error of the simulation is charged as the whole object, as is all that no API server writes (items.go, times.go) and what a
// conversion may drop with an empty struct, map or list (emptied.go). server.go has what API servers do by themselves, which is free.
//
// managedfields.go reads the entries, and fieldsv1.go their paths. Unattributed says whether any manager owns a change.
//
// The package charges places through charge.Charger, which does not know it.
package owners
