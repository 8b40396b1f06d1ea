package uncovered

import (
	"reflect"
	"strings"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators"
)

// plan decides what the rules are to be. Every replica of fieldperm does so by itself, from its own
// schemas, and one may be behind or have other schema files. What keeps them from undoing each
// other's work, and from taking away a rule that a barrier needs:
//
//   - A rule that is missing is added at once. Too many rules only cost time: fieldperm is asked and
//     has nothing to say.
//   - A rule that this replica has no use for is taken away when that has been so for removeAfter
//     without a break, which is longer than a replica that can write at all may be behind.
//   - What this replica has taken away and finds again, another replica needs, so it does not take
//     it away again until its own rules change. Replicas that disagree for good come to rest at all
//     that any of them needs, after each has taken away any rule once at the most.
//   - A kind that does not compile has unknown barriers, and keeps the rules that it has.
//   - Of what a newer version of fieldperm wrote nothing is taken away (widened).
//
// All of them write the same object for the same rules, so of two that write at the same time the
// second changes nothing. plan is not safe for concurrent use.
type plan struct {
	removeAfter time.Duration

	// needed are the rules of the last call.
	needed []v1alpha1.ResourceRule
	// idle tells since when a rule has had no use here.
	idle map[place]time.Time
	// removed were taken away since needed changed.
	removed map[place]bool
}

// place is a group and a resource of a rule.
type place struct{ group, resource string }

// next returns the rules that are to be in the API server. failed are the resources of the kinds that
// did not compile.
func (p *plan) next(needed, live []v1alpha1.ResourceRule, failed map[runtimeschema.GroupResource]bool, now time.Time) []v1alpha1.ResourceRule {
	if !reflect.DeepEqual(needed, p.needed) {
		p.needed, p.removed = needed, map[place]bool{}
	}
	idle := map[place]time.Time{}
	var keep []v1alpha1.ResourceRule
	for _, rule := range generators.Subtract(live, needed) {
		for _, resource := range rule.Resources {
			at := place{rule.APIGroups[0], resource}
			since, known := p.idle[at]
			if !known {
				since = now
			}
			idle[at] = since
			base, _, _ := strings.Cut(resource, "/")
			if now.Sub(since) < p.removeAfter || p.removed[at] || failed[runtimeschema.GroupResource{Group: at.group, Resource: base}] {
				keep = append(keep, v1alpha1.ResourceRule{APIGroups: []string{at.group}, Resources: []string{resource}})
			}
		}
	}
	p.idle = idle
	return generators.Union(needed, keep)
}

// written notes that next was put in the place of live.
func (p *plan) written(live, next []v1alpha1.ResourceRule) {
	for _, rule := range generators.Subtract(live, next) {
		for _, resource := range rule.Resources {
			p.removed[place{rule.APIGroups[0], resource}] = true
		}
	}
}
