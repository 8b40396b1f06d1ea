package schemacheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// check is the check of one UncoveredPermissionSet against the verbs of its resources, because a barrier that has no effect looks like one that
// holds. A verb that can never guard a field there is a fault. A resource that may be created later is unmatched, and the barrier holds
// from then on.
type check struct {
	*index
	source string
	verbs  []verbs.Verb
	// targets are the known resources that the set names.
	targets []*target
	// open means that the set names resources that are not known yet; wild means that it names more than single resources.
	open, wild bool
	faults     []error
}

func (c *check) report(unmatched bool, pointer, format string, args ...any) {
	c.faults = append(c.faults, &schema.Error{Source: c.source, Pointer: pointer, Message: fmt.Sprintf(format, args...), Unmatched: unmatched})
}

// run reports the verbs and resources that have no effect. pointers are those of the verbs.
func (c *check) run(spec *v1alpha1.UncoveredPermissionSetSpec, resources []v1alpha1.ResourceRule, pointers []string) {
	named := map[*target]string{}
	for i := range spec.Resources {
		c.rule(&spec.Resources[i], fmt.Sprintf("/spec/resources/%d", i), named)
	}
	if spec.Fragment != "" {
		c.fragment(spec, resources)
	}
	if len(resources) == 0 {
		c.wild = true
		c.targets = c.everything(func(runtimeschema.GroupResource) bool { return true }, "")
	}
	if len(c.targets) == 0 && !c.open && !c.wild {
		return // Every resource is a fault. The verbs can be judged only after the author has corrected them.
	}
	for i, v := range c.verbs {
		c.verb(v, pointers[i])
	}
	for _, t := range c.targets {
		if pointer, single := named[t]; single && !t.failed && !slices.ContainsFunc(c.verbs, func(v verbs.Verb) bool { return c.fit(t, v) == fits }) && c.allFit() {
			c.report(false, pointer, "none of the verbs guards a field of %q: leave the resource out, or name a verb of its own", t)
		}
	}
}

// fragment finds the resources that contain the fragment of a set. Not each of them need have a field with one of the verbs.
func (c *check) fragment(spec *v1alpha1.UncoveredPermissionSetSpec, resources []v1alpha1.ResourceRule) {
	if !slices.Contains(v1alpha1.Fragments(), spec.Fragment) {
		c.report(false, "/spec/fragment", "fragment %q does not exist: use one of %q", spec.Fragment, v1alpha1.Fragments())
	} else if len(spec.Resources) > 0 {
		c.report(false, "/spec/fragment", "the set names resources too: leave out one of the two")
	}
	for _, rule := range resources[len(spec.Resources):] {
		if t, known := c.target(runtimeschema.GroupResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}, ""); known {
			c.targets = append(c.targets, t)
		}
	}
}

// allFit reports whether every verb guards a field of some resource. If one does not, the author must correct that first.
func (c *check) allFit() bool {
	for _, v := range c.verbs {
		if !slices.ContainsFunc(c.targets, func(t *target) bool { return c.fit(t, v) == fits }) {
			return false
		}
	}
	return true
}

// rule finds the resources of one rule. A rule names every combination of its groups and resources. Not every combination need exist, but
// each group and each resource must exist in one.
func (c *check) rule(rule *v1alpha1.ResourceRule, at string, named map[*target]string) {
	used := map[string]bool{}
	for j, name := range rule.Resources {
		pointer := fmt.Sprintf("%s/resources/%d", at, j)
		resource, subresource, _ := strings.Cut(name, "/")
		if subresource == "*" {
			c.report(false, pointer, "resource %q is the notation of webhook rules: write %q, which stands for its subresources too", name, resource)
			subresource = ""
		}
		found := false
		for _, group := range rule.APIGroups {
			in := func(r runtimeschema.GroupResource) bool {
				return (group == "*" || r.Group == group) && (resource == "*" || r.Resource == resource)
			}
			targets := c.everything(in, subresource)
			if group == "*" || resource == "*" {
				c.wild = true
			}
			for _, t := range targets {
				c.targets = append(c.targets, t)
				if group != "*" && resource != "*" {
					named[t] = pointer
				}
			}
			if len(targets) > 0 {
				found, used[group] = true, true
			}
		}
		if !found {
			c.missing(rule, resource, subresource, pointer)
		}
	}
	for j, group := range rule.APIGroups {
		if group != "*" && !used[group] && len(used) > 0 {
			c.unused(group, fmt.Sprintf("%s/apiGroups/%d", at, j))
		}
	}
}

// unused reports a group that has none of the resources of its rule.
func (c *check) unused(group, pointer string) {
	if c.groups[group] || builtIn(group) || !strings.Contains(group, ".") {
		c.report(false, pointer, "group %q has none of the resources of this rule: %s", group, c.groupCure(group))
		return
	}
	c.open = true
	c.report(true, pointer, "group %q is not known: install its definitions first, or correct the name", group)
}

func (c *check) groupCure(group string) string {
	if near := spelling.Nearest(group, slices.Sorted(maps.Keys(c.groups))); near != "" && near != group {
		return fmt.Sprintf("write %q, or leave it out", near)
	}
	return "leave it out"
}

