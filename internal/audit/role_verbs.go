package audit

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// usable are the resources of a rule.
type usable struct {
	// known are those that are known and have no wildcard.
	known []Resource
	// open are those of which it cannot be told: wildcards in all groups, and groups with kinds that are not known.
	open bool
	// wild are wildcards within groups that are known.
	wild []Resource
}

// resources returns the resources of a rule, and reports those that are not known in any of its groups.
func (c *reviewer) resources(i int, rule *rbacv1.PolicyRule) usable {
	var out usable
	for j, name := range rule.Resources {
		found, open := false, false
		for _, group := range rule.APIGroups {
			r := Resource{group, name}
			resource, subresource := r.split()
			switch {
			case r.wildcard():
				out.wild = append(out.wild, r)
				found = true
			case c.role.Namespace != "" && endpoint.ClusterScoped(group, resource) && !inNamespace(r):
				found, out.open = true, true
				c.find(clusterInRole, Error, fmt.Sprintf("rules[%d].resources[%d]", i, j), name, fmt.Sprintf("%s has no namespace, so a Role never matches it", r), "use a ClusterRole and a ClusterRoleBinding")
			case c.known.serves(group, resource, subresource):
				out.known = append(out.known, r)
				found = true
			case c.known.failed[group]:
				open = true
			}
		}
		if open {
			out.open = true
		}
		if !found && !open {
			c.unknownResource(fmt.Sprintf("rules[%d].resources[%d]", i, j), name, rule)
			// Nothing more can be said of its verbs than that the resource is not known.
			out.open = true
		}
	}
	return out
}

// unknownResource is the rule unknown-resource.
func (c *reviewer) unknownResource(path, name string, rule *rbacv1.PolicyRule) {
	level, cure := Error, "correct the resource or its API group"
	isKnown := func(group string) bool { return c.known.groups[group] }
	near := c.known.nearestResource(rule.APIGroups, name)
	resource, subresource, _ := strings.Cut(name, "/")
	switch {
	case subresource == "*":
		c.find(unknownResource, Error, path, name, fmt.Sprintf("resource %q matches nothing: RBAC has no wildcard after the slash", name),
			fmt.Sprintf("name the subresources, such as %q", resource+"/status"))
		return
	case near != "" && strings.HasPrefix(near, "apiGroups"):
		cure = "write " + near
	case near != "":
		cure = fmt.Sprintf("write %q", near)
	case c.files && !slices.ContainsFunc(rule.APIGroups, isKnown):
		level, cure = Note, "give the CustomResourceDefinition with --crd, or correct the API group"
	case c.incomplete || !slices.ContainsFunc(rule.APIGroups, isKnown):
		level = Warning
	}
	if near != "" && c.incomplete && !c.files {
		level = Warning
	}
	c.find(unknownResource, level, path, name, fmt.Sprintf("resource %q is not known in apiGroups [%s], so the rule does not match it", name, quoted(rule.APIGroups)), cure)
}

// verb checks a granular verb on the resources of a rule. It has a fault if it has no effect on any of them.
func (c *reviewer) verb(path string, v verbs.Verb, rule *rbacv1.PolicyRule, on usable) {
	if v == verbs.Creation() {
		return // It is of an object, and of no field.
	}
	places, isKnown := c.known.all()[v.Name()]
	if !isKnown {
		c.unknownVerb(path, v, on.known)
		return
	}
	instead, status := "", []Resource(nil)
	for _, r := range on.known {
		u := c.known.of(r).verbs[v.Name()]
		switch {
		case u == nil:
		case !c.known.effective(r, u):
			status = append(status, r)
		default:
			other, takes := u.takes(v)
			if takes {
				return
			}
			instead = other
		}
	}
	level := Error
	for _, r := range on.wild {
		if !c.wildHas(r, v.Name()) {
			continue
		}
		other, takes := c.wildTakes(r, v)
		if takes {
			return
		}
		instead = other
		if c.incomplete {
			level = Warning // A kind that is not known may take it.
		}
	}
	switch {
	case instead != "":
		c.find(parameterNever, level, path, v.String(), fmt.Sprintf("the parameter of verb %q never matches on %s", v, listOf(append(on.known, on.wild...))), fmt.Sprintf("write %q", instead))
	case on.open || len(rule.Resources) == 0:
		if len(rule.Resources) == 0 {
			c.find(verbNotOnResource, Error, path, v.String(), fmt.Sprintf("verb %q is in a rule without resources, and covers fields of objects", v), "name resources in place of nonResourceURLs")
		}
	case len(status) > 0:
		resource, _ := status[0].split()
		at := Resource{status[0].Group, resource + "/status"}
		c.find(verbNeedsSubresource, Error, path, v.String(), fmt.Sprintf("fields with verb %q are in the status, which is written only through %s", v, at),
			fmt.Sprintf("grant the verb and the marker on %q", at.Name))
	default:
		c.notOnResource(path, v, append(on.known, on.wild...), places)
	}
}

// wildHas reports whether any resource that a wildcard stands for may have a verb.
func (c *reviewer) wildHas(r Resource, name string) bool {
	inGroup := func(at Resource) bool { return r.Group == rbacv1.APIGroupAll || at.Group == r.Group }
	places := c.known.all()[name]
	if !slices.ContainsFunc(places, inGroup) && len(places) > 0 {
		return r.Group != rbacv1.APIGroupAll && (c.incomplete || c.known.failed[r.Group] || !c.known.groups[r.Group])
	}
	_, subresource := r.split()
	if subresource == "" {
		return true
	}
	return slices.ContainsFunc(places, func(at Resource) bool {
		if !inGroup(at) {
			return false
		}
		w := c.known.of(Resource{at.Group, at.Name + "/" + subresource})
		return w != nil && w.verbs[name] != nil
	})
}

