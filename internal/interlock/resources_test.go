package interlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func metav1Now() metav1.Time { return metav1.NewTime(begin()) }

func TestA5_EachResourceOfAnotherServerIsProvenSeparately(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	left := func(t Target) string { return map[bool]string{true: "passes"}[t.Resource == "deployments"] }
	w.apis[1].set(left)
	enforced := func(verb, resource, name string) bool {
		return w.Enforced(t.Context(), asking(verb, elsewhere, resource, name)) == nil
	}
	if !enforced("patch", "configmaps", "web") || !enforced("update", "configmaps", "web") || !enforced("create", "configmaps", "") {
		t.Error("a write to a proven resource is not let through")
	}
	for _, verb := range []string{"patch", "update", "create"} {
		if enforced(verb, "deployments", "web") {
			t.Errorf("%s of a resource that one server leaves out is let through", verb)
		}
	}
	if said := w.reasons(); said[len(said)-1] != string(ReasonResource) {
		t.Errorf("said %q", said)
	}
	// A server that finds the object invalid has not called the webhook.
	w.apis[0].set(func(t Target) string {
		return map[bool]string{true: "spec.size: Required value"}[t.Resource == "difficult"]
	})
	if enforced("patch", "unknown", "web") || enforced("create", "difficult", "") || enforced("patch", "configmaps", "") {
		t.Error("what cannot be proven is let through")
	}
	// Each operation, namespace and subresource needs a proof of its own.
	w.apis[1].set(func(t Target) string {
		return map[bool]string{true: "passes"}[t.Namespace == "bank" || t.Subresource == "status" || t.Resource == "secrets" && t.Operation == admissionv1.Create]
	})
	bank := asking("patch", elsewhere, "configmaps", "web")
	bank.Namespace = "bank"
	status := asking("patch", elsewhere, "configmaps", "web")
	status.Subresource = "status"
	if w.Enforced(t.Context(), bank) == nil || w.Enforced(t.Context(), status) == nil {
		t.Error("a proof counts for another namespace or subresource")
	}
	if !enforced("patch", "secrets", "web") || enforced("create", "secrets", "web") {
		t.Error("a proof counts for another operation")
	}
}

func TestA5_AProofIsForOneVersion(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	// With matchPolicy Exact a rule for v1 does not match the other versions.
	w.apis[1].set(func(t Target) string { return map[bool]string{true: "passes"}[t.Version == "v1beta1"] })
	for _, verb := range []string{"patch", "create"} {
		asked := asking(verb, elsewhere, "deployments", "web")
		if err := w.Enforced(t.Context(), asked); err != nil {
			t.Errorf("%s by the version that is looked at: %v", verb, err)
		}
		asked.Version = "v1beta1"
		if w.Enforced(t.Context(), asked) == nil {
			t.Errorf("%s is let through by a version that the manifest leaves out", verb)
		}
		// No request causes such a review.
		asked.Version = "*"
		if err := w.Enforced(t.Context(), asked); err != nil {
			t.Errorf("%s by no version: %v", verb, err)
		}
	}
}

func TestA5_NoProbeForNamesThatNoObjectCanHave(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	before := w.apis[0].count()
	for _, name := range []string{"../../kube-system/configmaps/a", "..", "a/status", "%2e%2e", strings.Repeat("n", maxSegment+1)} {
		for part, asked := range map[string]*authorizationv1.ResourceAttributes{
			"name":        {Name: name, Version: "v1"},
			"namespace":   {Name: "web", Version: "v1", Namespace: name},
			"version":     {Name: "web", Version: name},
			"subresource": {Name: "web", Version: "v1", Subresource: name},
		} {
			for _, asked.Verb = range []string{"patch", "create"} {
				asked.Group = elsewhere
				if asked.Resource = "secrets"; part == "name" && asked.Verb == "create" {
					continue // the target has none
				}
				if w.Enforced(t.Context(), asked) == nil {
					t.Errorf("%s of %s %.20q is let through", asked.Verb, part, name)
				}
			}
		}
	}
	if sent := w.apis[0].count() - before; sent != 0 || w.Proven() != 0 {
		t.Errorf("%d probes were sent, %d results are remembered", sent, w.Proven())
	}
}

