package admission

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// renewal takes over a lease.
func renewal() *admissionv1.AdmissionRequest {
	object := func(holder string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x","namespace":"shop"},"spec":{"holderIdentity":"` + holder + `"}}`)}
	}
	return &admissionv1.AdmissionRequest{
		UID: "u-1", Operation: admissionv1.Update, Namespace: "shop", Name: "x",
		Kind:      metav1.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		Resource:  metav1.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		UserInfo:  authenticationv1.UserInfo{Username: "alice"},
		OldObject: object("a"), Object: object("b"),
	}
}

const everythingIsUncovered = "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: all}\nspec: {uncoveredPermissions: ['granular:*']}\n"

// D5: a set for every resource does not apply to a lease, neither for users with the generic permission nor for users with granular
// verbs. It does apply to requests that are not on the floor.
func TestW4_NoSetReachesALease(t *testing.T) {
	s := schematest.Schema(t, everythingIsUncovered)
	for name, c := range map[string]struct {
		endpoint Endpoint
		holds    []string
		req      *admissionv1.AdmissionRequest
		want     bool
	}{
		"a lease, generic":         {Uncovered, []string{"update"}, renewal(), true},
		"a lease, granular":        {Granular, []string{"granular", "granular:specification"}, renewal(), true},
		"a lease, the marker":      {Granular, []string{"granular"}, renewal(), false},
		"a Deployment, generic":    {Uncovered, []string{"update"}, scaling(), false},
		"a Deployment, a verb":     {Uncovered, []string{"granular:scale"}, scaling(), true},
		"a Deployment, no verb":    {Granular, []string{"granular"}, scaling(), false},
		"a Deployment, root's own": {Uncovered, []string{"granular:*"}, scaling(), true},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := reviewer(s, holding(c.holds...)).Review(t.Context(), c.endpoint, c.req)
			if err != nil || result.Allowed != c.want {
				t.Errorf("got %+v, %v; want allowed %t", result, err, c.want)
			}
		})
	}
}

// TestW4_ALeaseHasNoBarrierBelowAVerb: a set with a more specific verb than the user holds refuses the change of a Deployment, and not
// that of a lease.
func TestW4_ALeaseHasNoBarrierBelowAVerb(t *testing.T) {
	s := schematest.Schema(t, strings.Replace(everythingIsUncovered, "granular:*", "granular:label(a)", 1))
	for name, c := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		want bool
	}{"a lease": {renewal(), true}, "a Deployment": {scaling(), false}} {
		c.req.OldObject.Raw = []byte(`{"metadata":{"name":"x","namespace":"shop"}}`)
		c.req.Object.Raw = []byte(`{"metadata":{"name":"x","namespace":"shop","labels":{"a":"b"}}}`)
		result, err := reviewer(s, holding("granular", "granular:labels")).Review(t.Context(), Granular, c.req)
		if err != nil || result.Allowed != c.want {
			t.Errorf("%s: got %+v, %v; want allowed %t", name, result, err, c.want)
		}
	}
}

// D5: if another webhook sends it, a lease does not wait for schemas either.
func TestW4_TheFloorNeedsNoSchema(t *testing.T) {
	r := reviewer(nil, holding())
	if result, err := r.Review(t.Context(), Uncovered, renewal()); err != nil || !result.Allowed {
		t.Errorf("got %+v, %v", result, err)
	}
	for endpoint, req := range map[Endpoint]*admissionv1.AdmissionRequest{Granular: renewal(), Uncovered: scaling()} {
		if _, err := r.Review(t.Context(), endpoint, req); Code(err) != 503 {
			t.Errorf("%s: got %v, want a 503", endpoint, err)
		}
	}
}

// A heartbeat that cannot be decoded is reviewed.
func TestW4_AnUndecodableObjectIsNotOnTheFloor(t *testing.T) {
	heartbeat := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "nodes"}, SubResource: "status", Name: "n1",
		UserInfo: authenticationv1.UserInfo{Username: "system:node:n1", Groups: []string{"system:nodes"}},
	}
	for _, c := range []struct {
		old, new string
		want     bool
	}{
		{`{"metadata":{"name":"n1"}}`, `{"metadata":{"name":"n1","labels":{}}}`, true},
		{`{"metadata":{"name":"n1"}}`, `{"metadata":{"name":"n1","labels":1}}`, false},
		{``, ``, false},
		// JSON does not show which byte is not UTF-8 (D10).
		{`{"metadata":{"annotations":{"a":"\ufffd"}}}`, `{"metadata":{"annotations":{"a":"\ufffd"}}}`, false},
		{`{"metadata":{"annotations":{"a":"` + "\uFFFD" + `"}}}`, `{"metadata":{"annotations":{"a":"\ufffd"}}}`, false},
		{`{"metadata":{"annotations":{"a":"` + "\uFFFD" + `"}}}`, `{"metadata":{"annotations":{"a":"` + "\uFFFD" + `"}}}`, true},
		{`null`, `{"metadata":{"labels":{"a":"b"}}}`, false},
	} {
		heartbeat.OldObject.Raw, heartbeat.Object.Raw = []byte(c.old), []byte(c.new)
		if got := OnFloor(heartbeat); got != c.want {
			t.Errorf("%s to %s: on the floor is %t", c.old, c.new, got)
		}
	}
}

// D5: the author of a set gets warnings about its cost and about resources that it does not reach.
func TestW4_SetsWarn(t *testing.T) {
	current := schematest.Documents(t)
	r := &SchemaReviewer{Documents: func() *compile.Documents { return &current }}
	for spec, want := range map[string]string{
		`{uncoveredPermissions: ["granular:scale"]}`:                                                                                                                                     "it is for every resource",
		`{uncoveredPermissions: ["granular:scale"], resources: [{apiGroups: ["*"], resources: ["*"]}]}`:                                                                                  "it is for every resource",
		`{uncoveredPermissions: ["granular:scale"], resources: [{apiGroups: [apps], resources: [deployments]}]}`:                                                                         "",
		`{uncoveredPermissions: ["granular:labels"], resources: [{apiGroups: [coordination.k8s.io, apps], resources: [leases, deployments]}]}`:                                           "no barrier reaches leases.coordination.k8s.io, which",
		`{uncoveredPermissions: ["granular:scope"], resources: [{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations]}]}`:                             "no barrier reaches validatingwebhookconfigurations.admissionregistration.k8s.io",
		`{uncoveredPermissions: ["granular:scale"], resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: env, expression: "request.namespace == 'x'"}]}`: "",
	} {
		req := submit(t, uncoveredSet(spec), "")
		faults, err := r.Review(t.Context(), req)
		response := SchemaResponse(faults, err, req)
		got := strings.Join(response.Warnings, "\n")
		if !response.Allowed || !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: allowed %t, warnings %q, %+v", spec, response.Allowed, got, response.Result)
		}
	}
}