// wildTakes reports whether any resource that a wildcard stands for takes a verb with its parameter. If not, it returns the verb to write.
func (c *reviewer) wildTakes(r Resource, v verbs.Verb) (instead string, takes bool) {
	if !v.HasParameter() {
		return "", true
	}
	_, subresource := r.split()
	for _, at := range c.known.all()[v.Name()] {
		if r.Group != rbacv1.APIGroupAll && at.Group != r.Group {
			continue
		}
		resource, _ := at.split()
		for _, through := range c.known.through(at.Group, resource, v.Name()) {
			if _, sub := through.split(); subresource != "" && sub != subresource {
				continue
			}
			if u := c.known.of(through).verbs[v.Name()]; u != nil {
				other, ok := u.takes(v)
				if ok {
					return "", true
				}
				instead = other
			}
		}
	}
	// Without a resource that has the verb nothing can be said of its parameter.
	return instead, instead == ""
}

// unknownVerb is the rule unknown-verb.
func (c *reviewer) unknownVerb(path string, v verbs.Verb, on []Resource) {
	level, cure := Error, "correct the verb, or install the custom resource that has it"
	if of, field := c.known.verbOfField(on, v.Name()); of != "" {
		cure = fmt.Sprintf("write %q, the verb of %s", of, field)
	} else if near := c.known.nearestVerb(v.Name()); near != "" {
		cure = fmt.Sprintf("write %q", near)
		if v.HasParameter() {
			cure = fmt.Sprintf("write %q", near+v.String()[strings.IndexByte(v.String(), '('):])
		}
	} else if c.files && strings.Contains(v.Name(), "/") {
		level, cure = Note, "give the CustomResourceDefinition with --crd or the PermissionSchema with --permissions"
	}
	if c.incomplete && !c.files {
		level = Warning
	}
	c.find(unknownVerb, level, path, v.String(), fmt.Sprintf("no field of any known kind has verb %q", v), cure)
}

// maxPlaces is how many resources a message names.
const maxPlaces = 5

// notOnResource is the rule verb-not-on-resource.
func (c *reviewer) notOnResource(path string, v verbs.Verb, on, places []Resource) {
	// The resource itself, for a subresource, and subresources of the resource, are named first.
	var near []Resource
	for _, r := range on {
		resource, _ := r.split()
		for _, at := range c.known.through(r.Group, resource, v.Name()) {
			if !slices.Contains(near, at) {
				near = append(near, at)
			}
		}
	}
	cure := "grant it on a resource that has it: " + listOf(places)
	if len(near) > 0 {
		cure = "grant it on " + listOf(near)
	}
	c.find(verbNotOnResource, Error, path, v.String(), fmt.Sprintf("verb %q is known, and nothing that is written through %s has it", v, listOf(on)), cure)
}

// scale is the rule scale-not-granted.
func (c *reviewer) scale(path string, v verbs.Verb, on usable) {
	var lacks []Resource
	for _, r := range on.known {
		resource, subresource := r.split()
		scale := Resource{r.Group, resource + "/scale"}
		if subresource != "" || c.known.of(r).verbs[v.Name()] == nil || !c.known.serves(r.Group, resource, "scale") {
			continue
		}
		if w := c.known.of(scale); w == nil || w.verbs[v.Name()] == nil || !w.verbs[v.Name()].precise {
			continue
		}
		if !slices.ContainsFunc(c.role.Rules, func(rule rbacv1.PolicyRule) bool {
			kept := keptRule{groups: rule.APIGroups, resources: rule.Resources, verbs: rule.Verbs}
			return kept.has(v.String()) && kept.covers(scale)
		}) {
			lacks = append(lacks, scale)
		}
	}
	if len(lacks) > 0 {
		c.find(scaleNotGranted, Note, path, v.String(), fmt.Sprintf("verb %q does not count on %s, which kubectl scale and HorizontalPodAutoscalers write", v, listOf(lacks)),
			fmt.Sprintf("add %q to the resources of the rule, if its holders scale with these", lacks[0].Name))
	}
}

// marker is the rule marker-without-effect. It is reported once for a rule, at the first of the resources.
func (c *reviewer) marker(i int, rule *rbacv1.PolicyRule) {
	var idle []Resource
	first := -1
	for j, name := range rule.Resources {
		for _, group := range rule.APIGroups {
			resource, subresource, _ := strings.Cut(name, "/")
			if endpoint.BuiltIn(group, resource) && c.known.serves(group, resource, subresource) && !endpoint.TakesMarker(group, resource, subresource) {
				idle = append(idle, Resource{group, name})
				if first < 0 {
					first = j
				}
			}
		}
	}
	if len(idle) > 0 {
		c.find(markerNoEffect, Warning, fmt.Sprintf("rules[%d].resources[%d]", i, first), listOf(idle), fmt.Sprintf("the marker lets no write of %s in", listOf(idle)),
			"grant the marker on other resources only, and the generic permission on these if they are to be written")
	}
}

// quoted returns texts in quotes, with commas between them.
func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(out, ", ")
}

// listOf returns resources with commas between them, of many the first.
func listOf(resources []Resource) string {
	var out []string
	for _, r := range resources[:min(len(resources), maxPlaces)] {
		out = append(out, r.String())
	}
	text := strings.Join(out, ", ")
	if more := len(resources) - maxPlaces; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
