package admission

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/schematest"
)

// signed accepts one nonce.
type signed struct{ fail, bar bool }

func (signed) Authorize(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	return len(spec.Extra[CanaryKey]) == 1 && spec.Extra[CanaryKey][0] == "good"
}

func (s signed) Answer(req *admissionv1.AdmissionRequest) CanaryAnswer {
	if values := req.UserInfo.Extra[CanaryKey]; len(values) != 1 || values[0] != "good" {
		return CanaryAnswer{}
	}
	answer := CanaryAnswer{Token: "the-token", Fail: s.fail}
	if s.bar {
		answer.Barred = func(barrier string) string { return "bars-" + barrier }
	}
	return answer
}

func TestA5_CanaryIsAuthorizedByItsNonceAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*authorizationv1.SubjectAccessReviewSpec)
		canaries Canaries
		want     bool
	}{
		"good": {func(*authorizationv1.SubjectAccessReviewSpec) {}, signed{}, true},
		"another nonce": {func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.Extra[CanaryKey] = authorizationv1.ExtraValue{"bad"}
		}, signed{}, false},
		"no nonce":            {func(s *authorizationv1.SubjectAccessReviewSpec) { s.Extra = nil }, signed{}, false},
		"nobody knows nonces": {func(*authorizationv1.SubjectAccessReviewSpec) {}, nil, false},
		"resource not listed": {func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Resource = "secrets" }, signed{}, false},
		"delete":              {func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "delete" }, signed{}, true},
		"delete a collection": {func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "deletecollection" }, signed{}, false},
		"read":                {func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "get" }, signed{}, false},
		"connect": {func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec"}
		}, signed{}, true},
		"connect to a proxy": {func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "proxy"}
		}, signed{}, false},
		"a check for the generic": {func(s *authorizationv1.SubjectAccessReviewSpec) { s.Extra[GenericOnlyKey] = nil }, signed{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := asking("update", "apps", "deployments", "")
			spec.User, spec.Extra = CanaryUser, map[string]authorizationv1.ExtraValue{CanaryKey: {"good"}}
			c.change(spec)
			// The result does not depend on other verbs of the user, nor on whether enforcement is proven.
			h := holding("granular", "update")
			r := authorizeReviewer(h)
			r.Canaries = c.canaries
			status, err := r.Review(t.Context(), spec)
			if err != nil || status.Allowed != c.want || status.Denied || len(h.asked) > 0 {
				t.Errorf("got %+v, %v, asked %q", status, err, h.asked)
			}
			if status.Allowed && !strings.HasPrefix(status.Reason, "granular:") {
				t.Errorf("A3: reason %q", status.Reason)
			}
		})
	}
	// A nonce has no effect for any other user.
	spec := asking("update", "apps", "deployments", "")
	spec.Extra = map[string]authorizationv1.ExtraValue{CanaryKey: {"good"}}
	r := authorizeReviewer(holding())
	r.Canaries = signed{}
	if status, err := r.Review(t.Context(), spec); err != nil || status.Allowed {
		t.Errorf("another user: %+v, %v", status, err)
	}
}

func TestA5_CanaryIsNeverAdmittedByGranular(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		nonce    string
		dry      *bool
		canaries Canaries
		endpoint Endpoint
		code     int
		token    bool
		allowed  bool
	}{
		"refusal with the token":           {"good", &yes, signed{}, Granular, http.StatusOK, true, false},
		"error with the token":             {"good", &yes, signed{fail: true}, Granular, http.StatusInternalServerError, true, false},
		"forged":                           {"bad", &yes, signed{}, Granular, http.StatusOK, false, false},
		"no dry run":                       {"good", &no, signed{}, Granular, http.StatusOK, false, false},
		"nothing said of a dry run":        {"good", nil, signed{}, Granular, http.StatusOK, false, false},
		"nobody knows nonces":              {"good", &yes, nil, Granular, http.StatusOK, false, false},
		"uncovered leaves it to the other": {"good", &yes, signed{fail: true}, Uncovered, http.StatusOK, false, true},
		"uncovered, forged":                {"bad", &yes, signed{}, Uncovered, http.StatusOK, false, false},
		"uncovered, no dry run":            {"good", &no, signed{}, Uncovered, http.StatusOK, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			// The user holds every verb; this has no effect.
			wire := Handlers{MaxBytes: 1 << 20, Canaries: c.canaries}
			server := httptest.NewServer(wire.ReviewHandler(c.endpoint, reviewer(schematest.Schema(t), holding("update", "granular", "granular:*"))))
			defer server.Close()
			req := scaling()
			req.UserInfo, req.DryRun = authenticationv1.UserInfo{Username: CanaryUser, Extra: map[string]authenticationv1.ExtraValue{CanaryKey: {c.nonce}}}, c.dry
			response, text := post(t, server, "/", "application/json", encode(t, admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
			}))
			if response.StatusCode != c.code || strings.Contains(text, "the-token") != c.token || strings.Contains(text, `"allowed":true`) != c.allowed {
				t.Errorf("got %d %s", response.StatusCode, text)
			}
		})
	}
}

