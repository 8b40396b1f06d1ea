//go:build integration

package rbac

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/test/cluster"
)

var (
	rounds = flag.Int("rounds", 12, "how many sets of random grants the API server and Live are compared on; with -short a quarter")
	asks   = flag.Int("questions", 1500, "how many questions are asked about each")
	seed   = flag.Uint64("seed", 0, "where the random grants and questions begin; 0: somewhere")
)

// TestKEP3221_LiveAnswersAsKubeAPIServer: for every question, Live has the same decision and the same reason as the RBAC authorizer
// of a real kube-apiserver. There, chance decides which of several bindings a reason names, and the order of missing roles. For
// these the test accepts every possible reason.
func TestKEP3221_LiveAnswersAsKubeAPIServer(t *testing.T) {
	p := newPair(t)
	seed := *seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: -args -seed=%d", seed)
	t.Run("bootstrap", func(t *testing.T) { testBootstrap(t, p, newSource(seed)) })
	t.Run("random", func(t *testing.T) { testRandom(t, p, newSource(seed+1)) })
	t.Run("aggregation", func(t *testing.T) { testAggregation(t, p, newSource(seed+2)) })
	t.Run("restart", func(t *testing.T) { testRestart(t, p) })
}

// compare asks both authorizers.
func (p *pair) compare(t *testing.T, g Grants, questions []authorizer.AttributesRecord) {
	t.Helper()
	if err := p.live.Ready(); err != nil {
		t.Fatal(err)
	}
	var allowed, missing, faults atomic.Int32
	requests := make([]func(context.Context) error, len(questions))
	for i, q := range questions {
		requests[i] = func(ctx context.Context) error {
			want := answers(g, q)
			if slices.Contains(q.User.GetGroups(), user.SystemPrivilegedGroup) {
				want = possible{allowed: []string{""}}
			}
			if len(want.allowed) > 0 {
				allowed.Add(1)
			} else if len(want.missing) > 0 {
				missing.Add(1)
			}
			for server, ask := range map[string]func(context.Context, authorizer.AttributesRecord) (authorizer.Decision, string, error){
				"kube-apiserver": p.ask,
				"Live": func(ctx context.Context, q authorizer.AttributesRecord) (authorizer.Decision, string, error) {
					return p.chain.Authorize(ctx, q)
				},
			} {
				decision, reason, err := ask(ctx, q)
				if decision == authorizer.DecisionNoOpinion {
					// In a chain, the reason has the name of the authorizer as a prefix.
					reason = strings.TrimPrefix(reason, "rbac: ")
				}
				if fault := want.fault(decision, reason, err); fault != "" && faults.Add(1) <= 20 {
					t.Errorf("%s: %s: %s", server, show(q), fault)
				}
			}
			return nil
		}
	}
	p.do(t, requests...)
	t.Logf("%d questions: %d allowed, %d about missing roles, %d differences; %d bindings", len(questions), allowed.Load(), missing.Load(), faults.Load(), len(g.ClusterRoleBindings)+len(g.RoleBindings))
	if int(allowed.Load()) < len(questions)/20 {
		t.Errorf("only %d of %d questions are allowed: the test sees too little", allowed.Load(), len(questions))
	}
}

func testRandom(t *testing.T, p *pair, s source) {
	var mine Grants
	sets := *rounds
	if testing.Short() {
		sets = (sets + 3) / 4
	}
	for round := range sets {
		added := s.grants(fmt.Sprintf("r%d", round), 30, mine)
		var requests []func(context.Context) error
		for _, object := range mine.objects() {
			if o := s.change(object); o != nil {
				requests = append(requests, p.update(o))
			} else if s.IntN(s.keep(object)) == 0 {
				requests = append(requests, p.remove(object))
			}
		}
		for _, object := range added.objects() {
			requests = append(requests, p.create(object))
		}
		s.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		p.do(t, requests...)
		p.settle(t)

		all := p.stored(t)
		mine = all.only(func(name string) bool { return strings.Contains(name, " r") })
		questions := make([]authorizer.AttributesRecord, *asks)
		for i := range questions {
			questions[i] = s.question(mine)
		}
		p.compare(t, all, questions)
	}
}

