package admission

import (
	"errors"
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// ErrHoldersUnknown is the error of SchemaReviewer.Holders if this process cannot determine the holders of a verb.
var ErrHoldersUnknown = errors.New("RBAC is not decided in process")

// warning is a fault that does not refuse the document.
type warning string

func (w warning) Error() string { return string(w) }

// maxTaken is the maximum number of verbs that warnings name, because an API server truncates long warnings.
const maxTaken = 3

// replaced returns warnings about verbs that a PermissionSchema takes from fields and that users hold.
func (r *SchemaReviewer) replaced(added compile.Documents, before, after *schema.Schema) []error {
	var out []error
	for i := range added.Permissions {
		named, more := 0, 0
		for _, kind := range added.Permissions[i].KindsIn(after) {
			for _, t := range schemacheck.TakenFrom(kind, before, after) {
				if named++; named > maxTaken {
					more++
				} else if text := r.held(kind, t); text != "" {
					out = append(out, warning(fmt.Sprintf("%s writes %s no more: %s", t, t.Path, text)))
				}
			}
		}
		if more > 0 {
			out = append(out, warning(fmt.Sprintf("%d more verbs are taken from fields", more)))
		}
	}
	return out
}

// held returns a text that names the holders of a verb of a kind, "" if there are none.
func (r *SchemaReviewer) held(kind runtimeschema.GroupKind, t schemacheck.Taken) string {
	const unknown = "who holds it is not known here"
	if r.Holders == nil {
		return unknown
	}
	names, err := r.Holders(kind, t.Is)
	switch {
	case errors.Is(err, ErrHoldersUnknown):
		return unknown + " (no authorizer of type RBAC in --authorization-config): look for it in roles"
	case err != nil:
		return unknown + ": " + err.Error()
	case len(names) == 0:
		return ""
	}
	return "held by " + some(names)
}
