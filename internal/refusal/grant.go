package refusal

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/verbs"
)

// Grant is a role and its binding that would lift the refusal of one change, or of one verb. Others may follow.
type Grant struct {
	// Verbs are what the role grants.
	Verbs []string `json:"verbs"`
	// Objects are the role and the binding: a Role in a namespace, or a ClusterRole.
	Objects []any `json:"objects"`
}

// Grant returns the least grant, or why there is none. The namespace is that of the object, "" for an object outside of namespaces.
func (r *Refusal) Grant(namespace string) (grant *Grant, why string) {
	switch {
	case r.Unclear, r.Origin == FromFailure, r.NotProven:
		return nil, "no grant would help"
	case r.Deny != nil:
		return nil, "an authorizer denies the verb: no grant overrides it"
	case r.NoVerb:
		return nil, "no verb covers the change"
	case r.User == "" || strings.HasSuffix(r.User, cutMark) || r.Resource == "":
		return nil, "the text does not have the whole name of the user and the resource"
	case !isPlain(r.Resource):
		return nil, "no resource has the name of the request: a wildcard in a path of kube-apiserver is not a resource, and in a Role it is all of them"
	}
	out := &Grant{Verbs: r.least()}
	if len(out.Verbs) == 0 {
		return nil, "the text names no verb"
	}
	out.Objects = r.objects(namespace, out.Verbs)
	return out, ""
}

// least returns the most specific verb, with the marker where a user needs it to be let in. A user whom /admit/uncovered refuses is let in
// already.
func (r *Refusal) least() []string {
	switch {
	case r.LacksGet:
		return []string{"get"}
	case r.Origin == FromAuthorization:
		return []string{r.Verb}
	case r.Field == "" && len(r.Needs) > 0:
		return r.Needs[:1]
	case r.Field == "" || len(r.Needs) == 0:
		return nil
	case r.Webhook == "uncovered.fieldperm.dev":
		return r.Needs[:1]
	}
	return []string{verbs.Marker, r.Needs[0]}
}

func (r *Refusal) objects(namespace string, granted []string) []any {
	resource, group, subresource := split(r.Resource)
	if subresource != "" {
		resource += "/" + subresource
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: granted}}
	if r.namesObject() {
		rules[0].ResourceNames = []string{r.Name}
	}
	return needs.Objects(subjectOf(r.User), []needs.Rules{{Namespace: namespace, Rules: rules}})
}

// namesObject reports whether the authorizers of kube-apiserver saw the name of the object. What a create of an object sends has the name only in
// its body, and a message of fieldperm does not say whether the write is a create.
func (r *Refusal) namesObject() bool {
	return r.Origin == FromAuthorization && r.Name != "" && (r.Verb != "create" || strings.Contains(r.Resource, "/"))
}

// isPlain reports whether a resource is one that an API server can have. A path may have any characters in place of its name, and kube-apiserver
// repeats them when it refuses the request.
func isPlain(name string) bool {
	resource, group, subresource := split(name)
	plain := func(text string) bool {
		return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789.-/") == ""
	}
	return resource != "" && plain(resource) && plain(group) && plain(subresource)
}

// split splits deployments.apps/scale.
func split(name string) (resource, group, subresource string) {
	name, subresource, _ = strings.Cut(name, "/")
	resource, group, _ = strings.Cut(name, ".")
	return resource, group, subresource
}

func subjectOf(user string) rbacv1.Subject {
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		// Without its namespace a ServiceAccount would be the one of the Role's namespace. RBAC takes the user by its whole name too.
		if namespace, name, ok := strings.Cut(rest, ":"); ok && namespace != "" && name != "" && !strings.Contains(name, ":") {
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
}
