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
type signed struct{ fail, loaded bool }

func (signed) Authorize(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	return len(spec.Extra[ProbeKey]) == 1 && spec.Extra[ProbeKey][0] == "good"
}

func (s signed) Answer(req *admissionv1.AdmissionRequest) ProbeAnswer {
	if values := req.UserInfo.Extra[ProbeKey]; len(values) != 1 || values[0] != "good" {
		return ProbeAnswer{}
	}
	answer := ProbeAnswer{Token: "the-token", Fail: s.fail}
	if s.loaded {
		answer.Loaded = func(l Loaded) string { return "the-token has-" + l.State + " " + l.Known }
	}
	return answer
}

func TestA5_ProbeIsAuthorizedByItsNonceAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*authorizationv1.SubjectAccessReviewSpec)
		probes Probes
		want   bool
	}{
		"good": {func(*authorizationv1.SubjectAccessReviewSpec) {}, signed{}, true},
		"another nonce": {func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.Extra[ProbeKey] = authorizationv1.ExtraValue{"bad"}
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
			spec.User, spec.Extra = ProbeUser, map[string]authorizationv1.ExtraValue{ProbeKey: {"good"}}
			c.change(spec)
			// The result does not depend on other verbs of the user, nor on whether enforcement is proven.
			h := holding("granular", "update")
			r := authorizeReviewer(h)
			r.Probes = c.probes
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
	spec.Extra = map[string]authorizationv1.ExtraValue{ProbeKey: {"good"}}
	r := authorizeReviewer(holding())
	r.Probes = signed{}
	if status, err := r.Review(t.Context(), spec); err != nil || status.Allowed {
		t.Errorf("another user: %+v, %v", status, err)
	}
}

func TestA5_ProbeIsNeverAdmittedByGranular(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		nonce    string
		dry      *bool
		probes   Probes
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
			wire := Handlers{MaxBytes: 1 << 20, Probes: c.probes}
			server := httptest.NewServer(wire.ReviewHandler(c.endpoint, reviewer(schematest.Schema(t), holding("update", "granular", "granular:*"))))
			defer server.Close()
			req := scaling()
			req.UserInfo, req.DryRun = authenticationv1.UserInfo{Username: ProbeUser, Extra: map[string]authenticationv1.ExtraValue{ProbeKey: {c.nonce}}}, c.dry
			response, text := post(t, server, "/", "application/json", encode(t, admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
			}))
			if response.StatusCode != c.code || strings.Contains(text, "the-token") != c.token || strings.Contains(text, `"allowed":true`) != c.allowed {
				t.Errorf("got %d %s", response.StatusCode, text)
			}
		})
	}
}

// TestA6_AProbeLearnsTheStateFromThePathThatIsCalled: only the handler of probes answers it, and only to a probe. Others pass there.
func TestA6_AProbeLearnsTheStateFromThePathThatIsCalled(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		user, nonce    string
		dry            *bool
		path           string
		loaded         bool
		says           string
		token, allowed bool
	}{
		"the state":               {ProbeUser, "good", &yes, "/probe/uid-7-a", true, "has-uid-7-a known", true, false},
		"another probe":           {ProbeUser, "good", &yes, "/probe/uid-7-a", false, "", false, true},
		"no dry run":              {ProbeUser, "good", &no, "/probe/uid-7-a", true, "is no probe", false, false},
		"forged":                  {ProbeUser, "bad", &yes, "/probe/uid-7-a", true, "is no probe", false, false},
		"another user":            {"alice", "good", &yes, "/probe/uid-7-a", true, "", false, true},
		"granular leaves it":      {ProbeUser, "good", &yes, "/admit/granular", true, "", false, true},
		"granular, no dry run":    {ProbeUser, "good", &no, "/admit/granular", true, "is no probe", false, false},
		"granular, forged":        {ProbeUser, "bad", &yes, "/admit/granular", true, "is no probe", false, false},
		"uncovered leaves it too": {ProbeUser, "good", &yes, "/admit/uncovered", true, "", false, true},
		"uncovered, forged":       {ProbeUser, "bad", &yes, "/admit/uncovered", true, "is no probe", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			wire := Handlers{MaxBytes: 1 << 20, Probes: signed{loaded: c.loaded}, Known: func() string { return "known" }}
			mux := http.NewServeMux()
			mux.Handle("/probe/{state}", wire.ProbeHandler())
			mux.Handle("/admit/granular", wire.ReviewHandler(Granular, reviewer(schematest.Schema(t), holding("update", "granular", "granular:*"))))
			mux.Handle("/admit/uncovered", wire.ReviewHandler(Uncovered, reviewer(schematest.Schema(t), holding())))
			server := httptest.NewServer(mux)
			defer server.Close()
			req := scaling()
			req.UserInfo, req.DryRun = authenticationv1.UserInfo{Username: c.user, Extra: map[string]authenticationv1.ExtraValue{ProbeKey: {c.nonce}}}, c.dry
			_, text := post(t, server, c.path, "application/json", encode(t, admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req,
			}))
			if strings.Contains(text, "the-token") != c.token || strings.Contains(text, `"allowed":true`) != c.allowed || !strings.Contains(text, c.says) {
				t.Errorf("got %s", text)
			}
		})
	}
}

// A5: the user whom administrators ask about is never let in, whatever it holds, and learns what the proof says.
func TestA5_TheStatusUserIsNeverLetIn(t *testing.T) {
	spec := asking("update", "apps", "deployments", "")
	spec.User = StatusUser
	r := authorizeReviewer(holding("granular", "update", "get"))
	for _, status := range []func() string{nil, func() string { return ProvenReason + "3" }} {
		r.Status = status
		want := ""
		if status != nil {
			want = "granular: status: enforcement is proven on each kube-apiserver, of 3"
		}
		if got, err := r.Review(t.Context(), spec); err != nil || got.Allowed || got.Denied || got.Reason != want {
			t.Errorf("%+v, %v; want %q", got, err, want)
		}
	}
}

// A2: nobody is let in to bind, and no probe.
func TestA2_NobodyBinds(t *testing.T) {
	for _, name := range []string{"bindings", "pods/binding"} {
		resource, subresource, _ := strings.Cut(name, "/")
		for _, user := range []string{ProbeUser, "alice"} {
			spec := asking("create", "", resource, subresource)
			spec.User, spec.Extra = user, map[string]authorizationv1.ExtraValue{ProbeKey: {"good"}}
			r := authorizeReviewer(holding("granular"))
			r.Probes = signed{loaded: true}
			if status, err := r.Review(t.Context(), spec); err != nil || status.Allowed {
				t.Errorf("%s, %s: %+v, %v", name, user, status, err)
			}
		}
	}
}
