package uncovered

import (
	"slices"
	"strings"
	"testing"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// rules returns rules for "group/resource", and for "deletions of group/resource".
func rules(names ...string) []webhooks.Rule {
	var out []webhooks.Rule
	for _, name := range names {
		operations := webhooks.Writes
		if of, rest, ok := strings.Cut(name, " of "); ok {
			operations, name = webhooks.Operations(of), rest
		}
		group, resource, _ := strings.Cut(name, "/")
		out = append(out, operations.On([]v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}})...)
	}
	return out
}

func names(list []webhooks.Rule) []string {
	var out []string
	for _, rule := range list {
		for _, resource := range rule.Resources {
			name := rule.APIGroups[0] + "/" + resource
			if rule.Operations != webhooks.Writes {
				name = string(rule.Operations) + " of " + name
			}
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// replica is a plan that writes to a shared list.
type replica struct {
	plan
	needed []string
	failed map[runtimeschema.GroupResource]bool
	unread map[string]bool
}

func (r *replica) turn(live []string, at time.Duration) []string {
	before := rules(live...)
	next := r.next(rules(r.needed...), before, r.failed, r.unread, time.Unix(0, 0).Add(at))
	if out := names(next); !slices.Equal(out, live) {
		r.written(before, next)
		return out
	}
	return live
}

func newReplica(needed ...string) *replica {
	return &replica{plan: plan{removeAfter: time.Minute, removed: map[place]bool{}}, needed: needed}
}

func want(t *testing.T, when string, got []string, names ...string) {
	t.Helper()
	if !slices.Equal(got, names) {
		t.Errorf("%s: rules are %q, want %q", when, got, names)
	}
}

func TestW2_PlanAddsAtOnceAndRemovesLate(t *testing.T) {
	r := newReplica("apps/deployments", "apps/deployments/scale")
	live := r.turn([]string{"/pods", "apps/deployments"}, 0)
	want(t, "at once", live, "/pods", "apps/deployments", "apps/deployments/scale")
	want(t, "before its time", r.turn(live, 59*time.Second), live...)
	live = r.turn(live, time.Minute)
	want(t, "after", live, "apps/deployments", "apps/deployments/scale")
}

func TestW2_PlanCountsFromTheLastUse(t *testing.T) {
	r := newReplica("/pods")
	live := r.turn([]string{"/pods", "/secrets"}, 0)
	r.needed = []string{"/pods", "/secrets"}
	live = r.turn(live, 30*time.Second)
	r.needed = []string{"/pods"}
	live = r.turn(live, 50*time.Second)
	want(t, "50 s", r.turn(live, 100*time.Second), "/pods", "/secrets")
	want(t, "110 s", r.turn(live, 110*time.Second), "/pods")
}

func TestW2_PlanWildcards(t *testing.T) {
	r := newReplica("apps/*")
	want(t, "widened", r.turn([]string{"apps/deployments"}, 0), "apps/*")
	r.needed = []string{"apps/deployments"}
	want(t, "kept wide", r.turn([]string{"apps/*"}, 0), "apps/*")
	want(t, "narrowed", r.turn([]string{"apps/*"}, time.Minute), "apps/deployments")
	r.needed = []string{"*/*/*"}
	want(t, "everything", r.turn([]string{"apps/deployments", "/pods"}, time.Minute), "*/*/*")
}

// The rules for deletions of a resource come and go by themselves.
func TestW2_PlanKeepsOperationsApart(t *testing.T) {
	r := newReplica("/pods", "deletions of /pods")
	live := r.turn([]string{"/pods"}, 0)
	want(t, "added", live, "/pods", "deletions of /pods")
	r.needed = []string{"deletions of /pods"}
	live = r.turn(live, 0)
	want(t, "writes before their time", live, "/pods", "deletions of /pods")
	live = r.turn(live, time.Minute)
	want(t, "writes after it", live, "deletions of /pods")
	// Another replica needs them: this one does not remove them again, and nothing of it keeps deletions.
	live = r.turn([]string{"/pods", "deletions of /pods"}, 2*time.Minute)
	want(t, "writes again", r.turn(live, time.Hour), "/pods", "deletions of /pods")
	r.needed = []string{"/pods"}
	live = r.turn(r.turn(live, 2*time.Hour), 3*time.Hour)
	want(t, "no deletions", live, "/pods")
}

// A replica that is behind undoes nothing while it catches up.
func TestW2_PlanOfAReplicaThatIsBehind(t *testing.T) {
	ahead, behind := newReplica("/pods", "/secrets"), newReplica("/pods", "/configmaps")
	live := []string{"/configmaps", "/pods"}
	var writes int
	for at := time.Duration(0); at < 10*time.Minute; at += time.Second {
		if at == 30*time.Second {
			behind.needed = ahead.needed
		}
		for _, r := range []*replica{ahead, behind} {
			next := r.turn(live, at)
			if !slices.Equal(next, live) {
				writes++
			}
			live = next
			if !slices.Contains(live, "/secrets") || !slices.Contains(live, "/pods") {
				t.Fatalf("%s: a rule that is needed is gone: %q", at, live)
			}
		}
	}
	want(t, "in the end", live, "/pods", "/secrets")
	if writes != 2 {
		t.Errorf("%d writes, want one that adds and one that removes", writes)
	}
}

// Replicas that disagree permanently end with all rules that any of them needs.
func TestW2_PlanOfReplicasThatDisagree(t *testing.T) {
	a, b := newReplica("/pods", "/secrets"), newReplica("/pods", "/configmaps")
	live, writes := []string{}, 0
	for at := time.Duration(0); at < time.Hour; at += time.Second {
		for _, r := range []*replica{a, b} {
			next := r.turn(live, at)
			if !slices.Equal(next, live) {
				writes++
			}
			live = next
		}
		if at == 10*time.Minute {
			writes = 0
		}
	}
	want(t, "in the end", live, "/configmaps", "/pods", "/secrets")
	if writes != 0 {
		t.Errorf("%d writes after all was settled", writes)
	}
	a.needed, b.needed = []string{"/pods"}, []string{"/pods"}
	for at := time.Hour; at < time.Hour+2*time.Minute; at += time.Second {
		live = b.turn(a.turn(live, at), at)
	}
	want(t, "when they agree", live, "/pods")
}

// The barriers of a kind that does not compile are unknown.
func TestW2_PlanKeepsTheRulesOfAKindThatFails(t *testing.T) {
	r := newReplica("/pods")
	r.failed = map[runtimeschema.GroupResource]bool{{Group: "example.com", Resource: "widgets"}: true}
	live := []string{"/pods", "example.com/widgets", "example.com/widgets/status"}
	r.turn(live, 0)
	want(t, "failed", r.turn(live, time.Hour), live...)
	r.failed = nil
	want(t, "compiles again", r.turn(live, time.Hour), "/pods")
}

// TestW2_PlanKeepsTheRulesOfAGroupThatWasNotRead: fieldperm restarts while an aggregated API server is down. Its barriers hold when it is back.
func TestW2_PlanKeepsTheRulesOfAGroupThatWasNotRead(t *testing.T) {
	r := newReplica("/pods")
	r.unread = map[string]bool{"brewery.example.com": true}
	live := r.turn([]string{"/pods", "apps/deployments", "brewery.example.com/kegs"}, 0)
	live = r.turn(live, time.Hour)
	want(t, "down", live, "/pods", "brewery.example.com/kegs")
	r.unread, r.needed = nil, []string{"/pods", "brewery.example.com/kegs"}
	want(t, "back", r.turn(live, 2*time.Hour), "/pods", "brewery.example.com/kegs")
	r.needed = []string{"/pods"}
	live = r.turn(live, 2*time.Hour)
	want(t, "without the barrier", r.turn(live, 3*time.Hour), "/pods")
}

func TestPlurals(t *testing.T) {
	mouse := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Mouse"}
	got := Plurals([]compile.Topology{{}, {Plurals: map[runtimeschema.GroupVersionKind]string{mouse: "mice"}}})
	if len(got) != 1 || got[mouse.GroupKind()] != "mice" {
		t.Errorf("plurals are %v", got)
	}
}
