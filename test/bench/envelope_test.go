package bench

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// subject is the object and the user of a review.
type subject struct {
	kind                  runtimeschema.GroupVersionKind
	resource, subresource string
	name, user            string
}

var (
	deployments = subject{kind: runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, resource: "deployments", name: "storefront"}
	scales      = subject{kind: runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, resource: "deployments", subresource: "scale", name: "web"}
	configMaps  = subject{kind: runtimeschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, resource: "configmaps", name: "settings"}
	panels      = subject{kind: runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Panel"}, resource: "panels", name: "north"}
	trials      = subject{kind: runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Trial"}, resource: "trials", name: "one"}
)

// by is the subject with another user.
func (s subject) by(user string) subject {
	s.user = user
	return s
}

// group is the group of the resource: a Deployment has a Scale of another group.
func (s subject) group() string {
	if s.subresource != "" {
		return "apps"
	}
	return s.kind.Group
}

// review is the body that a kube-apiserver sends for an update: the members in the order of its types,
// the new object before the old one, no white space.
func (s subject) review(tb testing.TB, old, object []byte) []byte {
	tb.Helper()
	kind := metav1.GroupVersionKind(s.kind)
	resource := metav1.GroupVersionResource{Group: s.group(), Version: s.kind.Version, Resource: s.resource}
	// An encoder would change hostile input, so it is inserted afterwards.
	mark := func(name string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(`"` + name + `"`)} }
	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
		Request: &admissionv1.AdmissionRequest{
			UID: "0c9d2f1a-7d5e-4f35-8f0b-3a5f5f0f7c11", Kind: kind, Resource: resource, SubResource: s.subresource,
			RequestKind: &kind, RequestResource: &resource, RequestSubResource: s.subresource,
			Name: s.name, Namespace: "shop", Operation: admissionv1.Update,
			UserInfo: authenticationv1.UserInfo{Username: s.user, Groups: []string{"system:authenticated"}},
			Object:   mark("the new object"), OldObject: mark("the old object"), DryRun: new(bool),
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"PatchOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(raw), `"the new object"`)
	between, after, ok := strings.Cut(rest, `"the old object"`)
	if !ok {
		tb.Fatalf("%s: no place for the objects", raw)
	}
	body := make([]byte, 0, len(raw)+len(old)+len(object))
	for _, part := range [][]byte{[]byte(before), object, []byte(between), old, []byte(after)} {
		body = append(body, part...)
	}
	return body
}

// encoded is an object as a kube-apiserver encodes it.
func encoded(tb testing.TB, object any) []byte {
	tb.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}