func TestA5_ProofOfAnObjectIsStoredAndExpires(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	ask := func(name string) error { return w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", name)) }
	asked := func(name string) bool {
		t.Helper()
		before := w.apis[0].count()
		if err := ask(name); err != nil {
			t.Fatal(err)
		}
		return w.apis[0].count() != before
	}
	if !asked("web") || asked("web") {
		t.Error("is not remembered, or was never asked")
	}
	if !asked("db") {
		t.Error("a proof for one object counts for another: a selector may leave out one of them")
	}
	// Every withdrawal removes the proof of the resource.
	w.withdraw(ReasonProbeError, errPassed)
	w.round(t.Context())
	if !asked("web") {
		t.Error("an old proof outlives the withdrawal")
	}
	w.clock.Step(testInterval - time.Millisecond)
	w.round(t.Context())
	if asked("web") {
		t.Error("forgotten too early")
	}
	w.clock.Step(time.Millisecond)
	if !asked("web") {
		t.Error("counts for longer than the interval")
	}
	w.apis[0].set(func(t Target) string { return map[bool]string{true: "passes"}[t.Resource == "secrets"] })
	w.clock.Step(testInterval)
	w.round(t.Context())
	if ask("web") == nil {
		t.Error("is let through unproven")
	}
	// A failure is cached for a short time only.
	w.apis[0].set(always(""))
	if ask("web") == nil {
		t.Error("each question sends a probe")
	}
	w.clock.Step(refusalLife)
	if !asked("web") {
		t.Error("a failure never expires")
	}
	w.clock.Step(time.Minute)
	w.resources.prune(w.clock.Now())
	if n := w.Proven(); n != 0 {
		t.Errorf("%d proofs never expire", n)
	}
}

func TestA5_ProofsAreBounded(t *testing.T) {
	r := resources{known: map[Target]*proof{}}
	for n := range maxProofs + 10 {
		r.remember(Target{Name: fmt.Sprint(n)}, &proof{})
	}
	if len(r.known) != maxProofs {
		t.Errorf("%d proofs are remembered", len(r.known))
	}
	again := &proof{}
	if r.remember(Target{Name: "0"}, again); r.known[Target{Name: "0"}] != again {
		t.Error("a known proof is not renewed")
	}
}

func TestA5_ATryOfTheWebhooksErrorThatFailedIsTriedAgain(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	// With failurePolicy Ignore, an error stops nothing but a denial does.
	for _, api := range w.apis {
		api.set(func(t Target) string { return map[bool]string{true: "ignored"}[t.Resource == "secrets"] })
	}
	for range 3 {
		if err := w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")); err == nil {
			t.Error("a resource with failurePolicy Ignore is let through")
		}
		w.clock.Step(refusalLife)
	}
}

// The cause of a withdrawal may have been a manifest with another failurePolicy.
func TestA5_TheWebhooksErrorIsTriedAgainAfterAnOpening(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	ask := func() error { return w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")) }
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	for _, api := range w.apis {
		api.set(func(t Target) string { return map[bool]string{true: "ignored"}[t.Resource == "secrets"] })
	}
	w.withdraw(ReasonProbeError, errPassed)
	w.round(t.Context())
	if ask() == nil {
		t.Error("failurePolicy Ignore is let through after a withdrawal")
	}
}

func TestA5_ASlowProofIsNone(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.apis[0].set(func(t Target) string {
		if t.Resource == "secrets" {
			w.clock.Step(testInterval)
		}
		return ""
	})
	if err := w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")); err == nil {
		t.Error("let through on a proof that has run out")
	}
}

// The proof of the servers may expire while a resource is being proven.
func TestA5_AProofOfAResourceDoesNotProlongThatOfTheServers(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.clock.Step(2*testInterval - time.Second)
	w.apis[0].set(func(t Target) string {
		if t.Resource == "secrets" {
			w.clock.Step(time.Second)
		}
		return ""
	})
	if w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")) == nil {
		t.Error("let through on a round that has run out")
	}
}

