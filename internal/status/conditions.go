package status

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// Bounds of a condition's message: an object can have many faults, and a CEL error many lines.
const (
	maxMessages      = 10
	maxMessageLength = 4096
)

// Enforcement is the state of the condition Enforced. With an empty Status, the condition stays as it is if it is about the current
// generation; otherwise it becomes Unknown.
type Enforcement struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Unproven means that another replica may know more: a condition that has just become True for the current generation stays. Replicas that disagree
	// change it no more often than that.
	Unproven bool
}

// justNow is how long a condition has just become True.
const justNow = 30 * time.Second

// compiled does not mention the last valid form in use, because that differs between replicas.
func compiled(state *sources.ObjectState) metav1.Condition {
	out := metav1.Condition{Type: v1alpha1.ConditionCompiled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCompiled}
	switch {
	case len(state.Faults) > 0:
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, v1alpha1.ReasonFaulty, message(state.Faults)
	case len(state.Unmatched) > 0:
		out.Reason, out.Message = v1alpha1.ReasonUnmatched, message(state.Unmatched)
	}
	return out
}

func message(errs []error) string {
	var parts []string
	for _, err := range errs[:min(len(errs), maxMessages)] {
		parts = append(parts, err.Error())
	}
	if len(errs) > maxMessages {
		parts = append(parts, "and more")
	}
	return cut(strings.Join(parts, "; "), maxMessageLength)
}

// cut shortens a text to a number of bytes, without splitting a character.
func cut(text string, length int) string {
	const more = " …"
	if len(text) <= length {
		return text
	}
	end := length - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// desired returns the status that an object should have. Conditions that do not change keep their times.
func desired(state *sources.ObjectState, enforced Enforcement, has v1alpha1.Status, now metav1.Time) v1alpha1.Status {
	out := v1alpha1.Status{ObservedGeneration: state.Generation, GuardedFields: state.GuardedFields}
	// Start from the conditions that fieldperm wrote before, for their times. Conditions of other writers are not fieldperm's to
	// apply.
	for _, one := range has.Conditions {
		if one.Type == v1alpha1.ConditionCompiled || one.Type == v1alpha1.ConditionEnforced {
			out.Conditions = append(out.Conditions, one)
		}
	}
	said := meta.FindStatusCondition(has.Conditions, v1alpha1.ConditionEnforced)
	current := said != nil && said.ObservedGeneration == state.Generation
	switch {
	case current && (enforced.Status == "" || enforced.Unproven && said.Status == metav1.ConditionTrue && now.Sub(said.LastTransitionTime.Time) < justNow):
		enforced = Enforcement{Status: said.Status, Reason: said.Reason, Message: said.Message}
	case enforced.Status == "":
		enforced.Status = metav1.ConditionUnknown
	}
	for _, one := range []metav1.Condition{
		compiled(state),
		{Type: v1alpha1.ConditionEnforced, Status: enforced.Status, Reason: enforced.Reason, Message: cut(enforced.Message, maxMessageLength)},
	} {
		one.ObservedGeneration, one.LastTransitionTime = state.Generation, now
		meta.SetStatusCondition(&out.Conditions, one)
	}
	slices.SortFunc(out.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// says reports whether a status contains everything in another.
func says(has, want v1alpha1.Status) bool {
	if has.ObservedGeneration != want.ObservedGeneration || !slices.Equal(has.GuardedFields, want.GuardedFields) {
		return false
	}
	for _, one := range want.Conditions {
		is := meta.FindStatusCondition(has.Conditions, one.Type)
		if is == nil || is.Status != one.Status || is.Reason != one.Reason || is.Message != one.Message || is.ObservedGeneration != one.ObservedGeneration {
			return false
		}
	}
	return true
}
