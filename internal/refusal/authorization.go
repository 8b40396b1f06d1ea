package refusal

import (
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// html are the characters that kube-apiserver replaces in its own message.
var html = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// unauthorized reads kube-apiserver's message of a missing permission after "cannot ".
func (c *cursor) unauthorized(r *Refusal) bool {
	r.Origin = FromAuthorization
	verb := c.while(isVerb)
	resource, ok := c.quotedAfter(" resource ")
	if verb == "" || !ok {
		return false
	}
	group, ok := c.quotedAfter(" in API group ")
	if !ok {
		return false
	}
	r.Verb, r.User = verb, html.Replace(r.User)
	r.Resource = joined(html.Replace(resource), html.Replace(group))
	namespaced := false
	if namespace, ok := c.quotedAfter(" in the namespace "); ok {
		r.Namespace, namespaced = html.Replace(namespace), true
	} else if !c.word(" at the cluster scope") {
		return false
	}
	r.Namespaced = &namespaced
	if c.word(": ") {
		r.Reason = c.rest
		_, said, ok := strings.Cut(withoutQuotes(r.Reason), "fieldperm: "+verbs.Prefix)
		r.NotProven = ok && strings.Contains(said, "is not let through: it is not proven ")
		r.LacksGet = ok && strings.Contains(said, "kube-apiserver reads the object for the user before admission: grant get")
	}
	return true
}

// withoutQuotes returns a text without what is in quotes: names of roles may have any characters.
func withoutQuotes(text string) string {
	var out strings.Builder
	for c := (cursor{text}); c.rest != ""; {
		if _, ok := c.quoted(); !ok {
			out.WriteByte(c.rest[0])
			c.rest = c.rest[1:]
		}
	}
	return out.String()
}

// joined returns a resource in the form of fieldperm: deployments.apps/scale.
func joined(resource, group string) string {
	if group == "" {
		return resource
	}
	resource, subresource, ok := strings.Cut(resource, "/")
	if resource += "." + group; ok {
		resource += "/" + subresource
	}
	return resource
}

// failure reads an error of fieldperm after the name of its webhook, or an error of its call.
func (c *cursor) failure(r *Refusal) bool {
	r.Origin = FromFailure
	if name, ok := c.quotedAfter("failed calling webhook "); ok && ours(name) {
		r.Webhook, r.Reason = name, strings.TrimPrefix(c.rest, ": ")
		return true
	}
	if ours(r.Webhook) && c.rest != "" {
		r.Reason = c.rest
		return true
	}
	return false
}

// ours reports whether a webhook is one of fieldperm by its name. Another program may have a webhook of that name.
func ours(name string) bool { return strings.HasSuffix(name, ".fieldperm.dev") }
