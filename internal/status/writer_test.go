package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// board is an API server with one object, the informer's copy of it, and the state that was compiled from it.
type board struct {
	object   *unstructured.Unstructured
	state    sources.ObjectState
	enforced Enforcement
	// refuse is the error for writes. applied is the last write.
	refuse  error
	applied []*unstructured.Unstructured
	fresh   bool
}

func newBoard() *board {
	b := &board{fresh: true, enforced: Enforcement{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced}}
	b.object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "fieldperm.dev/v1alpha1", "kind": "UncoveredPermissionSet"}}
	b.object.SetName("a")
	b.object.SetUID("u")
	b.object.SetGeneration(3)
	b.object.SetResourceVersion("7")
	b.state = sources.ObjectState{Kind: "UncoveredPermissionSet", Name: "a", UID: "u", Generation: 3, GuardedFields: []v1alpha1.GuardedFields{{Group: "apps", Resource: "deployments", Fields: 1}}, Documents: compile.Documents{Uncovered: make([]sets.Document, 1)}}
	return b
}

func (b *board) writer(t *testing.T) *Writer {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[runtimeschema.GroupVersionResource]string{})
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok || patch.GetPatchType() != types.ApplyPatchType || patch.GetSubresource() != "status" || patch.GetResource() != v1alpha1.GroupVersion.WithResource("uncoveredpermissionsets") || patch.GetName() != "a" {
			t.Errorf("%s %s/%s of %q", action.GetVerb(), action.GetResource(), action.GetSubresource(), action)
		}
		if b.refuse != nil {
			return true, nil, b.refuse
		}
		applied := &unstructured.Unstructured{}
		if err := json.Unmarshal(patch.GetPatch(), &applied.Object); err != nil {
			t.Fatal(err)
		}
		b.applied = append(b.applied, applied)
		if b.fresh {
			b.object = b.object.DeepCopy()
			b.object.Object["status"] = applied.Object["status"]
			b.object.SetResourceVersion(fmt.Sprint(7 + len(b.applied)))
		}
		return true, applied, nil
	})
	return New(Config{
		Client: client, Known: func() []*unstructured.Unstructured { return []*unstructured.Unstructured{b.object} },
		States:   func() []sources.ObjectState { return []sources.ObjectState{b.state} },
		Enforced: func(*sources.ObjectState) Enforcement { return b.enforced },
	})
}

func (b *board) write(t *testing.T, w *Writer, writes int) {
	t.Helper()
	if err := w.Write(t.Context()); err != nil {
		t.Error(err)
	}
	if len(b.applied) != writes {
		t.Fatalf("%d writes, want %d", len(b.applied), writes)
	}
}

