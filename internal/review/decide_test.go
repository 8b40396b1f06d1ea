package review

import (
	"errors"
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

// leaseBarrier are barriers that are out of reach.
const leaseBarrier = `
# Three barriers.
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: leases}, spec: {group: coordination.k8s.io, kind: Lease, permissions: [{path: .spec.holderIdentity, verb: example.com/holder, excluded: true}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: hooks}, spec: {uncoveredPermissions: ['granular:labels'], resources: [{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations]}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: maps}, spec: {group: "", kind: ConfigMap, permissions: [{path: '.data["locked"]', verb: example.com/lock, excluded: true}]}}
`

// TestW4_NoBarrierReachesAHolderOfTheGenericPermission on the floor, about objects of admission registration, and in system:masters. A granular user
// is decided on as everywhere.
func TestW4_NoBarrierReachesAHolderOfTheGenericPermission(t *testing.T) {
	compiled := schematest.Schema(t, leaseBarrier)
	grants := &holds{verbs: map[string][]string{"holder": {"patch"}, "granular": {"granular", "granular:*"}}}
	reviewer := &admission.Reviewer{Schema: func() *schema.Schema { return compiled }, Authorizer: grants.For}
	lease := requestOf("coordination.k8s.io", "Lease", "leases", `"metadata":{"name":"x"},"spec":{"holderIdentity":"a"}`, `"metadata":{"name":"x"},"spec":{"holderIdentity":"b"}`)
	hook := requestOf("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", `"metadata":{"name":"x"}`, `"metadata":{"name":"x","labels":{"a":"b"}}`)
	locked := requestOf("", "ConfigMap", "configmaps", `"metadata":{"name":"x"},"data":{"locked":"a"}`, `"metadata":{"name":"x"},"data":{"locked":"b"}`)
	for _, c := range []struct {
		name, user string
		groups     []string
		request    *admissionv1.AdmissionRequest
		want       bool
	}{
		{"the floor", "holder", nil, lease, true},
		{"the floor", "granular", nil, lease, false},
		{"admission registration", "holder", nil, hook, true},
		{"admission registration", "granular", nil, hook, false},
		{"a barrier in reach", "holder", nil, locked, false},
		{"a barrier in reach", "holder", []string{"system:masters"}, locked, true},
	} {
		request := *c.request
		request.UserInfo = authenticationv1.UserInfo{Username: c.user, Groups: c.groups}
		got, err := Decide(t.Context(), reviewer, &request, 0)
		if err != nil {
			t.Errorf("%s, %s: %v", c.name, c.user, err)
			continue
		}
		if got.Allowed != c.want || got.Allowed && (got.Message != "" || got.Mode != string(fieldperm.ModeGeneric) || len(got.Changes) == 0 || got.Changes[0].CoveredBy != "patch") {
			t.Errorf("%s, %s %v: %+v, want %t", c.name, c.user, c.groups, got, c.want)
		}
	}
	grants.err = errors.New("boom")
	lease.UserInfo.Username = "holder"
	if got, err := Decide(t.Context(), reviewer, lease, 0); err == nil {
		t.Errorf("an authorizer that fails: %+v", got)
	}
}

func requestOf(group, kind, resource, before, after string) *admissionv1.AdmissionRequest {
	version := "v1"
	gvk := metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
	head := `{"apiVersion":"` + metav1.GroupVersion{Group: group, Version: version}.String() + `","kind":"` + kind + `",`
	return &admissionv1.AdmissionRequest{
		UID: "1", Kind: gvk, Resource: metav1.GroupVersionResource{Group: group, Version: version, Resource: resource}, Name: "x", Operation: admissionv1.Update,
		OldObject: runtime.RawExtension{Raw: []byte(head + before + `}`)}, Object: runtime.RawExtension{Raw: []byte(head + after + `}`)},
	}
}
