package needs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// holder holds verbs, is denied those of denies, and counts how often each verb is asked for.
type holder struct {
	verbs, denies []string
	asked         map[string]int
}

func (h *holder) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	h.asked[verb]++
	if slices.Contains(h.denies, verb) {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, By: "freeze"}, nil
	}
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h.verbs, verb))}, nil
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":%s}`

// question is about a write of a Deployment; before is "" for one that is created.
func questionOf(t *testing.T, h *holder, before, after string) Question {
	t.Helper()
	s := schematest.Schema(t)
	h.asked = map[string]int{}
	kind := metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	request := &admissionv1.AdmissionRequest{
		Kind: kind, Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Name: "web", Namespace: "shop",
		Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: "alice"},
		Object: runtime.RawExtension{Raw: fmt.Appendf(nil, deployment, after)},
	}
	q := Question{Request: request, Enter: []string{"patch"}, Reviewer: admission.Reviewer{
		Schema:     func() *schema.Schema { return s },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return h },
		Limits:     fieldperm.Limits{MaxChecks: fieldperm.DefaultMaxChecks, Parallel: 1},
	}}
	if before == "" {
		request.Operation, q.Enter = admissionv1.Create, []string{"create"}
	} else {
		request.OldObject.Raw = fmt.Appendf(nil, deployment, before)
	}
	return q
}

const (
	small = `{"replicas":1,"template":{"spec":{"containers":[{"name":"web","image":"a"}]}}}`
	large = `{"replicas":2,"paused":true,"template":{"spec":{"containers":[{"name":"web","image":"b"}]}}}`
)

func TestFind(t *testing.T) {
	for _, test := range []struct {
		name          string
		holds, denies []string
		before, after string
		allowed       bool
		ask           []string
		// held are the held verbs of the entry and the changes.
		held string
		// reason is a part of the reason why no role is enough.
		reason string
	}{
		{
			name: "a user without verbs asks for all in one round", before: small, after: large,
			ask: []string{"granular", "granular:image(web)", "granular:scale", "granular:suspension"}, held: ",,,",
		},
		{
			name: "held verbs are not asked for", holds: []string{"granular", "granular:scale"}, before: small, after: large,
			ask: []string{"granular:image(web)", "granular:suspension"}, held: "granular,,granular:scale,",
		},
		{
			name: "a general verb counts", holds: []string{"granular", "granular:specification"}, before: small, after: large, allowed: true,
			held: "granular,granular:specification,granular:specification,granular:specification",
		},
		{name: "patch is enough", holds: []string{"patch"}, before: small, after: large, allowed: true, held: "patch,patch,patch,patch"},
		{
			name: "update without patch does not let a patch in", holds: []string{"update"}, before: small, after: large,
			ask: []string{"granular"}, held: ",update,update,update",
		},
		{
			name: "granular verbs without the marker cover nothing", holds: []string{"granular:*"}, before: small, after: large,
			ask: []string{"granular"}, held: ",granular:*,granular:*,granular:*",
		},
		{
			name: "a verb that an authorizer denies is not asked for", denies: []string{"granular:scale"}, holds: []string{"granular"},
			before: `{"replicas":1}`, after: `{"replicas":2}`, ask: []string{"granular:specification"}, held: "granular,",
		},
		{
			name: "a change whose verbs are all denied has no role", denies: []string{"granular:scale", "granular:specification", "granular:*"}, holds: []string{"granular"},
			before: `{"replicas":1}`, after: `{"replicas":2}`, held: "granular,", reason: "an authorizer denies each verb",
		},
		{
			name: "a denied marker has no role", denies: []string{"granular"}, before: `{"replicas":1}`, after: `{"replicas":2}`,
			ask: []string{"granular:scale"}, held: ",", reason: "an authorizer denies granular",
		},
		{
			name: "a new object needs the verb of each field", holds: []string{"granular"}, after: `{"replicas":3,"paused":true}`,
			ask: []string{"granular:creation", "granular:scale", "granular:suspension"}, held: "granular,,,",
		},
		{name: "create is enough", holds: []string{"create"}, after: large, allowed: true, held: "create,create,create,create,create"},
		{name: "update does not create", holds: []string{"update", "patch"}, after: `{"replicas":3}`, ask: []string{"granular", "granular:creation", "granular:scale"}, held: ",,"},
		{name: "nothing changes", before: small, after: small, ask: []string{"granular"}, held: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := &holder{verbs: append(slices.Clone(test.holds), "get"), denies: test.denies}
			q := questionOf(t, h, test.before, test.after)
			got, err := Find(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			held := []string{}
			for _, e := range got.Entries {
				held = append(held, e.Held)
			}
			for _, c := range got.Changes {
				held = append(held, c.Held)
			}
			if got.Allowed != test.allowed || !slices.Equal(got.Ask, test.ask) || strings.Join(held, ",") != test.held {
				t.Errorf("allowed %t, ask %q, held %q\nwant %t, %q, %q", got.Allowed, got.Ask, strings.Join(held, ","), test.allowed, test.ask, test.held)
			}
			if reasons := strings.Join(got.Uncured, "\n"); got.Enough != (test.reason == "") || !strings.Contains(reasons, test.reason) {
				t.Errorf("enough %t, reasons %q, want one with %q", got.Enough, reasons, test.reason)
			}
			for verb, n := range h.asked {
				// Once for authorization and once for admission.
				if n > 2 {
					t.Errorf("%s is asked for %d times", verb, n)
				}
			}
			if !got.Enough || test.allowed {
				return
			}
			proveEnough(t, h, q, got)
		})
	}
}