// shows returns status/reason/message of a condition in the last write.
func (b *board) shows(t *testing.T, condition string) string {
	t.Helper()
	status, err := statusOf(b.applied[len(b.applied)-1])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range status.Conditions {
		if c.Type == condition {
			if c.ObservedGeneration != status.ObservedGeneration || c.LastTransitionTime.IsZero() {
				t.Errorf("generation %d of %d, since %s", c.ObservedGeneration, status.ObservedGeneration, c.LastTransitionTime)
			}
			return fmt.Sprintf("%s/%s/%s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriter_WritesDifferencesOnly(t *testing.T) {
	b := newBoard()
	w := b.writer(t)
	b.write(t, w, 1)
	b.write(t, w, 1)
	sent := b.applied[0]
	if sent.GetUID() != "u" || sent.GetResourceVersion() != "7" {
		t.Errorf("not bound to the object that was read: %v", sent)
	}
	expect(t, b.shows(t, "Compiled"), "True/Compiled/")
	expect(t, b.shows(t, "Enforced"), "True/Enforced/")
	b.enforced = Enforcement{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotKept, Message: "no webhook"}
	b.write(t, w, 2)
	expect(t, b.shows(t, "Enforced"), "Unknown/NotKept/no webhook")
	b.state.Generation = 4
	b.object.SetGeneration(4)
	b.write(t, w, 3)
	b.state.Faults = []error{&schema.Error{Source: "s", Pointer: "/p", Message: "m"}, errors.New("n")}
	b.state.Unmatched = []error{errors.New("later")}
	b.write(t, w, 4)
	expect(t, b.shows(t, "Compiled"), "False/Faulty/s:/p: m; n")
	b.state.Faults = nil
	b.write(t, w, 5)
	expect(t, b.shows(t, "Compiled"), "True/Unmatched/later")
}

func TestWriter_KeepsTimesAndOthersConditions(t *testing.T) {
	b := newBoard()
	const since = "2026-01-02T03:04:05Z"
	b.object.Object["status"] = map[string]any{"observedGeneration": int64(2), "conditions": []any{
		map[string]any{"type": "Compiled", "status": "True", "reason": "Compiled", "message": "", "observedGeneration": int64(2), "lastTransitionTime": since},
		map[string]any{"type": "Liked", "status": "True", "reason": "Taste", "message": "", "lastTransitionTime": since},
		map[string]any{"type": "Enforced", "status": "False", "reason": "NotApplied", "message": "", "lastTransitionTime": since},
	}}
	b.write(t, b.writer(t), 1)
	status, err := statusOf(b.applied[0])
	if err != nil || len(status.Conditions) != 2 {
		t.Fatalf("applied %v, %v", status.Conditions, err)
	}
	for _, c := range status.Conditions {
		if kept := c.LastTransitionTime.UTC().Format(time.RFC3339) == since; kept != (c.Type == "Compiled") {
			t.Errorf("%s: since %s", c.Type, c.LastTransitionTime)
		}
	}
}

func TestWriter_AReplicaWithOlderObjectsDoesNotWrite(t *testing.T) {
	b := newBoard()
	b.object.Object["status"] = map[string]any{"observedGeneration": int64(4)}
	b.write(t, b.writer(t), 0)
	b = newBoard()
	b.object.SetGeneration(4) // not compiled yet
	b.write(t, b.writer(t), 0)
	b = newBoard()
	b.object.SetUID("another") // created again with the same name
	b.write(t, b.writer(t), 0)
}

func TestWriter_DoesNotRepeatAWriteBeforeTheInformerHasIt(t *testing.T) {
	b := newBoard()
	b.fresh = false
	w := b.writer(t)
	b.write(t, w, 1)
	b.write(t, w, 1)
	b.enforced.Status = metav1.ConditionFalse
	b.write(t, w, 2)
	// Another writer removed it again.
	b.object.SetResourceVersion("20")
	b.write(t, w, 3)
}

func TestWriter_FailuresAreReportedAndConflictsRetried(t *testing.T) {
	resource := v1alpha1.GroupVersion.WithResource("uncoveredpermissionsets").GroupResource()
	b := newBoard()
	w := b.writer(t)
	b.refuse = apierrors.NewForbidden(resource, "a", nil)
	if err := w.Write(t.Context()); err == nil || !strings.HasPrefix(err.Error(), `UncoveredPermissionSet "a": status: `) {
		t.Errorf("got %v", err)
	}
	b.refuse = apierrors.NewConflict(resource, "a", nil)
	b.write(t, w, 0)
	b.refuse = apierrors.NewNotFound(resource, "a")
	b.write(t, w, 0)
	b.refuse = nil
	b.write(t, w, 1)
}

func TestWriter_ASetWithoutBarriersIsEnforced(t *testing.T) {
	b := newBoard()
	b.enforced = Enforcement{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied}
	b.state.Documents = compile.Documents{}
	w := b.writer(t)
	b.write(t, w, 1)
	expect(t, b.shows(t, "Enforced"), "True/NoBarriers/nothing in it is excluded")
}

// TestC2_FaultyAndEmptySetsAreNotEnforced, at no time, whatever the probes of its endpoints find.
func TestC2_FaultyAndEmptySetsAreNotEnforced(t *testing.T) {
	b := newBoard()
	w := b.writer(t)
	b.write(t, w, 1)
	expect(t, b.shows(t, "Enforced"), "True/Enforced/")
	b.state.Faults = []error{errors.New("no such verb")}
	b.write(t, w, 2)
	expect(t, b.shows(t, "Compiled"), "False/Faulty/no such verb")
	expect(t, b.shows(t, "Enforced"), "False/Faulty/not in force: no such verb")
	// Both stay False even if another replica may know more.
	b.enforced.Unproven = true
	b.write(t, w, 2)
	b.state.Faults, b.enforced.Unproven = nil, false
	b.write(t, w, 3)
	expect(t, b.shows(t, "Enforced"), "True/Enforced/")
	b.state.GuardedFields = nil
	b.write(t, w, 4)
	if got := b.shows(t, "Enforced"); !strings.HasPrefix(got, "False/NothingGuarded/") {
		t.Errorf("got %q", got)
	}
	// Without barriers and faulty: the part that could not be read may have had barriers.
	b.state.Documents, b.state.Faults = compile.Documents{}, []error{errors.New("no document")}
	b.write(t, w, 5)
	if got := b.shows(t, "Enforced"); !strings.HasPrefix(got, "False/Faulty/") {
		t.Errorf("got %q", got)
	}
}

// D6: a replica that cannot judge the configuration of a newer version writes neither True nor False.
func TestD6_WriterKeepsConditionsOfUnknownVersions(t *testing.T) {
	b := newBoard()
	w := b.writer(t)
	b.write(t, w, 1)
	b.enforced = Enforcement{Reason: v1alpha1.ReasonNewerVersion, Message: "newer"}
	b.write(t, w, 1)
	expect(t, b.shows(t, "Enforced"), "True/Enforced/")
	// No replica has written a condition for the other generation.
	b.state.Generation = 4
	b.object.SetGeneration(4)
	b.write(t, w, 2)
	expect(t, b.shows(t, "Enforced"), "Unknown/NewerVersion/newer")
}

// TestC2_SetsOutOfForceAreNotEnforced: the last valid form may be in force here, but another replica may not know it.
func TestC2_SetsOutOfForceAreNotEnforced(t *testing.T) {
	w := newBoard().writer(t)
	state := &sources.ObjectState{Kind: "PermissionSchema", Faults: []error{errors.New("no such path")}, Documents: compile.Documents{Permissions: []compile.PermissionDocument{{Entries: []compile.Entry{{FieldPermission: v1alpha1.FieldPermission{Excluded: true}}}}}}}
	if got := w.enforced(state); got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonFaulty {
		t.Errorf("got %+v", got)
	}
	state.Faults = nil
	if got := w.enforced(state); got.Reason != v1alpha1.ReasonEnforced {
		t.Errorf("without faults: %+v", got)
	}
}

func TestMessage_IsBounded(t *testing.T) {
	var errs []error
	for range 40 {
		errs = append(errs, errors.New(strings.Repeat("ü", 1000)))
	}
	if got := message(errs); len(got) > maxMessageLength || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-10:])
	}
	if got := message([]error{errors.New("a"), errors.New("b")}); got != "a; b" {
		t.Errorf("got %q", got)
	}
	for i := range errs {
		errs[i] = errors.New("e")
	}
	if got := message(errs); strings.Count(got, "e; ") != maxMessages || !strings.HasSuffix(got, "and more") {
		t.Errorf("got %q", got)
	}
}

