package audit

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

func TestDocument_Check(t *testing.T) {
	const generation = 3
	condition := func(kind string, status metav1.ConditionStatus, reason string, of int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "why", ObservedGeneration: of}
	}
	good := condition(v1alpha1.ConditionCompiled, metav1.ConditionTrue, v1alpha1.ReasonCompiled, generation)
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       []string
	}{
		"enforced":                {conditions: []metav1.Condition{good, condition(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced, generation)}},
		"no barriers":             {conditions: []metav1.Condition{good, condition(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonNoBarriers, generation)}},
		"enforced long ago":       {conditions: []metav1.Condition{good, condition(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced, generation-1)}, want: []string{"warning barrier-not-enforced"}},
		"no status":               {want: []string{"warning barrier-not-enforced"}},
		"not loaded":              {conditions: []metav1.Condition{good, condition(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNotLoaded, generation)}, want: []string{"error barrier-not-enforced"}},
		"not proven":              {conditions: []metav1.Condition{good, condition(v1alpha1.ConditionEnforced, metav1.ConditionUnknown, v1alpha1.ReasonNotProven, generation)}, want: []string{"warning barrier-not-enforced"}},
		"tried":                   {conditions: []metav1.Condition{good, condition(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonNotDenying, generation)}, want: []string{"note barrier-not-enforced"}},
		"faulty":                  {conditions: []metav1.Condition{condition(v1alpha1.ConditionCompiled, metav1.ConditionFalse, v1alpha1.ReasonFaulty, generation)}, want: []string{"error document-not-compiled"}},
		"a fault of a former one": {conditions: []metav1.Condition{condition(v1alpha1.ConditionCompiled, metav1.ConditionFalse, v1alpha1.ReasonFaulty, generation-1), condition(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced, generation)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Document{Ref{Kind: v1alpha1.UncoveredPermissionSetKind, Namespace: "", Name: "a"}, generation, v1alpha1.Status{Conditions: c.conditions}}
			var got []string
			d.Check(func(f Finding) { got = append(got, string(f.Level)+" "+f.Rule) })
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A holder with which enforcement can be proven holds the marker, no generic permission, and a resource that the marker opens.
func TestScan_Holders(t *testing.T) {
	for name, c := range map[string]struct{ objects, user, resource string }{
		"of the marker": {`
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments/scale], verbs: [granular, "granular:scale", get]}]}]
bindings: [{name: a, namespace: shop, clusterRole: a, subjects: [ServiceAccount ops/bot]}]`, "system:serviceaccount:ops:bot", "deployments/scale.apps"},
		"of update as well": {`
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [granular, patch, "granular:scale", get]}]}]
bindings: [{name: a, clusterRole: a, subjects: [User jane]}]`, "", ""},
		"without get": {`
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:scale"]}]}]
bindings: [{name: a, clusterRole: a, subjects: [User jane]}]`, "", ""},
		"of what the marker does not open": {`
roles: [{name: a, rules: [{apiGroups: [""], resources: [pods/exec], verbs: [granular, "granular:labels", get]}]}]
bindings: [{name: a, clusterRole: a, subjects: [User jane]}]`, "", ""},
		"of all resources": {`
roles: [{name: a, rules: [{apiGroups: ["*"], resources: ["*"], verbs: [granular, "granular:labels", get]}]}]
bindings: [{name: a, clusterRole: a, subjects: [User jane]}]`, "", ""},
		"a group": {`
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:labels", get]}]}]
bindings: [{name: a, clusterRole: a, subjects: [Group team]}]`, "fieldperm:audit", "deployments.apps"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Scan{}
			auditText(t, s, objectsOf(t, c.objects))
			got := s.Holders(1)
			if (len(got) == 0) != (c.user == "") || len(got) > 0 && (got[0].User != c.user || got[0].Resource.String() != c.resource) {
				t.Errorf("got %+v, want %q on %q", got, c.user, c.resource)
			}
		})
	}
}
