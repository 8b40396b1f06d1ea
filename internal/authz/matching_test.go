package authz

import (
	"fmt"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// matching are the match conditions that KEP-3221 wants measured. Each excludes the question, so that no round trip is measured.
var matching = []struct {
	name       string
	conditions []string
}{
	{"namespace", []string{"request.resourceAttributes.namespace == 'kube-system'"}},
	{"group and resource", []string{"request.resourceAttributes.group == 'apiextensions.k8s.io' && request.resourceAttributes.resource == 'customresourcedefinitions'"}},
	{"resource requests in a namespace", []string{"has(request.resourceAttributes)", "request.resourceAttributes.namespace == 'kube-system'"}},
	{"users", []string{"!(request.user in ['alice', 'bob', 'carol'])"}},
	{"groups", []string{"!('team' in request.groups)"}},
	{"verbs", []string{"!request.resourceAttributes.verb.startsWith('granular') && !(request.resourceAttributes.verb in ['update', 'patch'])"}},
	{"64 conditions", conditions64()},
}

func conditions64() []string {
	out := make([]string, 64)
	for i := range out {
		out[i] = fmt.Sprintf("request.user != 'u%d'", i)
	}
	out[63] = "request.user != 'alice'"
	return out
}

// distinct asks n questions that no cache knows, so that CEL decides each of them.
func distinct(t testing.TB, chain *Chain, n int, next func() bool) {
	requests := make([]*admissionv1.AdmissionRequest, n)
	for i := range requests {
		requests[i] = request()
		requests[i].Name = strconv.Itoa(i)
	}
	for i := 0; next(); i++ {
		answer, err := chain.For(requests[i%n]).Authorize(t.Context(), "update", false)
		if err != nil || answer.Skipped != "hook" {
			t.Fatalf("decision is %+v, %v, want one without the webhook", answer, err)
		}
	}
}

// questions is above cacheSize: a question has left the cache when it comes again.
const questions = 2 * cacheSize

// BenchmarkMatchConditions measures checks that match conditions exclude and no cache answers.
func BenchmarkMatchConditions(b *testing.B) {
	for _, c := range matching {
		b.Run(c.name, func(b *testing.B) {
			chain := excluding(b, c.conditions)
			b.ReportAllocs()
			distinct(b, chain, questions, b.Loop)
		})
	}
}

func excluding(t testing.TB, conditions []string) *Chain {
	p := newPlace(t)
	p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", newRemote(t, allow(""))), conditions: conditions})
	return p.chain(Settings{})
}

// What BenchmarkMatchConditions measures is CEL: each question evaluates the conditions once. A question that comes again soon does not.
func TestKEP3221_BenchmarksOfMatchConditionsRunCEL(t *testing.T) {
	evaluated := func() float64 {
		return max(0, series(gather(t)["apiserver_authorization_match_condition_evaluation_seconds"], "type=Webhook", "name=hook"))
	}
	const n = 50
	times := func(n int) func() bool {
		return func() bool { n--; return n >= 0 }
	}
	for _, c := range matching {
		chain := excluding(t, c.conditions)
		before := evaluated()
		distinct(t, chain, n, times(n))
		if got := evaluated() - before; got != n {
			t.Errorf("%s: conditions are evaluated %v times for %d questions", c.name, got, n)
		}
		distinct(t, chain, n, times(n))
		if got := evaluated() - before; got != n {
			t.Errorf("%s: conditions are evaluated again for questions of the cache: %v times", c.name, got)
		}
	}
	// The questions of the benchmark come again when the cache has dropped them.
	chain := excluding(t, matching[0].conditions)
	before := evaluated()
	distinct(t, chain, questions, times(questions+n))
	if got := evaluated() - before; got != questions+n {
		t.Errorf("conditions are evaluated %v times for %d questions", got, questions+n)
	}
}

// Conditions see a review of v1, also if the webhook gets one of v1beta1, in which groups have another name.
func TestKEP3221_ConditionsSeeV1WhateverIsSent(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		p := newPlace(t)
		r := newRemote(t, allow(""))
		p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), version: version, conditions: []string{"'team' in request.groups && request.resourceAttributes.version == 'v1'"}})
		chain := p.chain(Settings{})
		if answer, err := chain.For(by("alice", "team")).Authorize(t.Context(), "update", false); err != nil || !answer.Allowed() || r.last().APIVersion != "authorization.k8s.io/"+version {
			t.Errorf("%s: %+v, %v, was sent %s", version, answer, err, r.last().APIVersion)
		}
		if answer, err := chain.For(by("alice", "others")).Authorize(t.Context(), "update", false); err != nil || answer.Allowed() || answer.Skipped != "hook" {
			t.Errorf("%s: %+v, %v, want that it is skipped", version, answer, err)
		}
	}
}
