package admission

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// TestW4_PoliciesWarn: the author of a Deny learns what fails while fieldperm is down, what the Deny does not reach, and that it binds
// controllers.
func TestW4_PoliciesWarn(t *testing.T) {
	const connect, down, bound, floor, everything = "no user but members of system:masters can connect to a Pod by ", "while fieldperm is down, deletions of ", "denies deletions by the controllers of Kubernetes too", "no Deny reaches leases.coordination.k8s.io, which", "it is for every resource"
	for name, c := range map[string]struct {
		effect   v1alpha1.PolicyEffect
		verbs    []string
		resource string
		subject  v1alpha1.Subject
		want     []string
	}{
		"writes":                  {v1alpha1.PolicyDeny, []string{"create"}, "/pods", v1alpha1.Subject{Kind: "Group", Name: "system:authenticated"}, nil},
		"writes of everything":    {v1alpha1.PolicyDeny, []string{"create"}, "*/*", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{everything, connect + "pods/attach, pods/exec, pods/portforward"}},
		"connections":             {v1alpha1.PolicyDeny, []string{"create"}, "/pods/exec", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{connect + "pods/exec"}},
		"connections of another":  {v1alpha1.PolicyDeny, []string{"create"}, "apps/*", v1alpha1.Subject{Kind: "User", Name: "bob"}, nil},
		"deletions":               {v1alpha1.PolicyDeny, []string{"delete"}, "/pods", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{down + "pods fail for all users but members of system:masters"}},
		"collections":             {v1alpha1.PolicyDeny, []string{"deletecollection"}, "apps/deployments", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{down + "deployments.apps fail"}},
		"deletions of everything": {v1alpha1.PolicyDeny, []string{"create", "delete"}, "*/*", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{everything, down + "everything but", connect}},
		"deletions by everyone":   {v1alpha1.PolicyDeny, []string{"delete"}, "/pods", v1alpha1.Subject{Kind: "Group", Name: "system:authenticated"}, []string{down + "pods", bound + ", as members of system:authenticated"}},
		"deletions by nodes":      {v1alpha1.PolicyDeny, []string{"delete"}, "/pods", v1alpha1.Subject{Kind: "Group", Name: "system:nodes"}, []string{down + "pods", bound}},
		"a user of that name":     {v1alpha1.PolicyDeny, []string{"delete"}, "/pods", v1alpha1.Subject{Kind: "User", Name: "system:authenticated"}, []string{down + "pods"}},
		"the floor":               {v1alpha1.PolicyDeny, []string{"update", "patch"}, "coordination.k8s.io/leases", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{floor}},
		"an Allow":                {v1alpha1.PolicyAllow, []string{"create", "delete"}, "*/deployments", v1alpha1.Subject{Kind: "Group", Name: "system:authenticated"}, nil},
		"an Allow of everything":  {v1alpha1.PolicyAllow, []string{"create", "delete"}, "*/*", v1alpha1.Subject{Kind: "User", Name: "bob"}, []string{"may write anything: name resources"}},
		"an Allow of deletions":   {v1alpha1.PolicyAllow, []string{"delete"}, "*/*", v1alpha1.Subject{Kind: "User", Name: "bob"}, nil},
	} {
		group, resource, _ := strings.Cut(c.resource, "/")
		policy := v1alpha1.ConditionalPolicy{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ConditionalPolicyKind},
			Spec: v1alpha1.ConditionalPolicySpec{
				Effect: c.effect, Verbs: c.verbs, Subjects: []v1alpha1.Subject{c.subject}, Condition: "true",
				Resources: []v1alpha1.PolicyResource{{APIGroups: []string{group}, Resources: []string{resource}}},
			},
		}
		raw, err := json.Marshal(policy)
		if err != nil {
			t.Fatal(err)
		}
		req := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Kind: metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ConditionalPolicyKind))}
		req.Object.Raw = raw
		r := &SchemaReviewer{Policy: func([]byte, string) []error { return nil }}
		faults, err := r.Review(t.Context(), req)
		response := SchemaResponse(faults, err, req)
		if !response.Allowed || len(response.Warnings) != len(c.want) {
			t.Errorf("%s: allowed %t, warnings %q", name, response.Allowed, response.Warnings)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(response.Warnings[i], want) {
				t.Errorf("%s: warning %q, want %q", name, response.Warnings[i], want)
			}
		}
	}
}
