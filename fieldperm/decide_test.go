package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// grants is an authorizer that allows a fixed set of verbs and remembers what it was asked.
type grants struct {
	mu      sync.Mutex
	allowed map[string]string
	fails   string
	asked   []string
	blocks  chan struct{}
}

func holds(verbs ...string) *grants {
	g := &grants{allowed: map[string]string{}}
	for _, v := range verbs {
		g.allowed[v] = "RBAC: allowed"
	}
	return g
}

var errBroken = errors.New("authorizer is broken")

func (g *grants) Authorize(ctx context.Context, verb string, generic bool) (AuthorizerDecision, error) {
	g.mu.Lock()
	g.asked = append(g.asked, verb)
	g.mu.Unlock()
	if generic != !strings.HasPrefix(verb, verbs.Marker) {
		return AuthorizerDecision{}, fmt.Errorf("verb %q asked with generic %v", verb, generic)
	}
	if verb == g.fails {
		return AuthorizerDecision{}, errBroken
	}
	if g.blocks != nil && verb == "granular:blocks" {
		<-ctx.Done()
		close(g.blocks)
		return AuthorizerDecision{}, ctx.Err()
	}
	reason, ok := g.allowed[verb]
	return AuthorizerDecision{Outcome: OutcomeOf(ok), Reason: reason}, nil
}

// need makes a requirement from verbs without "granular:"; "|" stands for the barrier before the next.
func need(path string, chain ...string) Requirement {
	r := Requirement{Path: fieldpath.Path{}.Field(path), Operation: Modified, Barrier: -1}
	for _, name := range chain {
		if name == "|" {
			r.Barrier = len(r.Chain)
			continue
		}
		v, err := verbs.Parse(verbs.Prefix + name)
		if err != nil {
			panic(err)
		}
		r.Chain = append(r.Chain, v)
	}
	return r
}

var update = []string{"update", "patch"}

func decideWith(t *testing.T, g *grants, limits Limits, rs ...Requirement) Decision {
	t.Helper()
	d, err := Decide(context.Background(), g, Review{Generic: update, Requirements: rs}, limits)
	if err != nil {
		t.Fatal(err)
	}
	if d.Allowed != (d.Denial == nil) {
		t.Errorf("Allowed is %v with denial %v", d.Allowed, d.Denial)
	}
	return d
}

