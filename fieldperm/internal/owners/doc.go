// Package owners compares the owners of fields (D8). Changing the owner of a field needs the verb of that field.
//
// Start at Charge and owners.compare (owners.go), which charge what a manager lost and gained. What the next apply of a manager then changes is
// not reasoned about: next.go asks structured-merge-diff, the library that API servers use. server.go has what API servers do by
// themselves, which is free; times.go the times of entries; items.go and emptied.go what is charged as the whole object.
//
// managedfields.go and fieldsv1.go read the entries. lastapplied.go knows the managers that clients take over. Unattributed (attribution.go) says
// whether any manager owns a change.
//
// An error of the simulation is charged as the whole object. The package charges places through charge.Charger, which does not know it.
package owners
