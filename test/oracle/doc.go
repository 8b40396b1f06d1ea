// Package oracle holds what is stored to what was permitted.
//
// It sends random writes to a real API server as users with drawn grants, and reads from etcd every key that changed. What
// is stored under each is compared before and after by the oracle of package exact, which is made of
// structured-merge-diff and shares no code with fieldperm's decision. Every field that changed must be covered by
// a verb that the user holds on the resource of the stored object, or on the resource that was addressed. Which
// request writes which object is not known beforehand: etcd says it.
//
// Start reading at [Run], then judge.go, which is the rule; asked.go hears what /admit said. Requests are drawn in drawn.go, bodies in edit.go, owners.go
// and body.go, objects in dress.go and objects.yaml, users in user.go, schemas and sets in guard.go, definitions in
// definition.go and shape.go, conversions in conversion.go; twostep.go lets other appliers act after a write. store.go
// follows etcd, shrink.go makes a failure smaller, report.go is the table at the end.
//
// What is not charged stands in four tables, each row with its reason: free.go and written.go (what the API server writes into
// objects), background.go (what it writes without a request) and tolerated.go (what is known and documented).
package oracle