func TestDecide(t *testing.T) {
	replicas, label, node := need("replicas", "*", "specification", "scale"), need("label", "*", "metadata", "labels", "label(a)"), need("node", "*", "specification", "|", "node")
	for _, c := range []struct {
		rule    string
		holds   []string
		needs   []Requirement
		allowed bool
		mode    Mode
		asked   string
	}{
		{"C1 the generic permission covers", []string{"update"}, []Requirement{replicas, label}, true, ModeGeneric, "update"},
		{"C6 patch counts as generic", []string{"patch"}, []Requirement{replicas}, true, ModeGeneric, "update patch"},
		{"C1 one verb of the chain covers", []string{"granular", "granular:scale"}, []Requirement{replicas}, true, ModeGranular, "update patch granular granular:* granular:specification granular:scale"},
		{"C1 a general verb covers", []string{"granular", "granular:*"}, []Requirement{replicas, label}, true, ModeGranular, "update patch granular granular:*"},
		{"C1 no marker, no entry", []string{"granular:*", "granular:scale"}, []Requirement{replicas}, false, ModeNone, "update patch granular"},
		{"C1 the marker alone grants nothing", []string{"granular"}, []Requirement{replicas}, false, ModeGranular, "update patch granular granular:* granular:specification granular:scale"},
		{"C1 every requirement counts", []string{"granular", "granular:scale"}, []Requirement{replicas, label}, false, ModeGranular, "update patch granular granular:* granular:specification granular:metadata granular:scale granular:labels granular:label(a)"},
		{"C2 the generic permission does not pass a barrier", []string{"update"}, []Requirement{node}, false, ModeUncovered, "update granular:node"},
		{"C2 nor do verbs above it", []string{"granular", "granular:*", "granular:specification"}, []Requirement{node}, false, ModeGranular, "update patch granular granular:node"},
		{"C2 the barrier's verb does, without the marker for a generic user", []string{"update", "granular:node"}, []Requirement{node, replicas}, true, ModeUncovered, "update granular:node"},
		{"C2 a granular user needs the marker", []string{"granular:node"}, []Requirement{node}, false, ModeNone, "update patch granular"},
		{"C2 a barrier that no verb passes", []string{"update", "granular", "granular:*"}, []Requirement{need("x", "*", "|")}, false, ModeUncovered, "update"},
		{"C3 only the root's verb", []string{"granular", "granular:metadata"}, []Requirement{need("x", "*")}, false, ModeGranular, "update patch granular granular:*"},
		{"no change needs entry all the same", nil, nil, false, ModeNone, "update patch granular"},
		{"no change with the marker", []string{"granular"}, nil, true, ModeGranular, "update patch granular"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			g := holds(c.holds...)
			d := decideWith(t, g, Limits{}, c.needs...)
			if d.Allowed != c.allowed || d.Mode != c.mode {
				t.Errorf("allowed %v mode %q, want %v %q", d.Allowed, d.Mode, c.allowed, c.mode)
			}
			if got := strings.Join(g.asked, " "); got != c.asked {
				t.Errorf("asked %q, want %q", got, c.asked)
			}
			for i, check := range d.Checks {
				if check.Verb != g.asked[i] {
					t.Errorf("check %d is %q, asked was %q", i, check.Verb, g.asked[i])
				}
			}
		})
	}
}

func TestP1_AVerbIsAskedOnce(t *testing.T) {
	g := holds("granular", "granular:b", "granular:c")
	decideWith(t, g, Limits{}, need("x", "*", "a", "b"), need("y", "*", "b", "c"), need("z", "*", "a", "c"))
	sorted := slices.Sorted(slices.Values(g.asked))
	if len(slices.Compact(sorted)) != len(g.asked) {
		t.Errorf("asked twice: %q", g.asked)
	}
}

func TestP1_AVerbThatNoRequirementNeedsIsNotChecked(t *testing.T) {
	for parallel := range 2 {
		// often covers the second change too, by a verb further down the chain of that change.
		g := holds("granular", "granular:often", "granular:other")
		d := decideWith(t, g, Limits{Parallel: parallel}, need("a", "often"), need("b", "rare", "often"), need("c", "often"), need("d", "zzz", "other"))
		if got := strings.Join(g.asked, " "); got != "update patch granular granular:often granular:zzz granular:other" || !d.Allowed {
			t.Errorf("allowed %v, asked %q", d.Allowed, got)
		}
	}
}

func TestP1_StopsAtTheFirstMissingRequirement(t *testing.T) {
	g := holds("granular")
	d := decideWith(t, g, Limits{}, need("short", "*", "a"), need("long", "*", "b", "c"), need("other", "*", "d", "e"))
	if got := strings.Join(g.asked, " "); got != "update patch granular granular:* granular:a" {
		t.Errorf("asked %q", got)
	}
	if d.Denial.Field() != ".short" || d.Denial.More != 2 {
		t.Errorf("denial %q and %d more", d.Denial.Field(), d.Denial.More)
	}
}

func TestP1_CancelsChecksInFlight(t *testing.T) {
	g := holds("granular")
	g.blocks = make(chan struct{})
	d := decideWith(t, g, Limits{Parallel: 2}, need("x", "*", "a"), need("y", "*", "blocks", "z"))
	select {
	case <-g.blocks:
	default:
		t.Error("decided, and a check is in flight still")
	}
	if d.Allowed || slices.Contains(g.asked, "granular:z") {
		t.Errorf("allowed %v, asked %q", d.Allowed, g.asked)
	}
}

