package policies

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// TestA6_K5_APolicyIsABarrierOfItsRequests: a probe learns of the policies that may deny a request. Their names change with their content.
func TestA6_K5_APolicyIsABarrierOfItsRequests(t *testing.T) {
	named := func(effect v1alpha1.PolicyEffect, resource string, verbs ...string) *policy {
		spec := about(effect, "false")
		spec.Verbs, spec.Resources = verbs, []v1alpha1.PolicyResource{{APIGroups: []string{""}, Resources: []string{resource}}}
		p, faults := compileOne(t, noTypes, spec)
		if isFaulty(faults) {
			t.Fatal(faults)
		}
		return p
	}
	deletes, writes, connects := named(v1alpha1.PolicyDeny, "pods", "delete", "deletecollection"), named(v1alpha1.PolicyDeny, "pods", "update", "patch"), named(v1alpha1.PolicyDeny, "*", "create")
	set := newSet([]*policy{deletes, writes, connects, named(v1alpha1.PolicyAllow, "pods", "delete", "create"), named(v1alpha1.PolicyNoOpinion, "pods", "delete")})
	if deletes.barrier == writes.barrier {
		t.Errorf("the same barrier after an edit: %q", deletes.barrier)
	}
	for name, c := range map[string]struct {
		operation             admissionv1.Operation
		resource, subresource string
		want                  []string
	}{
		"a deletion":   {admissionv1.Delete, "pods", "", []string{deletes.barrier}},
		"of another":   {admissionv1.Delete, "secrets", "", nil},
		"an update":    {admissionv1.Update, "pods", "", []string{writes.barrier}},
		"of its part":  {admissionv1.Update, "pods", "status", nil},
		"a creation":   {admissionv1.Create, "pods", "", []string{connects.barrier}},
		"a connection": {admissionv1.Connect, "pods", "exec", []string{connects.barrier}},
	} {
		req := &admissionv1.AdmissionRequest{Operation: c.operation, Resource: metav1.GroupVersionResource{Version: "v1", Resource: c.resource}, SubResource: c.subresource}
		if got := set.Barriers(req); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := (*Set)(nil).Barriers(&admissionv1.AdmissionRequest{Operation: admissionv1.Delete}); got != nil {
		t.Errorf("no policies: %q", got)
	}
}