// keep returns n: one of n objects is deleted in a round. Roles are deleted less often; otherwise most bindings would have no role.
func (s source) keep(object runtime.Object) int {
	if bindingOf(object).role == nil {
		return 20
	}
	return 4
}

// change returns the object with other rules or subjects, or nil if it must not change.
func (s source) change(object runtime.Object) runtime.Object {
	if s.IntN(4) > 0 {
		return nil
	}
	object = object.DeepCopyObject()
	switch o := object.(type) {
	case *rbacv1.Role:
		o.Rules = s.rules(false)
	case *rbacv1.ClusterRole:
		o.Rules = s.rules(true)
	case *rbacv1.RoleBinding:
		o.Subjects = s.subjects(false)
	case *rbacv1.ClusterRoleBinding:
		o.Subjects = s.subjects(true)
	}
	return object
}

// only returns the objects whose names meant accepts.
func (g Grants) only(meant func(name string) bool) Grants {
	g.Roles = slices.DeleteFunc(slices.Clone(g.Roles), func(o rbacv1.Role) bool { return !meant(o.Name) })
	g.ClusterRoles = slices.DeleteFunc(slices.Clone(g.ClusterRoles), func(o rbacv1.ClusterRole) bool { return !meant(o.Name) })
	g.RoleBindings = slices.DeleteFunc(slices.Clone(g.RoleBindings), func(o rbacv1.RoleBinding) bool { return !meant(o.Name) })
	g.ClusterRoleBindings = slices.DeleteFunc(slices.Clone(g.ClusterRoleBindings), func(o rbacv1.ClusterRoleBinding) bool { return !meant(o.Name) })
	return g
}

// testBootstrap asks about every subject in the bootstrap policy: all that its own roles grant, and a part of what other subjects
// are granted.
func testBootstrap(t *testing.T, p *pair, s source) {
	p.settle(t)
	g := p.stored(t)
	var questions []authorizer.AttributesRecord
	subjects := 0
	for _, object := range append(pointers(g.ClusterRoleBindings), pointers(g.RoleBindings)...) {
		b := bindingOf(object)
		for _, subject := range b.subjects {
			subjects++
			for _, member := range []user.Info{identity(subject, b.namespace), Authenticated(identity(subject, b.namespace))} {
				for _, rule := range rulesOf(g, b) {
					q := authorizer.AttributesRecord{User: member, Namespace: b.namespace}
					s.within(&q, rule)
					questions = append(questions, q)
					s.miss(&q)
					questions = append(questions, q)
				}
			}
			for range 25 {
				role := g.ClusterRoles[s.IntN(len(g.ClusterRoles))]
				q := authorizer.AttributesRecord{User: identity(subject, b.namespace), Namespace: s.of([]string{"", "kube-system", "kube-public", "shop"})}
				if len(role.Rules) > 0 {
					s.within(&q, role.Rules[s.IntN(len(role.Rules))])
				}
				questions = append(questions, q)
			}
		}
	}
	if subjects < 40 {
		t.Errorf("the bootstrap policy binds %d subjects: it has not all been made yet", subjects)
	}
	p.compare(t, g, questions)
}

