package tighten

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/fieldperm/fieldperm/verbs"
)

// place is where granular verbs are granted: a namespace or "" for all, a resource, and the names of objects, joined, "" for all.
type place struct {
	scope    string
	resource Resource
	names    string
}

// granting collects the granular verbs of a proposal.
type granting struct {
	subject  Subject
	options  *Options
	evidence *Evidence
	grants   []Grant
	// verbs of each place.
	verbs map[place]map[string]bool
	// missing are verbs that no update or patch covers, and those that may pass a barrier.
	missing []string
}

// collect finds the verbs of each place. A write is covered by a grant with update or patch in its namespace.
func (g *granting) collect() error {
	for _, r := range g.evidence.sorted() {
		if g.options.Decides(r) != DecidesYes {
			continue
		}
		w := g.evidence.Resources[r]
		for _, verb := range slices.Sorted(maps.Keys(w.Verbs)) {
			if err := g.use(r, verb, w.Verbs[verb]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *granting) use(r Resource, verb string, u *Use) error {
	var rules []scoped
	for i := range g.grants {
		grant := &g.grants[i]
		for _, rule := range grant.writes() {
			if !matches(&rule, r) {
				continue
			}
			rules = append(rules, scoped{grant.Scope, rule.ResourceNames})
			if grant.Group != "" {
				continue
			}
			for _, at := range g.resources(grant.Scope, r, &rule) {
				if g.barred(grant.Scope, at, rule.ResourceNames, verb) && !g.options.AllowNew {
					continue
				}
				if err := g.grant(grant.Scope, at, rule.ResourceNames, verb, u); err != nil {
					return err
				}
			}
		}
	}
	for _, o := range u.uncovered(rules) {
		if g.holds(o.Namespace, r, verb) {
			continue
		}
		where := "in namespace " + o.Namespace
		if o.Namespace == "" {
			where = "without a namespace"
		}
		if o.Name != "" {
			where += ", such as " + o.Name
		}
		g.missing = append(g.missing, fmt.Sprintf("%s on %s %s", verb, r, where))
		if g.options.AllowNew {
			g.put(place{o.Namespace, r, ""}, verb)
		}
	}
	return nil
}

// barred reports whether a verb may pass a barrier that the subject does not pass now, and lists it.
func (g *granting) barred(scope string, r Resource, names []string, verb string) bool {
	h := &holding{rules: heldIn(g.grants, scope), barriers: g.options.Barriers}
	one := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{r.Group}, Resources: []string{r.Name}, ResourceNames: names}
	for _, single := range validation.BreakdownRule(one) {
		if ok, passed := h.covers(single); !ok && len(passed) > 0 {
			if text := describe(&one, scope) + passes(passed); !slices.Contains(g.missing, text) {
				g.missing = append(g.missing, text)
			}
			return true
		}
	}
	return false
}

// resources returns where verbs of a resource are granted for a rule with update or patch: on the resource or, if the rule is about "*", and
// if that is asked for, on "*".
func (g *granting) resources(scope string, r Resource, rule *rbacv1.PolicyRule) []Resource {
	if g.options.Resources != HeldReach {
		return []Resource{r}
	}
	wide := widest(rule, r)
	if slices.ContainsFunc(g.grants, func(grant Grant) bool {
		return grant.Group == "" && (grant.Scope == "" || grant.Scope == scope) && slices.ContainsFunc(grant.writes(), func(other rbacv1.PolicyRule) bool {
			return len(other.ResourceNames) == 0 && matches(&other, r) && specific(widest(&other, r)) > specific(wide)
		})
	}) {
		// The verbs of a resource that another rule names are no verbs of all resources.
		return nil
	}
	return []Resource{wide}
}

// specific orders resources with and without "*".
func specific(r Resource) int {
	n := 0
	if r.Group != rbacv1.APIGroupAll {
		n++
	}
	switch {
	case r.Name == rbacv1.ResourceAll:
	case strings.HasPrefix(r.Name, "*/"):
		n += 2
	default:
		n += 4
	}
	return n
}

// widest returns the resource as a rule that matches it names it: with "*" for the group or the name that the rule does not name itself.
func widest(rule *rbacv1.PolicyRule, r Resource) Resource {
	if !slices.Contains(rule.APIGroups, r.Group) {
		r.Group = rbacv1.APIGroupAll
	}
	if slices.Contains(rule.Resources, r.Name) {
		return r
	}
	if _, subresource := r.Split(); subresource != "" && slices.Contains(rule.Resources, "*/"+subresource) {
		r.Name = "*/" + subresource
	} else {
		r.Name = rbacv1.ResourceAll
	}
	return r
}

// scoped is where a rule with update or patch holds: a namespace or "" for all, and names or none for all.
type scoped struct {
	scope string
	names []string
}

func (s *scoped) covers(o Object) bool {
	return (s.scope == "" || s.scope == o.Namespace) && (len(s.names) == 0 || o.Name == "" || slices.Contains(s.names, o.Name))
}

// uncovered returns for each namespace with an object that no rule covers one of them, as far as objects are known.
func (u *Use) uncovered(rules []scoped) []Object {
	out := map[string]Object{}
	look := func(o Object) {
		if !slices.ContainsFunc(rules, func(s scoped) bool { return s.covers(o) }) {
			if had, ok := out[o.Namespace]; !ok || o.Name != "" && (had.Name == "" || o.Name < had.Name) {
				out[o.Namespace] = o
			}
		}
	}
	for namespace := range u.Namespaces {
		look(Object{Namespace: namespace})
	}
	if u.Namespaces[u.Example.Namespace] {
		look(u.Example)
	}
	for o := range u.Names {
		look(o)
	}
	return slices.SortedFunc(maps.Values(out), func(a, b Object) int { return strings.Compare(a.Namespace, b.Namespace) })
}

// holds reports whether a rule grants a granular verb already.
func (g *granting) holds(namespace string, r Resource, verb string) bool {
	return slices.ContainsFunc(g.grants, func(grant Grant) bool {
		return (grant.Scope == "" || grant.Scope == namespace) && slices.ContainsFunc(grant.Rules, func(rule rbacv1.PolicyRule) bool {
			return matches(&rule, r) && len(rule.ResourceNames) == 0 && grantsGranular(rule.Verbs, verb)
		})
	})
}

// grantsGranular reports whether verbs of a rule cover what a granular verb covers.
func grantsGranular(held []string, verb string) bool {
	if slices.Contains(held, verb) || slices.Contains(held, rbacv1.VerbAll) {
		return true
	}
	if verb == verbs.Marker {
		return false
	}
	name, _, parameter := strings.Cut(verb, "(")
	return slices.Contains(held, verbs.All().String()) || parameter && slices.Contains(held, name)
}

// grant adds a verb within the scope and the names of one rule with update or patch.
func (g *granting) grant(scope string, r Resource, names []string, verb string, u *Use) error {
	scopes := []string{scope}
	if g.options.Namespaces == Seen {
		switch {
		case scope != "" && !u.Namespaces[scope] && u.MoreNamespaces, scope == "" && u.MoreNamespaces:
			return fmt.Errorf("--namespaces seen: the evidence has not all namespaces in which %s is used on %s: use an audit log, or --namespaces held", verb, r)
		case scope != "" && !u.Namespaces[scope]:
			return nil
		case scope == "":
			scopes = slices.Sorted(maps.Keys(u.Namespaces))
		}
	}
	for _, namespace := range scopes {
		within := names
		if g.options.Names == Seen {
			if u.MoreNames {
				return fmt.Errorf("--names seen: the evidence has not all objects on which %s is used of %s: use audit logs only, or --names held", verb, r)
			}
			within = seenNames(u, scope, namespace, names)
			if len(within) == 0 {
				continue
			}
		}
		g.put(place{namespace, r, strings.Join(slices.Sorted(slices.Values(within)), "\x00")}, verb)
	}
	return nil
}

// seenNames returns the names of written objects in a namespace, "" for all of a grant of all, among those of a rule.
func seenNames(u *Use, scope, namespace string, names []string) []string {
	found := map[string]bool{}
	for o := range u.Names {
		if (o.Namespace == namespace || scope == "" && namespace == "") && (len(names) == 0 || slices.Contains(names, o.Name)) {
			found[o.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (g *granting) put(at place, verb string) {
	if g.verbs[at] == nil {
		g.verbs[at] = map[string]bool{verbs.Marker: true}
	}
	g.verbs[at][verb] = true
}

// keep adds the granular verbs that the subject itself holds by the roles of an earlier proposal, which have this name: the union over all
// windows is proposed. A role of this name that others made adds only what the subject holds anyway.
func (g *granting) keep(name string) {
	for i := range g.grants {
		grant := &g.grants[i]
		if grant.Role.Name != name || grant.Group != "" {
			continue
		}
		for _, rule := range grant.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					at := place{grant.Scope, Resource{group, resource}, strings.Join(slices.Sorted(slices.Values(rule.ResourceNames)), "\x00")}
					for _, verb := range rule.Verbs {
						if _, err := verbs.Parse(verb); err == nil {
							g.put(at, verb)
						}
					}
				}
			}
		}
	}
}

// rules returns the rules of each scope. What a rule for all namespaces grants is left out of the others, and what a rule for all names
// grants out of those for some.
func (g *granting) rules() map[string][]rbacv1.PolicyRule {
	type body struct{ scope, group, names, verbs string }
	resources := map[body][]string{}
	for at, held := range g.verbs {
		var own []string
		for verb := range held {
			if !g.wider(at, verb) && !implied(held, verb) {
				own = append(own, verb)
			}
		}
		if len(own) == 0 || len(held) == 1 && g.marked(at) {
			continue
		}
		slices.Sort(own)
		if own[0] != verbs.Marker {
			own = slices.Insert(own, 0, verbs.Marker)
		}
		// Without get the marker lets nobody in to update or patch (A7).
		own = slices.Insert(own, 0, getVerb)
		b := body{at.scope, at.resource.Group, at.names, strings.Join(own, "\x00")}
		resources[b] = append(resources[b], at.resource.Name)
	}
	out := map[string][]rbacv1.PolicyRule{}
	for b, names := range resources {
		slices.Sort(names)
		rule := rbacv1.PolicyRule{APIGroups: []string{b.group}, Resources: names, Verbs: strings.Split(b.verbs, "\x00")}
		if b.names != "" {
			rule.ResourceNames = strings.Split(b.names, "\x00")
		}
		out[b.scope] = append(out[b.scope], rule)
	}
	for _, rules := range out {
		slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
			return strings.Compare(ruleKey(&a), ruleKey(&b))
		})
	}
	return out
}

// implied reports whether another verb of a place covers all that a verb does: the verb without its parameter, or granular:*.
func implied(held map[string]bool, verb string) bool {
	if verb == verbs.Marker || verb == verbs.All().String() {
		return false
	}
	name, _, parameter := strings.Cut(verb, "(")
	return held[verbs.All().String()] || parameter && held[name]
}

func (g *granting) wider(at place, verb string) bool {
	return at.scope != "" && (g.verbs[place{"", at.resource, at.names}][verb] || g.verbs[place{"", at.resource, ""}][verb]) ||
		at.names != "" && g.verbs[place{at.scope, at.resource, ""}][verb]
}

// marked reports whether other places grant the marker on each name of a place.
func (g *granting) marked(at place) bool {
	if at.names == "" {
		return false
	}
	for _, name := range strings.Split(at.names, "\x00") {
		found := false
		for other := range g.verbs {
			found = found || other != at && other.scope == at.scope && other.resource == at.resource && len(g.verbs[other]) > 1 && slices.Contains(strings.Split(other.names, "\x00"), name)
		}
		if !found {
			return false
		}
	}
	return true
}

func ruleKey(r *rbacv1.PolicyRule) string {
	return strings.Join([]string{strings.Join(r.APIGroups, " "), strings.Join(r.Resources, " "), strings.Join(r.ResourceNames, " "), strings.Join(r.Verbs, " ")}, "\x00")
}