func TestWriter_RunEndsWithTheContext(t *testing.T) {
	b := newBoard()
	w := b.writer(t)
	done := make(chan struct{})
	ctx := t.Context()
	go func() { defer close(done); w.Run(ctx) }()
	w.Changed()
	t.Cleanup(func() { <-done })
}

// TestA6_AnOldTrueDoesNotOutliveItsProof: replicas that disagree leave to each other what has just changed, and nothing else.
func TestA6_AnOldTrueDoesNotOutliveItsProof(t *testing.T) {
	state := &sources.ObjectState{Generation: 1}
	unproven := Enforcement{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotProven, Message: "no answer", Unproven: true}
	became := metav1.Now()
	has := v1alpha1.Status{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnforced, ObservedGeneration: 1, LastTransitionTime: became,
	}}}
	for later, want := range map[time.Duration]metav1.ConditionStatus{time.Second: metav1.ConditionTrue, justNow: metav1.ConditionUnknown, time.Hour: metav1.ConditionUnknown} {
		is := meta.FindStatusCondition(desired(state, unproven, has, metav1.NewTime(became.Add(later))).Conditions, v1alpha1.ConditionEnforced)
		if is.Status != want {
			t.Errorf("%s later: %+v, want %s", later, is, want)
		}
	}
}
