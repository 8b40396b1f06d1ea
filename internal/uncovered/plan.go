package uncovered

import (
	"reflect"
	"strings"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// plan decides the rules of the webhook. Every replica of fieldperm decides alone, from its own schemas. A replica may be behind or
// have other schema files. These rules prevent replicas from undoing each other's changes and from removing a rule that a barrier
// needs:
//
//   - A missing rule is added at once. A rule too many only costs time: fieldperm is called and allows
//     the request.
//   - A rule that this replica does not need is removed when that has been so for removeAfter without
//     a break. A replica that can read and write is never behind for that long.
//   - If a rule that this replica removed appears again, another replica needs it. This replica does not
//     remove it again until its own rules change. Replicas that disagree permanently end with all rules
//     that any of them needs, after each has removed any rule at most once.
//   - A kind that does not compile has unknown barriers, and keeps its rules. So does a group of another server whose document could not
//     be read: while the server is down its kinds are not known, and its barriers must hold when it is back.
//   - Nothing that a newer version of fieldperm wrote is removed (widened).
//
// All replicas write the same object for the same rules, so if two write at the same time, the second changes nothing. plan is not
// safe for concurrent use.
type plan struct {
	removeAfter time.Duration

	// needed are the rules of the last call.
	needed []webhooks.Rule
	// idle is the time since when this replica does not need a rule.
	idle map[place]time.Time
	// removed are the rules that were removed since needed changed.
	removed map[place]bool
}

// place is what a rule for one resource matches.
type place struct {
	operations      webhooks.Operations
	group, resource string
}

// placeOf returns the place of one resource of a rule with one group.
func placeOf(rule *webhooks.Rule, resource string) place {
	return place{rule.Operations, rule.APIGroups[0], resource}
}

// next returns the rules that must be in the API server. failed are the resources of the kinds that did not compile, unread the groups whose
// kinds are not known.
func (p *plan) next(needed, live []webhooks.Rule, failed map[runtimeschema.GroupResource]bool, unread map[string]bool, now time.Time) []webhooks.Rule {
	if !reflect.DeepEqual(needed, p.needed) {
		p.needed, p.removed = needed, map[place]bool{}
	}
	idle := map[place]time.Time{}
	var keep []webhooks.Rule
	for _, rule := range webhooks.Subtract(live, needed) {
		for _, resource := range rule.Resources {
			at := placeOf(&rule, resource)
			since, known := p.idle[at]
			if !known {
				since = now
			}
			idle[at] = since
			base, _, _ := strings.Cut(resource, "/")
			if now.Sub(since) < p.removeAfter || p.removed[at] || unread[at.group] || failed[runtimeschema.GroupResource{Group: at.group, Resource: base}] {
				keep = append(keep, at.operations.On([]v1alpha1.ResourceRule{{APIGroups: []string{at.group}, Resources: []string{resource}}})...)
			}
		}
	}
	p.idle = idle
	return webhooks.Union(needed, keep)
}

// interrupted records that the API server could not be read, which is a break: this replica may have been behind since then.
func (p *plan) interrupted() { p.idle = nil }

// written records that next replaced live.
func (p *plan) written(live, next []webhooks.Rule) {
	for _, rule := range webhooks.Subtract(live, next) {
		for _, resource := range rule.Resources {
			p.removed[placeOf(&rule, resource)] = true
		}
	}
}