func TestP1_ParallelAsksTheSame(t *testing.T) {
	rs := []Requirement{need("a", "*", "m", "a"), need("b", "*", "m", "b"), need("c", "*", "s", "c")}
	one, many := holds("granular", "granular:a", "granular:b", "granular:c"), holds("granular", "granular:a", "granular:b", "granular:c")
	first, second := decideWith(t, one, Limits{}, rs...), decideWith(t, many, Limits{Parallel: 8}, rs...)
	if !slices.Equal(first.Checks, second.Checks) || !second.Allowed {
		t.Errorf("checks %v, in parallel %v", first.Checks, second.Checks)
	}
}

func TestP2_OrderWithinALevel(t *testing.T) {
	g := holds("granular", "granular:*")
	g.allowed = map[string]string{"granular": ""}
	_ = decideWith(t, g, Limits{}, need("a", "*", "rare", "x"), need("b", "*", "often", "x"), need("c", "*", "often", "y"))
	if got := strings.Join(g.asked[4:6], " "); got != "granular:often granular:rare" {
		t.Errorf("the verb that covers most is not first: %q", got)
	}
	g = holds("granular")
	_ = decideWith(t, g, Limits{}, need("a", "*", "aaa", "x"), need("b", "*", "bbb"))
	if got := g.asked[4]; got != "granular:bbb" {
		t.Errorf("the verb of the requirement with fewest left is not first: %q", g.asked)
	}
}

func TestP3_Limit(t *testing.T) {
	var rs []Requirement
	g := holds("granular")
	for i := range 40 {
		rs = append(rs, need(fmt.Sprintf("l%d", i), "*", "metadata", "labels", fmt.Sprintf("label(p%d)", i)))
		g.allowed[fmt.Sprintf("granular:label(p%d)", i)] = ""
	}
	d := decideWith(t, g, Limits{}, rs...)
	if d.Allowed || len(d.Checks) != DefaultMaxChecks || len(g.asked) != DefaultMaxChecks {
		t.Errorf("allowed %v after %d checks", d.Allowed, len(d.Checks))
	}
	if m := d.Denial.Message(Subject{Resource: "pods", Name: "p", User: "u", Verb: "update"}); !strings.Contains(m, "more than 32 permission checks: a grant of granular:labels would do") {
		t.Error(m)
	}
	if d := decideWith(t, g, Limits{MaxChecks: 46, Parallel: 7}, rs...); !d.Allowed {
		t.Errorf("46 checks are enough, and it was denied: %+v", d.Denial)
	}
	if d := decideWith(t, g, Limits{MaxChecks: 2}, rs...); d.Allowed || len(d.Checks) != 2 {
		t.Errorf("2 checks: %+v", d)
	}
}

func TestP3_LimitHoldsWithinALevel(t *testing.T) {
	g := holds("granular", "granular:a", "granular:b", "granular:c", "granular:d")
	d := decideWith(t, g, Limits{MaxChecks: 6, Parallel: 8}, need("a", "*", "a"), need("b", "*", "b"), need("c", "*", "c"), need("d", "*", "d"))
	if d.Allowed || len(g.asked) != 6 {
		t.Errorf("allowed %v after %d checks, want a denial after 6: %q", d.Allowed, len(g.asked), g.asked)
	}
}

func TestP4_AnErrorIsNoDenialAndNeverAllows(t *testing.T) {
	for _, fails := range []string{"update", "patch", "granular", "granular:*", "granular:specification", "granular:scale"} {
		for parallel := range 3 {
			g := holds("granular", "granular:scale")
			g.fails = fails
			d, err := Decide(context.Background(), g, Review{Generic: update, Requirements: []Requirement{need("x", "*", "specification", "scale")}}, Limits{Parallel: parallel})
			if !errors.Is(err, errBroken) || d.Allowed || d.Denial != nil {
				t.Errorf("%s fails: %+v, %v", fails, d, err)
			}
		}
	}
}

