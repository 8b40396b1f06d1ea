package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// holder is a user with some verbs, and with failures on demand.
type holder struct {
	holds  []string
	reason string
	fails  map[string]error

	mu    sync.Mutex
	asked []string
}

func (h *holder) Authorize(_ context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, fmt.Sprintf("%s %t", verb, generic))
	if err := h.fails[verb]; err != nil {
		return fieldperm.AuthorizerDecision{}, err
	}
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h.holds, verb)), Reason: h.reason}, nil
}

func holding(verbs ...string) *holder { return &holder{holds: verbs} }

func reviewer(s *schema.Schema, h *holder) *Reviewer {
	return &Reviewer{
		Schema:     func() *schema.Schema { return s },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return h },
	}
}

// update is a request for a Deployment; the arguments are its spec before and after.
func update(before, after string) *admissionv1.AdmissionRequest {
	object := func(spec string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":` + spec + `}`)}
	}
	return &admissionv1.AdmissionRequest{
		UID: "u-1", Operation: admissionv1.Update, Namespace: "shop", Name: "web",
		Kind:      metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		UserInfo:  authenticationv1.UserInfo{Username: "alice"},
		OldObject: object(before), Object: object(after),
	}
}

func scaling() *admissionv1.AdmissionRequest { return update(`{"replicas":1}`, `{"replicas":2}`) }

const scaleIsUncovered = `
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: scale}
spec:
  uncoveredPermissions: ["granular:scale"]
  resources: [{apiGroups: [apps], resources: [deployments]}]
`

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
}
