package expression

import (
	"errors"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Known is what the authorization phase knows about a request for a resource. The zero value folds to an error.
type Known struct {
	User                                                         user.Info
	Verb, Group, Version, Resource, Subresource, Namespace, Name string
}

// KnownOf returns what the attributes of a request say.
func KnownOf(a authorizer.Attributes) Known {
	return Known{
		User: a.GetUser(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(),
		Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName(),
	}
}

// anything is what a SubjectAccessReview may say instead of a value.
const anything = "*"

func (k *Known) validate() error {
	switch {
	case k.User == nil:
		return errors.New("the user of the request is not known: name one")
	case k.Verb == "" || k.Verb == anything:
		return errors.New("the verb of the request is not known: name one")
	case k.Resource == "":
		return errors.New("the request names no resource: conditions are for requests for resources")
	}
	return nil
}

// isKnown reports whether admission will see the same value of the field of request at a path.
func (k *Known) isKnown(path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch path[0] {
	case verbField, "userInfo":
		return true
	case "resource", "requestResource":
		return k.isResourceKnown(path[1:])
	case "subResource", "requestSubResource":
		return k.Subresource != anything
	case "namespace":
		// An empty namespace also stands for all namespaces, and for a Namespace that is not yet created.
		return k.Namespace != "" && k.Namespace != anything
	case "name":
		return k.isNameKnown()
	case "operation":
		return k.operation() != ""
	default:
		return false
	}
}

func (k *Known) isResourceKnown(path []string) bool {
	known := map[string]bool{"group": k.Group != anything, "version": k.Version != "" && k.Version != anything, "resource": k.Resource != anything}
	if len(path) == 0 {
		return known["group"] && known["version"] && known["resource"]
	}
	return known[path[0]]
}

// isNameKnown is false where the server or the object gives the name, and for a collection.
func (k *Known) isNameKnown() bool {
	switch {
	case k.Name == "" || k.Name == anything || k.Verb == "deletecollection":
		return false
	case k.Verb == "create":
		return k.Subresource != ""
	default:
		return true
	}
}

// operation returns the operation that the verb determines, or "". An update or a patch can become a create. Any verb on a subresource can be
// a connect request.
func (k *Known) operation() string {
	switch {
	case k.Subresource != "":
		return ""
	case k.Verb == "create":
		return "CREATE"
	case k.Verb == "delete", k.Verb == "deletecollection":
		return "DELETE"
	default:
		return ""
	}
}

// value returns the request with what may be known. Fields that are not known must not be read from it.
func (k *Known) value() map[string]any {
	out := map[string]any{"operation": k.operation()}
	addKnown(out, facts{
		verb: k.Verb, group: k.Group, version: k.Version, resource: k.Resource, subresource: k.Subresource, namespace: k.Namespace, name: k.Name,
		user: k.User,
	})
	return out
}

func (k *Known) areKnown(paths [][]string) bool {
	return !slices.ContainsFunc(paths, func(path []string) bool { return !k.isKnown(path) })
}