func TestP4_AnErrorAmongParallelChecksIsNoDenial(t *testing.T) {
	for _, fails := range []string{"granular:a", "granular:b"} {
		g := holds("granular", "granular:a", "granular:b")
		g.fails = fails
		d, err := Decide(context.Background(), g, Review{Generic: update, Requirements: []Requirement{need("a", "*", "a"), need("b", "*", "b")}}, Limits{Parallel: 2})
		if !errors.Is(err, errBroken) || d.Allowed || d.Denial != nil {
			t.Errorf("%s fails: %+v, %v", fails, d, err)
		}
	}
}

func TestA4_OurOwnAllowNeverCountsAsGeneric(t *testing.T) {
	g := holds()
	g.allowed["update"] = "granular: user holds the marker"
	if d := decideWith(t, g, Limits{}, need("x", "*", "scale")); d.Allowed || d.Mode != ModeNone {
		t.Errorf("allowed %v by mode %q", d.Allowed, d.Mode)
	}
}

func TestUncoveredOnlyLooksAtBarriersAlone(t *testing.T) {
	rs := []Requirement{need("free", "*", "specification"), need("node", "*", "specification", "|", "node")}
	g := holds("granular:node")
	d, err := Decide(context.Background(), g, Review{Requirements: rs, UncoveredOnly: true}, Limits{})
	if err != nil || !d.Allowed || strings.Join(g.asked, " ") != "granular:node" || d.Mode != ModeUncovered {
		t.Errorf("%+v, %v, asked %q", d, err, g.asked)
	}
	g = holds("update", "granular:*")
	if d, err = Decide(context.Background(), g, Review{Requirements: rs, UncoveredOnly: true}, Limits{}); err != nil || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestP5_Message(t *testing.T) {
	s := Subject{Resource: "deployments.apps", Name: "web", User: "alice", Verb: "update"}
	d := decideWith(t, holds("granular"), Limits{}, need("replicas", "*", "specification", "scale"), need("x", "*", "specification", "template", "y"))
	const want = `deployments.apps "web" is forbidden: User "alice" may not change .replicas: needs any one of granular:scale, granular:specification, granular:* (1 more change was not looked at)`
	if got := d.Denial.Message(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d = decideWith(t, holds(), Limits{}, need("replicas", "*", "scale"))
	if got := d.Denial.Message(s); !strings.HasPrefix(got, `deployments.apps "web" is forbidden: User "alice" may not update it: needs update or patch, or granular`) {
		t.Error(got)
	}
	s.Verb = "create"
	created := need("", "*", "creation")
	created.Path, created.Operation = fieldpath.Path{}, Created
	d = decideWith(t, holds("granular", "granular:scale"), Limits{}, created, need("replicas", "*", "scale"))
	if got := d.Denial.Message(s); got != `deployments.apps "web" is forbidden: User "alice" may not create it: needs any one of granular:creation, granular:* (1 more change was not looked at)` {
		t.Error(got)
	}
	s.Name = strings.Repeat("n", 10<<10)
	if got := d.Denial.Message(s); len(got) > 1000 {
		t.Errorf("a name of 10 KB makes a message of %d bytes", len(got))
	}
}

func TestZeroDecisionDenies(t *testing.T) {
	var d Decision
	var a AuthorizerDecision
	if d.Allowed || a.Allowed() || a.AllowsGeneric() {
		t.Error("a zero value allows")
	}
}

// The program's own authorizer converts its decision into an Outcome.
func TestOutcome_HasTheValuesOfAPIServers(t *testing.T) {
	for of, want := range map[authorizer.Decision]Outcome{authorizer.DecisionDeny: Deny, authorizer.DecisionAllow: Allow, authorizer.DecisionNoOpinion: NoOpinion} {
		if Outcome(of) != want {
			t.Errorf("%v converts into %v, want %v", of, Outcome(of), want)
		}
	}
}
