package webhooks

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Union returns rules that match everything that any of the lists matches: one rule for the operations and each group, sorted, so that
// equal content gives equal rules.
func Union(lists ...[]Rule) []Rule {
	return collect(lists...).list()
}

// Subtract returns rules for everything that the first list matches and the second does not.
func Subtract(list, by []Rule) []Rule {
	covering, out := collect(by), operationRules{}
	for operations, of := range collect(list) {
		for group, names := range of {
			for name := range names {
				if !covering[operations].covers(group, name) {
					out.of(operations).add(group, name)
				}
			}
		}
	}
	return out.list()
}

func collect(lists ...[]Rule) operationRules {
	r := operationRules{}
	for _, list := range lists {
		for _, rule := range list {
			for _, group := range rule.APIGroups {
				r.of(rule.Operations).add(group, rule.Resources...)
			}
		}
	}
	return r
}

// operationRules has the resources of each kind of operations.
type operationRules map[Operations]rules

// of returns the resources of the operations, to add to.
func (r operationRules) of(operations Operations) rules {
	if r[operations] == nil {
		r[operations] = rules{}
	}
	return r[operations]
}

func (r operationRules) list() []Rule {
	var out []Rule
	for _, operations := range everyOperations {
		out = append(out, operations.On(r[operations].list())...)
	}
	return out
}

// covers reports whether the rules match everything that a rule for the group and the name matches.
func (r rules) covers(group, name string) bool {
	for _, g := range []string{group, "*"} {
		if r[g][name] || covered(r[g], name) {
			return true
		}
	}
	return false
}

// rules maps API groups to resources.
type rules map[string]map[string]bool

func (r rules) add(group string, resources ...string) {
	if r[group] == nil {
		r[group] = map[string]bool{}
	}
	for _, resource := range resources {
		r[group][resource] = true
	}
}

// list returns one rule for each group, sorted. It leaves out names that a wildcard already covers, because the API server refuses some
// of them.
func (r rules) list() []v1alpha1.ResourceRule {
	every := r["*"]
	var out []v1alpha1.ResourceRule
	for _, group := range slices.SortedFunc(maps.Keys(r), cmp.Compare) {
		var names []string
		for name := range r[group] {
			if !covered(r[group], name) && (group == "*" || !every[name] && !covered(every, name)) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if len(names) > 0 {
			out = append(out, v1alpha1.ResourceRule{APIGroups: []string{group}, Resources: names})
		}
	}
	return out
}

// covered reports whether another name with a wildcard includes name. In webhook rules "*" means every resource without its subresources.
func covered(names map[string]bool, name string) bool {
	resource, subresource, isSubresource := strings.Cut(name, "/")
	if !isSubresource {
		return name != "*" && names["*"] || names["*/*"]
	}
	return name != "*/*" && names["*/*"] ||
		resource != "*" && names["*/"+subresource] ||
		subresource != "*" && names[resource+"/*"]
}