func pointers[T any](items []T) []any {
	out := make([]any, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// identity returns the subject as a user, without the groups that authentication adds.
func identity(subject rbacv1.Subject, namespace string) user.Info {
	switch subject.Kind {
	case rbacv1.GroupKind:
		return &user.DefaultInfo{Name: "member", Groups: []string{subject.Name}}
	case rbacv1.ServiceAccountKind:
		home := accountNamespace(&subject, namespace)
		return &user.DefaultInfo{Name: serviceaccount.MakeUsername(home, subject.Name), Groups: serviceaccount.MakeGroupNames(home)}
	}
	return &user.DefaultInfo{Name: subject.Name}
}

// testAggregation takes the place of the controller that fills aggregated roles, because the control plane runs without
// controllers. Before that, an aggregated role grants nothing; afterwards it grants what aggregate returns.
func testAggregation(t *testing.T, p *pair, s source) {
	g := s.grants("aggregation", 30, Grants{})
	g.Roles, g.RoleBindings = nil, nil
	for i := range g.ClusterRoles {
		r := &g.ClusterRoles[i]
		r.Labels = map[string]string{"part": fmt.Sprint(s.IntN(4)), "team": s.of([]string{"red", "blue"})}
		if i%3 > 0 {
			continue
		}
		r.Rules, r.AggregationRule = nil, &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{"part": fmt.Sprint(s.IntN(4))}},
			{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "part", Operator: metav1.LabelSelectorOpIn, Values: []string{"0"}}, {Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"red"}}}},
		}}
		g.ClusterRoleBindings = append(g.ClusterRoleBindings, *clusterRoleBinding(fmt.Sprintf("aggregated %d", i), r.Name, fmt.Sprintf("aggregated-%d", i)))
	}
	var creates []func(context.Context) error
	for _, object := range g.objects() {
		creates = append(creates, p.create(object))
	}
	p.do(t, creates...)
	p.settle(t)

	rules, err := aggregate(g.ClusterRoles)
	if err != nil {
		t.Fatal(err)
	}
	var questions []authorizer.AttributesRecord
	granted := 0
	for i := 0; i < len(g.ClusterRoles); i += 3 {
		for _, rule := range rules[g.ClusterRoles[i].Name] {
			q := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: fmt.Sprintf("aggregated-%d", i)}}
			s.within(&q, rule)
			questions = append(questions, q)
			granted++
			decision, reason, err := p.chain.Authorize(context.Background(), q)
			if decision != authorizer.DecisionNoOpinion || reason != "" || err != nil {
				t.Errorf("not yet filled: %s: got %v %q %v", show(q), decision, reason, err)
			}
		}
	}
	for range *asks / 4 {
		questions = append(questions, s.question(g))
	}
	t.Logf("%d questions about %d roles that aggregate", granted, (len(g.ClusterRoles)+2)/3)
	p.compare(t, p.stored(t), questions)

	var updates []func(context.Context) error
	for i := 0; i < len(g.ClusterRoles); i += 3 {
		filled := g.ClusterRoles[i].DeepCopy()
		filled.Rules = rules[filled.Name]
		updates = append(updates, p.update(filled))
	}
	p.do(t, updates...)
	p.settle(t)
	p.compare(t, p.stored(t), questions)

	// With files, aggregation is computed, and the result must equal the cluster's after the controller has run. The other bindings
	// may be to system:authenticated, which a review does not add.
	g.ClusterRoleBindings = slices.DeleteFunc(g.ClusterRoleBindings, func(b rbacv1.ClusterRoleBinding) bool { return !strings.HasPrefix(b.Name, "aggregated ") })
	fromFiles, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions[:granted] {
		decision, reason, err := fromFiles.Authorize(context.Background(), q)
		serverDecision, serverReason, serverErr := p.ask(context.Background(), q)
		if decision != serverDecision || reason != serverReason || err != nil || serverErr != nil {
			t.Errorf("%s: from files %v %q %v, kube-apiserver %v %q %v", show(q), decision, reason, err, serverDecision, serverReason, serverErr)
		}
	}
}

// testRestart: while an API server is down, Live answers during the grace, and returns errors after it. When the API server is
// back, its changes have effect.
func testRestart(t *testing.T, p *pair) {
	p.do(t, p.create(clusterRole("restart", "*")), p.create(clusterRoleBinding("restart", "restart", "restarter")))
	p.settle(t)
	if !holds(t, p.live, "restarter", "granular:scale", "shop") {
		t.Fatal("not allowed at first")
	}
	if err := p.cluster.Shutdown(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	for _, i := range p.live.informers {
		await(t, i.resource, func() bool { return lostWatch(i) })
	}
	p.clock.Step(grace)
	if !holds(t, p.live, "restarter", "granular:scale", "shop") {
		t.Error("not allowed within the grace")
	}
	p.clock.Step(time.Second)
	requireError(t, p.live, "have not been watched for 31s")
	if err := p.cluster.Boot(context.Background(), cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	p.do(t, p.remove(clusterRoleBinding("restart", "", "")))
	await(t, "ready", func() bool { return p.live.Ready() == nil })
	await(t, "no longer allowed", func() bool { return !holds(t, p.live, "restarter", "granular:scale", "shop") })
	p.settle(t)
}
