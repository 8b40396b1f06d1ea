package tighten

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/verbs"
)

// alsoSource names Options.Also in the sources of a Use.
const alsoSource = "--also"

// Also is a verb that a subject needs and that no evidence has.
type Also struct {
	Resource Resource
	Verb     string
}

// ParseAlso reads RESOURCE=VERB: deployments/status.apps=granular:condition(Progressing).
func ParseAlso(text string) (Also, error) {
	fault := func(what string) (Also, error) {
		return Also{}, fmt.Errorf("--also %q %s: write RESOURCE=VERB, as in deployments/status.apps=granular:condition(Progressing)", text, what)
	}
	resource, verb, ok := strings.Cut(text, "=")
	r, err := ParseResource(resource)
	if !ok || err != nil {
		return fault("has no resource")
	}
	if _, err := verbs.Parse(verb); err != nil || verb == verbs.Marker {
		return fault(fmt.Sprintf("has no granular verb %q", verb))
	}
	return Also{r, verb}, nil
}

// ParseResource reads a resource as String writes it: deployments/status.apps.
func ParseResource(text string) (Resource, error) {
	name, group, _ := strings.Cut(text, ".")
	if main, sub, found := strings.Cut(name, "/"); main == "" || found && sub == "" || strings.ContainsAny(text, "*, =") {
		return Resource{}, fmt.Errorf("%q is no resource: write it as deployments.apps or deployments/status.apps", text)
	}
	return Resource{group, name}, nil
}

// String returns the verb as ParseAlso takes it.
func (a Also) String() string { return a.Resource.String() + "=" + a.Verb }

// also adds the verbs of the options to the evidence. They are for the namespaces and the objects of the evidence of their resource.
func (p *Proposal) also(evidence *Evidence, options *Options) {
	for _, a := range options.Also {
		if why := p.pointless(a.Resource, options); why != "" {
			p.Pointless = append(p.Pointless, fmt.Sprintf("%s: %s", a, why))
			continue
		}
		w := evidence.written(a.Resource)
		if w == nil {
			continue // There is no space, which is a gap.
		}
		like := w.Verbs[verbs.Marker]
		if like == nil {
			// The namespaces and the objects of its writes are not known.
			like = &Use{MoreNamespaces: true, MoreNames: true}
			if u := evidence.use(w, verbs.Marker); u != nil {
				u.Sources, u.MoreNamespaces, u.MoreNames = []string{alsoSource}, true, true
			}
		}
		if w.Verbs[a.Verb] != nil {
			continue
		}
		if u := evidence.use(w, a.Verb); u != nil {
			u.Sources = []string{alsoSource}
			maps.Copy(u.Namespaces, like.Namespaces)
			maps.Copy(u.Names, like.Names)
			u.MoreNamespaces, u.MoreNames = like.MoreNamespaces, like.MoreNames
		}
	}
}

// pointless says why a verb of a resource cannot take the place of update and patch, "" if it can.
func (p *Proposal) pointless(r Resource, options *Options) string {
	if options.Decides(r) != DecidesYes {
		return "fieldperm does not decide on writes of the resource"
	}
	if !slices.ContainsFunc(p.before, func(g Grant) bool {
		return g.Group == "" && slices.ContainsFunc(g.writes(), func(rule rbacv1.PolicyRule) bool { return matches(&rule, r) })
	}) {
		return "the subject itself holds no update and no patch on the resource"
	}
	return ""
}
