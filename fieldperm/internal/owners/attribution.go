package owners

import (
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Unattributed reports whether no manager in the new object's managedFields owns the changed path, although managers own other paths.
// Then a default of the API server, a mutating webhook or a policy made the change after the request was merged, and the message tells the
// user so (D12). Use it for messages only, because a user can write managedFields. It returns false for removed values, which have no owner
// in the new object, and where managedFields do not say enough: they do not name items by position.
func Unattributed(new []byte, r *change.Requirement) bool {
	if r == nil || r.Operation != change.Modified && r.Operation != change.Added {
		return false
	}
	doc, err := rawjson.Scan(new)
	if err != nil {
		return false
	}
	defer doc.Release()
	managed, ok := readManagedFields(doc.Root().Get("metadata").Get("managedFields"))
	if !ok {
		return false
	}
	for _, who := range managed.order {
		if owns := managed.entry(who).raw; !owns.IsEmpty() {
			if part, _ := fieldsAt(owns, r.Path); !part.IsAbsent() {
				return false
			}
		}
	}
	return len(managed.order) > 0
}