// Without an answer of /admit/granular the sender sees the answer of /admit/uncovered. A write of the probe user passes one of them only
// in a dry run.
func TestA6_ProbesOfBarriersAreRefusedByKnownBarriers(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		nonce          string
		dry            *bool
		endpoint       Endpoint
		token, allowed bool
		barriers       int
	}{
		"refused by the barriers":      {"good", &yes, Uncovered, true, false, 2},
		"granular leaves it to that":   {"good", &yes, Granular, false, true, 0},
		"granular, no dry run":         {"good", &no, Granular, false, false, 0},
		"no dry run":                   {"good", &no, Uncovered, false, false, 0},
		"forged":                       {"bad", &yes, Uncovered, false, false, 0},
		"granular, forged":             {"bad", &yes, Granular, false, false, 0},
		"granular, nothing said of it": {"good", nil, Granular, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := schematest.Schema(t, uncoveredSet(`{uncoveredPermissions: ["granular:scale"], matchConditions: [{name: a, expression: "false"}]}`), uncoveredSet(`{uncoveredPermissions: ["granular:image"]}`),
				uncoveredSet(`{uncoveredPermissions: ["granular:data"]}`))
			wire := Handlers{MaxBytes: 1 << 20, Canaries: signed{bar: true}}
			server := httptest.NewServer(wire.ReviewHandler(c.endpoint, reviewer(s, holding("update", "granular", "granular:*"))))
			defer server.Close()
			req := scaling()
			req.UserInfo, req.DryRun = authenticationv1.UserInfo{Username: CanaryUser, Extra: map[string]authenticationv1.ExtraValue{CanaryKey: {c.nonce}}}, c.dry
			_, text := post(t, server, "/", "application/json", encode(t, admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
			}))
			if strings.Contains(text, "the-token") != c.token || strings.Contains(text, `"allowed":true`) != c.allowed || strings.Count(text, "bars-") != c.barriers {
				t.Errorf("got %s", text)
			}
		})
	}
}

// A probe of a deletion or of a connection learns what may deny it, and needs no schema. One of a write learns of both.
func TestA6_ProbesOfPoliciesAreRefusedByThem(t *testing.T) {
	s := schematest.Schema(t, uncoveredSet(`{uncoveredPermissions: ["granular:scale"]}`))
	for operation, want := range map[admissionv1.Operation]int{admissionv1.Update: 2, admissionv1.Delete: 1, admissionv1.Connect: 1} {
		req := scaling()
		req.Operation = operation
		r := reviewer(s, holding())
		r.Denies = func(got *admissionv1.AdmissionRequest) []string {
			if got.Operation != operation {
				t.Errorf("asked about %s", got.Operation)
			}
			return []string{"policy"}
		}
		if got := r.barriers(req); len(got) != want || got[0] != "policy" {
			t.Errorf("%s: %q", operation, got)
		}
		r.Denies, r.Schema = nil, nil
		if got := r.barriers(req); len(got) != 0 {
			t.Errorf("%s, nothing known: %q", operation, got)
		}
	}
}

// The marker does not allow a Binding. A probe of a Binding is allowed by its nonce.
func TestA6_A2_OnlyProbesBind(t *testing.T) {
	for _, name := range []string{"bindings", "pods/binding"} {
		resource, subresource, _ := strings.Cut(name, "/")
		for user, want := range map[string]bool{CanaryUser: true, "alice": false} {
			spec := asking("create", "", resource, subresource)
			spec.User, spec.Extra = user, map[string]authorizationv1.ExtraValue{CanaryKey: {"good"}}
			r := authorizeReviewer(holding("granular"))
			r.Canaries = signed{bar: true}
			if status, err := r.Review(t.Context(), spec); err != nil || status.Allowed != want {
				t.Errorf("%s, %s: %+v, %v", name, user, status, err)
			}
		}
	}
}
