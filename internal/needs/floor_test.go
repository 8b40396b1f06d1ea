package needs

import (
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

// frozen are conditions that deny patch.
type frozen struct{ *holder }

func (frozen) Unmet([]string) []fieldperm.Unmet { return nil }

// TestW4_NothingIsAskedForOnTheFloor: a user with the generic permission needs no verb of a barrier there, and no Deny reaches it. A granular user
// does.
func TestW4_NothingIsAskedForOnTheFloor(t *testing.T) {
	compiled := schematest.Schema(t, schematest.PermissionSchema("leases", "coordination.k8s.io", "Lease", "{path: .spec.holderIdentity, verb: example.com/holder, excluded: true}"))
	for _, c := range []struct {
		name    string
		holds   []string
		allowed bool
	}{
		{"a holder of patch", []string{"patch"}, true},
		{"a granular user", []string{"granular", "granular:*"}, false},
	} {
		h := &holder{verbs: c.holds, asked: map[string]int{}}
		lease := func(of string) runtime.RawExtension {
			return runtime.RawExtension{Raw: []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x","namespace":"shop"},"spec":{"holderIdentity":"` + of + `"}}`)}
		}
		got, err := Find(t.Context(), Question{
			Enter: []string{"patch"},
			Request: &admissionv1.AdmissionRequest{
				Kind:     metav1.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
				Resource: metav1.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Name: "x", Namespace: "shop",
				Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: "alice"}, OldObject: lease("a"), Object: lease("b"),
			},
			Reviewer: admission.Reviewer{
				Schema:     func() *schema.Schema { return compiled },
				Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return h },
				Conditional: func(*admission.Write, fieldperm.Authorizer) (admission.Conditions, error) {
					return frozen{&holder{denies: []string{"patch", "update"}, asked: map[string]int{}}}, nil
				},
				Limits: fieldperm.Limits{MaxChecks: fieldperm.DefaultMaxChecks, Parallel: 1},
			},
		})
		if err != nil || got.Allowed != c.allowed || c.allowed && len(got.Ask) > 0 {
			t.Errorf("%s: %+v, %v, want allowed %t", c.name, got, err, c.allowed)
		}
	}
}