// missing reports a resource that is in none of the groups of its rule.
func (c *check) missing(rule *v1alpha1.ResourceRule, resource, subresource, pointer string) {
	var siblings, groups []string
	closed := true
	for r := range c.kinds {
		if slices.Contains(rule.APIGroups, r.Group) || slices.Contains(rule.APIGroups, "*") {
			siblings = append(siblings, r.Resource)
		}
		if r.Resource == resource {
			groups = append(groups, r.Group)
		}
	}
	slices.Sort(siblings)
	slices.Sort(groups)
	for _, group := range rule.APIGroups {
		if !builtIn(group) || endpoint.BuiltIn(group, resource) {
			closed = false
		}
	}
	switch near := spelling.Nearest(resource, siblings); {
	case slices.Contains(siblings, resource) && subresource != "":
		c.report(false, pointer, "resource %q has no subresource %q: correct it, or name %q, which stands for its subresources too", resource, subresource, resource)
	case len(groups) > 0:
		c.report(false, pointer, "resource %q is not in the groups of this rule: it is in group %q", resource, groups[0])
	case near != "" && !endpointKnows(rule.APIGroups, resource):
		c.report(false, pointer, "resource %q does not exist: write %q", resource, near)
	case resource == "*" && slices.ContainsFunc(rule.APIGroups, func(g string) bool { return !strings.Contains(g, ".") && !builtIn(g) }):
		c.report(false, pointer, "no group %q has a resource: %s", rule.APIGroups[0], c.groupCure(rule.APIGroups[0]))
	case subresource != "" && len(siblings) > 0:
		c.report(false, pointer, "no resource has a subresource %q: correct it", subresource)
	case closed && resource != "*":
		c.report(false, pointer, "resource %q does not exist in group %q: correct the name", resource, rule.APIGroups[0])
	default:
		c.open = true
		c.report(true, pointer, "resource %q of group %q is not known: install its definition first, or correct the name", resource, rule.APIGroups[0])
	}
}

func endpointKnows(groups []string, resource string) bool {
	return slices.ContainsFunc(groups, func(group string) bool { return endpoint.BuiltIn(group, resource) })
}

// verb reports a verb that guards no field of any of the resources.
func (c *check) verb(v verbs.Verb, pointer string) {
	if v.Name() == verbs.Creation().Name() {
		c.report(false, pointer, "verb %q is that of the existence of an object, and guards no field: refuse creations with a ConditionalPolicy of effect Deny for create", v)
		return
	}
	best := noField
	for _, t := range c.targets {
		if t.failed {
			return // Its verbs are not known; the kind's own fault says why.
		}
		best = max(best, c.fit(t, v))
	}
	parameter, _ := v.Parameter()
	prefix, _, _ := strings.Cut(parameter, "/")
	switch best {
	case fits:
	case noSuchParameter:
		c.report(false, pointer, "verb %q can never be asked for: its parameter is the part before the first \"/\": write %q", v, v.WithoutParameter().String()+"("+prefix+")")
	case noParameter:
		c.report(false, pointer, "verb %q never has a parameter: write %q", v, v.WithoutParameter())
	case freeField:
		c.report(false, pointer, "verb %q guards only fields that the API server writes, or that identify the object: they are never charged; name another verb", v)
	case noField:
		c.unguarding(v, pointer)
	}
}

// unguarding reports a verb that guards no field of the resources.
func (c *check) unguarding(v verbs.Verb, pointer string) {
	near := spelling.Nearest(v.Name(), c.names(c.targets))
	switch {
	case c.open || c.wild && near == "":
		c.report(true, pointer, "verb %q guards no field of any known kind: correct its name, or install the kind first", v)
	case strings.Contains(v.Name(), "/"):
		// The document that gives it may be in the same kubectl apply.
		cure := "apply the document that gives it, or correct its name"
		if near != "" {
			cure += fmt.Sprintf(": the nearest verb that guards one is %q", verbs.Prefix+near)
		}
		c.report(true, pointer, "verb %q guards no field of %s yet, so that it is no barrier: %s", v, c.described(), cure)
	case near != "":
		c.report(false, pointer, "verb %q guards no field of %s: the nearest verb that does is %q", v, c.described(), verbs.Prefix+near)
	default:
		cure := "docs/reference/kinds.md has the verbs of each kind"
		elsewhere := slices.DeleteFunc(c.everything(func(runtimeschema.GroupResource) bool { return true }, ""), func(t *target) bool { return c.fit(t, v) != fits })
		if len(elsewhere) > 0 {
			cure = "it guards fields of " + listed(elsewhere)
		}
		c.report(false, pointer, "verb %q guards no field of %s: %s", v, c.described(), cure)
	}
}

// described returns the names of the resources, or a summary if there are too many.
func (c *check) described() string {
	if c.wild {
		return "any known kind"
	}
	return listed(c.targets)
}

// listed returns the names of the first few resources.
func listed(targets []*target) string {
	var out []string
	for _, t := range targets[:min(len(targets), 3)] {
		out = append(out, fmt.Sprintf("%q", t))
	}
	if len(targets) > 3 {
		out = append(out, "…")
	}
	return strings.Join(out, ", ")
}
