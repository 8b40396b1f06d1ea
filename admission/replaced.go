package admission

import (
	"errors"
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// ErrHoldersUnknown is that nothing here knows who holds a verb.
var ErrHoldersUnknown = errors.New("RBAC is not decided in process")

// warning is a fault that keeps nothing out.
type warning string

func (w warning) Error() string { return string(w) }

// maxTaken bounds how many verbs are named: an API server cuts long warnings.
const maxTaken = 3

// replaced returns warnings about the verbs that a PermissionSchema takes from fields, and that somebody holds.
func (r *SchemaReviewer) replaced(added schema.Documents, before, after *schema.Schema) []error {
	var out []error
	for i := range added.Permissions {
		kind := runtimeschema.GroupKind{Group: added.Permissions[i].Group, Kind: added.Permissions[i].Kind}
		taken := schema.TakenFrom(kind, before, after)
		for _, t := range taken[:min(len(taken), maxTaken)] {
			if text := r.held(kind, t); text != "" {
				out = append(out, warning(fmt.Sprintf("%s writes %s no more: %s", t.Verb, t.Path, text)))
			}
		}
		if more := len(taken) - maxTaken; more > 0 {
			out = append(out, warning(fmt.Sprintf("%d more verbs are taken from fields", more)))
		}
	}
	return out
}

// held says who holds a verb of a kind, "" if nobody does.
func (r *SchemaReviewer) held(kind runtimeschema.GroupKind, t schema.Taken) string {
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
