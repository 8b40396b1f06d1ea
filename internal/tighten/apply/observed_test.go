package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestApply_AStatusThatFieldpermWritesDoesNotCount: it is written every 30 seconds. A specification that another writes does.
func TestApply_AStatusThatFieldpermWritesDoesNotCount(t *testing.T) {
	for name, spec := range map[string]bool{"status": false, "specification": true} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		s.fields = "granular:label(a)"
		// After the record was read, and before the observation is written.
		s.saving = func() {
			s.observe(good())
			if spec {
				o, err := s.observations().Get(t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
				must(t, err)
				must(t, unstructured.SetNestedStringSlice(o.Object, []string{"Audit"}, "spec", "actions"))
				_, err = s.observations().Update(t.Context(), o, metav1.UpdateOptions{})
				must(t, err)
			}
		}
		step, err := s.apply(Options{})
		if lost := err != nil && strings.Contains(err.Error(), "at the same time"); lost != spec || !lost && (step != Added || err != nil) {
			t.Errorf("%s: step %d: %v", name, step, err)
		}
	}
}

// TestApply_ObservesAgainAfterAnotherHasChangedTheObservation: the second step needs the counts of an observation as --apply makes it.
func TestApply_ObservesAgainAfterAnotherHasChangedTheObservation(t *testing.T) {
	for name, change := range map[string]func(s *scene, o *unstructured.Unstructured){
		"fewer resources": func(s *scene, o *unstructured.Unstructured) {
			must(t, unstructured.SetNestedSlice(o.Object, []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"daemonsets"}}}, "spec", "resources"))
			_, err := s.observations().Update(t.Context(), o, metav1.UpdateOptions{})
			must(t, err)
			s.observe(good())
		},
		"changed and changed back": func(s *scene, o *unstructured.Unstructured) {
			actions, _, err := unstructured.NestedSlice(o.Object, "spec", "actions")
			must(t, err)
			for _, list := range [][]any{actions[:1], actions} {
				must(t, unstructured.SetNestedSlice(o.Object, list, "spec", "actions"))
				o, err = s.observations().Update(t.Context(), o, metav1.UpdateOptions{})
				must(t, err)
			}
			s.observe(good())
		},
		"deleted and made again": func(s *scene, o *unstructured.Unstructured) {
			must(t, s.observations().Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
			o.SetResourceVersion("")
			_, err := s.observations().Create(t.Context(), o, metav1.CreateOptions{})
			must(t, err)
			s.observe(good())
		},
		"deleted": func(s *scene, o *unstructured.Unstructured) {
			must(t, s.observations().Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
		},
	} {
		s := newScene(t)
		before := s.text()
		_, err := s.apply(Options{})
		must(t, err)
		o, err := s.observations().Get(t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
		must(t, err)
		change(s, o)
		if step, err := s.apply(Options{}); step != Added || err != nil {
			t.Errorf("%s: step %d: %v", name, step, err)
		}
		s.observe(good())
		if step, err := s.apply(Options{}); step != Removed || err != nil {
			t.Errorf("%s: step %d: %v", name, step, err)
		}
		_, err = s.undo(false)
		must(t, err)
		if after := s.text(); after != before {
			t.Errorf("%s: before:\n%s\nafter:\n%s", name, before, after)
		}
	}
}
