// Package oracle compares the stored objects with the permissions of the users that wrote them.
//
// It sends random writes to a real API server as users with drawn grants, and reads from etcd every key that changed. The oracle of package
// exact compares the stored value of each key before and after. That oracle is made of structured-merge-diff and shares no code with
// fieldperm's decision. Every field that changed must be covered by a verb that the user holds on the resource of the stored object, or on
// the resource that was addressed. The oracle does not assume which request writes which object: it reads that from etcd.
//
// Start reading at [Run], then judge.go, which has the rule; asked.go records the decisions of /admit. Requests are drawn in drawn.go,
// bodies in edit.go, owners.go and body.go, objects in dress.go and objects.yaml, users in user.go, schemas and sets in guard.go,
// definitions in definition.go and shape.go, conversions in conversion.go; twostep.go lets other appliers act after a write. store.go
// follows etcd, shrink.go makes a failure smaller, report.go is the table at the end.
//
// Changes that are not charged are listed in four tables, each row with its reason: free.go and written.go (fields that the API server
// writes into objects), background.go (objects that it writes without a request) and tolerated.go (known and documented gaps).
package oracle
