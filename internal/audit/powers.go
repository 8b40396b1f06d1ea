package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

func labelsOf(role *keptRole) labels.Set { return labels.Set(role.labels) }

// powerful is a verb with powers on a resource.
type powerful struct {
	verb string
	on   Resource
}

// powers applies the rule power-held-by-many.
func (j *joint) powers(report func(Finding)) {
	holders := map[powerful]map[subject]bool{}
	if j.Namespace != "" {
		holders = nil // The subjects of other namespaces are not known.
	}
	for _, of := range j.subjects {
		for i := range j.rights[of] {
			r := &j.rights[of][i]
			if j.Namespace != "" && r.scope != j.Namespace {
				continue
			}
			all := map[string]bool{}
			j.eachPowerful(r, func(_ string, p powerful, powers []schema.Power) {
				if of.isEverybody() {
					all[fmt.Sprintf("%s on %s (%s)", p.verb, p.on, textOf(powers))] = true
				}
				if holders != nil {
					if holders[p] == nil {
						holders[p] = map[subject]bool{}
					}
					holders[p][of] = true
				}
			})
			if len(all) > 0 {
				report(r.binding.at(Finding{
					Rule: powerOfMany, Level: Error, Object: r.binding.Ref, Path: fmt.Sprintf("subjects[%d]", r.at), About: of.String(),
					Message: fmt.Sprintf("every user of %s holds %s", of, listTexts(slices.Sorted(maps.Keys(all)))),
					Cure:    "bind the role to the subjects that need it",
				}))
			}
		}
	}
	j.many(holders, report)
}

// many reports the roles with a verb with powers that too many subjects hold, by these or other roles.
func (j *joint) many(holders map[powerful]map[subject]bool, report func(Finding)) {
	seen := map[Ref]bool{}
	for i := range j.bindings {
		role := j.roles[j.bindings[i].role]
		if role == nil || seen[role.Ref] || role.aggregated {
			continue
		}
		seen[role.Ref] = true
		most, first := 0, ""
		texts := map[string]bool{}
		j.eachPowerful(&right{role: role}, func(path string, p powerful, powers []schema.Power) {
			if n := len(holders[p]); n > j.Many {
				most, texts[fmt.Sprintf("%s on %s (%s)", p.verb, p.on, textOf(powers))] = max(most, n), true
				if first == "" {
					first = path
				}
			}
		})
		if most > 0 {
			report(role.at(Finding{
				Rule: powerOfMany, Level: Warning, Object: role.Ref, Path: first, About: "many",
				Message: fmt.Sprintf("%d subjects hold %s", most, listTexts(slices.Sorted(maps.Keys(texts)))),
				Cure:    "bind the role to the subjects that need it, or grant a narrower verb",
			}))
		}
	}
}

// eachPowerful calls f for each verb with powers that a right grants by its name.
func (j *joint) eachPowerful(r *right, f func(path string, p powerful, powers []schema.Power)) {
	r.role.eachVerb(func(rule *keptRule, path, _ string, v verbs.Verb, is about) {
		switch is {
		case granular:
			for _, t := range j.useful(v, rule, r.scope) {
				if powers := j.Known.powers(v, t.Resource); len(powers) > 0 {
					f(path, powerful{v.WithoutParameter().String(), t.Resource}, powers)
				}
			}
		case marker, foreign, invalid, misspelt:
		}
	})
}

// powers returns the powers of a verb on a resource. On a wildcard these are the ones that it has anywhere.
func (k *Known) powers(v verbs.Verb, r Resource) []schema.Power {
	if !r.wildcard() {
		if w := k.of(r); w != nil && w.verbs[v.Name()] != nil {
			return w.verbs[v.Name()].powers
		}
		return nil
	}
	var out []schema.Power
	for _, p := range schema.AllPowers() {
		if slices.ContainsFunc(k.all()[v.Name()], func(at Resource) bool {
			return (r.Group == "*" || r.Group == at.Group) && slices.Contains(k.powers(v, at), p)
		}) {
			out = append(out, p)
		}
	}
	return out
}

func textOf(powers []schema.Power) string {
	var out []string
	for _, p := range schema.AllPowers() {
		if slices.Contains(powers, p) {
			out = append(out, string(p))
		}
	}
	return strings.Join(out, ", ")
}