// The proof is withdrawn and made again while a probe is in progress: the probe was sent before the change.
func TestA5_AProbeSentBeforeAChangeProvesNothing(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.apis[0].set(func(t Target) string {
		if t.Resource == "secrets" {
			w.withdraw(ReasonConfigurationChanged, errors.New("changed"))
			w.Interlock.mu.Lock()
			defer w.Interlock.mu.Unlock()
			w.store(&state{until: w.clock.Now().Add(testInterval)})
		}
		return ""
	})
	if w.Enforced(t.Context(), asking("patch", elsewhere, "secrets", "web")) == nil {
		t.Error("let through on a probe that was sent before the change")
	}
	if err := w.Status(); err != nil {
		t.Error(err)
	}
}

func TestA5_AMissingResourcePassesIfItsCreationIsProven(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	missing := func(t Target) string {
		return map[bool]string{true: "not found"}[t.Operation == admissionv1.Update && t.Name == "new"]
	}
	for _, api := range w.apis {
		api.set(missing)
	}
	if err := w.Enforced(t.Context(), asking("patch", elsewhere, "deployments", "new")); err != nil {
		t.Error(err)
	}
	for _, api := range w.apis {
		api.set(func(t Target) string {
			if t.Resource == "difficult" && t.Operation == admissionv1.Create {
				return "spec.size: Required value"
			}
			return missing(t)
		})
	}
	if err := w.Enforced(t.Context(), asking("patch", elsewhere, "difficult", "new")); err == nil {
		t.Error("a creation that cannot be proven is let through")
	}
	scale := asking("patch", elsewhere, "deployments", "new")
	scale.Subresource = "scale"
	if err := w.Enforced(t.Context(), scale); err == nil {
		t.Error("a subresource of nothing is let through")
	}
	// The target was not proven for updates.
	for _, api := range w.apis {
		api.set(func(t Target) string {
			if t.Resource == "deployments" && t.Operation == admissionv1.Update {
				return "passes"
			}
			return ""
		})
	}
	if err := w.Enforced(t.Context(), asking("patch", elsewhere, "deployments", "web")); err == nil {
		t.Error("the proof of creation counts for an update")
	}
}

func TestA5_AMissingResourceIsProvenOnceItExists(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	all := func(fault func(Target) string) {
		for _, api := range w.apis {
			api.set(fault)
		}
	}
	updates := func(fault string) func(Target) string {
		return func(t Target) string {
			return map[bool]string{true: fault}[t.Resource == "deployments" && t.Operation == admissionv1.Update]
		}
	}
	ask := func() error { return w.Enforced(t.Context(), asking("patch", elsewhere, "deployments", "new")) }
	all(updates("not found"))
	if err := ask(); err != nil {
		t.Error(err)
	}
	// The object was created meanwhile, and admission does not see updates.
	all(updates("passes"))
	if ask() == nil {
		t.Error("it is remembered that there is no such object")
	}
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}

// With one 500 for each object, half of the probes for such objects would be errors in the metrics of the server.
func TestA5_D7_TheWebhooksErrorIsTriedOnceForAnAggregatedGroup(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	var modes []string
	w.apis[0].tokens = recorder{w.tokens, func(mode string) { modes = append(modes, mode) }}
	for _, name := range []string{"a", "b", "c"} {
		if err := w.Enforced(t.Context(), asking("patch", elsewhere, "things", name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(modes, ","); got != "fail,deny,deny" {
		t.Errorf("modes are %s", got)
	}
}

// recorder records the modes of probes.
type recorder struct {
	*ProbeTokens
	note func(string)
}

func (r recorder) Authorize(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	mode, _, _ := strings.Cut(spec.Extra["fieldperm.dev/probe"][0], ".")
	r.note(mode)
	return r.ProbeTokens.Authorize(spec)
}
