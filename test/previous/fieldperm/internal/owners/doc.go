// Package owners compares the owners of fields (D8). Changing the owner of a field needs the verb of that field.
//
// Start at Charge and owners.compare (ownership.go). managedfields.go and fieldsv1.go read the entries; touched.go has the changes that the
// API server makes to them by itself; otherwise.go reads entries of other versions. held.go, unheld.go and hollow.go charge what a later
// apply would delete. Unattributed (attribution.go) says whether any manager owns a change.
//
// The package charges places through walk.Differ, and the walk does not know it.
package owners