// proveEnough checks that a user with the verbs to ask for may make the write, and that a user that lacks any one of them may not.
func proveEnough(t *testing.T, h *holder, q Question, got *Answer) {
	t.Helper()
	before := h.verbs
	for i := range len(got.Ask) + 1 {
		h.verbs = append(slices.Clone(before), got.Ask...)
		if i > 0 {
			h.verbs = slices.DeleteFunc(h.verbs, func(verb string) bool { return verb == got.Ask[i-1] })
		}
		again, err := Find(t.Context(), q)
		if err != nil || again.Allowed != (i == 0) {
			t.Errorf("with %q the write is allowed %t, %v", h.verbs, again.Allowed, err)
		}
	}
}

// TestA7_FindAsksForGetBesideTheMarker: without it the marker lets nobody in to an update, and a creation needs none.
func TestA7_FindAsksForGetBesideTheMarker(t *testing.T) {
	const one, two = `{"replicas":1}`, `{"replicas":2}`
	for _, c := range []struct {
		holds  []string
		before string
		ask    []string
	}{
		{[]string{"granular", "granular:scale"}, one, []string{"get"}},
		{[]string{"granular"}, one, []string{"get", "granular:scale"}},
		{nil, one, []string{"get", "granular", "granular:scale"}},
		{[]string{"update", "patch"}, one, nil},
		{[]string{"granular"}, "", []string{"granular:creation", "granular:scale"}},
	} {
		h := &holder{verbs: c.holds}
		q := questionOf(t, h, c.before, two)
		got, err := Find(t.Context(), q)
		if err != nil || !slices.Equal(got.Ask, c.ask) || !got.Enough || got.Allowed != (c.ask == nil) {
			t.Errorf("%q: %+v, %v, want %q", c.holds, got, err, c.ask)
			continue
		}
		if !got.Allowed {
			proveEnough(t, h, q, got)
		}
	}
}

// TestFindAsksForAGeneralVerbWhereChecksEnd: a request that needs more checks than a webhook makes is refused, although each verb is held (P3).
func TestFindAsksForAGeneralVerbWhereChecksEnd(t *testing.T) {
	var labels []string
	var held []string
	for i := range 40 {
		labels = append(labels, fmt.Sprintf(`{"name":"c%d","image":"a"}`, i))
		held = append(held, fmt.Sprintf("granular:container(c%d)", i))
	}
	h := &holder{verbs: append(held, "granular", "get")}
	q := questionOf(t, h, `{"replicas":1,"template":{"spec":{"containers":[]}}}`, `{"replicas":1,"template":{"spec":{"containers":[`+strings.Join(labels, ",")+`]}}}`)
	got, err := Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Allowed || !got.Enough || len(got.Ask) != 1 || strings.Contains(got.Ask[0], "(") {
		t.Fatalf("allowed %t, enough %t, ask %q, want one general verb", got.Allowed, got.Enough, got.Ask)
	}
	proveEnough(t, h, q, got)
}

// TestFindAsksForNothingRedundant: where checks end, the general verb takes the place of the specific ones.
func TestFindAsksForNothingRedundant(t *testing.T) {
	var containers []string
	for i := range 40 {
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"a"}`, i))
	}
	h := &holder{verbs: []string{"granular", "get"}}
	q := questionOf(t, h, `{"template":{"spec":{"containers":[]}}}`, `{"template":{"spec":{"containers":[`+strings.Join(containers, ",")+`]}}}`)
	got, err := Find(t.Context(), q)
	if err != nil || !got.Enough || len(got.Ask) != 1 {
		t.Fatalf("got %+v, %v, want one verb to ask for", got.Ask, err)
	}
	proveEnough(t, h, q, got)
}

// failing fails for one verb.
type failing struct {
	holder
	verb string
}

func (f *failing) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	if verb == f.verb {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion, Failure: fmt.Errorf("authorizer does not answer: %s", verb)}, nil
	}
	return f.holder.Authorize(ctx, verb, generic)
}

// TestFindDoesNotGuessWhereAnAuthorizerFails: a failure is neither a yes nor a no (P4).
func TestFindDoesNotGuessWhereAnAuthorizerFails(t *testing.T) {
	for _, f := range []*failing{
		{holder: holder{verbs: []string{"granular", "get"}}, verb: "granular:scale"},
		{holder: holder{verbs: []string{"granular", "granular:scale"}}, verb: "get"},
		// The decision does not ask for patch, and authorization does.
		{holder: holder{verbs: []string{"update"}}, verb: "patch"},
	} {
		q := questionOf(t, &f.holder, `{"replicas":1}`, `{"replicas":2}`)
		q.Reviewer.Authorizer = func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return f }
		if got, err := Find(t.Context(), q); err == nil || !strings.Contains(err.Error(), "does not answer: "+f.verb) {
			t.Errorf("%s: got %+v, %v", f.verb, got, err)
		}
	}
}

// TestFindAsksAuthorizationWithoutTheName: a POST has no name, so that a rule with resourceNames does not let it in.
func TestFindAsksAuthorizationWithoutTheName(t *testing.T) {
	h := &holder{verbs: []string{"create"}}
	q := questionOf(t, h, "", `{"replicas":3}`)
	nobody := &holder{asked: map[string]int{}}
	q.Unnamed = true
	q.Reviewer.Authorizer = func(request *admissionv1.AdmissionRequest) fieldperm.Authorizer {
		if request.Name == "" {
			return nobody
		}
		return h
	}
	got, err := Find(t.Context(), q)
	if err != nil || got.Allowed || !slices.Equal(got.Ask, []string{"granular"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
