package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

const maxBytes = 64 << 10

// observed records the calls of Observe.
type observed struct {
	mu  sync.Mutex
	all []string
}

func (o *observed) observe(endpoint string, outcome Outcome, _ int, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, endpoint+" "+string(outcome))
}

func serve(t *testing.T, s *schema.Schema, documents *compile.Documents, h *holder) (*httptest.Server, *observed) {
	t.Helper()
	seen := &observed{}
	wire := Handlers{MaxBytes: maxBytes, Observe: seen.observe}
	mux := http.NewServeMux()
	mux.Handle("/admit/granular", wire.ReviewHandler(Granular, reviewer(s, h)))
	mux.Handle("/admit/uncovered", wire.ReviewHandler(Uncovered, reviewer(s, h)))
	mux.Handle("/admit/schemas", wire.SchemaHandler(&SchemaReviewer{Documents: func() *compile.Documents { return documents }}))
	mux.Handle("/authorize", wire.AuthorizeHandler(authorizeReviewer(h)))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return server, seen
}

func post(t *testing.T, server *httptest.Server, path, contentType, body string) (*http.Response, string) {
	t.Helper()
	response, err := server.Client().Post(server.URL+path, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func encode(t *testing.T, document any) string {
	t.Helper()
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func review(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionReview {
	return &admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req}
}

func TestWire_AnswersWithTheSameUID(t *testing.T) {
	server, seen := serve(t, schematest.Schema(t), nil, holding("granular", "granular:scale"))
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON"} {
		response, text := post(t, server, "/admit/granular?timeout=10s", contentType, encode(t, review(scaling())))
		var out admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(text), &out); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", response.StatusCode, text)
		}
		if out.APIVersion != "admission.k8s.io/v1" || out.Kind != "AdmissionReview" || out.Request != nil || out.Response.UID != "u-1" || !out.Response.Allowed || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s", text)
		}
	}
	if seen.all[0] != "granular allowed" {
		t.Errorf("observed %q", seen.all)
	}
}

func TestWire_ErrorsOfADecisionAreInTheReview(t *testing.T) {
	server, seen := serve(t, schematest.Schema(t), nil, &holder{fails: map[string]error{"update": errors.New("boom")}})
	missing := scaling()
	missing.OldObject.Raw = nil
	for want, req := range map[int32]*admissionv1.AdmissionRequest{500: scaling(), 400: missing} {
		response, text := post(t, server, "/admit/granular", "application/json", encode(t, review(req)))
		var out admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(text), &out); err != nil || response.StatusCode != http.StatusOK || out.Response.Allowed || out.Response.UID != "u-1" || out.Response.Result.Code != want {
			t.Errorf("%d: %d %s", want, response.StatusCode, text)
		}
	}
	if seen.all[0] != "granular error" {
		t.Errorf("observed %q", seen.all)
	}
}

func TestBadInput_BodyThatIsNoReview(t *testing.T) {
	server, seen := serve(t, schematest.Schema(t), nil, holding("granular", "granular:*", "update"))
	good := encode(t, review(scaling()))
	access := encode(t, authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, Spec: *asking("update", "apps", "deployments", "")})
	type bad struct {
		body string
		code int
		want string
	}
	both := map[string]bad{
		"empty":         {"", 400, "empty"},
		"no JSON":       {"hello", 400, "no "},
		"null":          {"null", 400, "apiVersion"},
		"a list":        {"[]", 400, ""},
		"a string":      {`"x"`, 400, ""},
		"cut off":       {good[:len(good)/2], 400, "no "},
		"another kind":  {`{"apiVersion":"v1","kind":"Pod"}`, 400, `kind "Pod"`},
		"invalid UTF-8": {"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"\xff\"}", 400, "UTF-8"},
		"oversized":     {`{"x":"` + strings.Repeat("x", maxBytes) + `"}`, 413, "--max-request-bytes"},
		"deeply nested": {strings.Repeat(`{"request":`, 5000) + "1" + strings.Repeat("}", 5000), 400, ""},
		"deep list":     {strings.Repeat("[", 30000) + strings.Repeat("]", 30000), 400, ""},
	}
	for _, path := range []string{"/admit/granular", "/admit/uncovered", "/admit/schemas", "/authorize"} {
		cases := map[string]bad{}
		for name, c := range both {
			cases[name] = c
		}
		if path == "/authorize" {
			cases["trailing data"] = bad{access + "{}", 400, "no SubjectAccessReview"}
			cases["wrong version"] = bad{strings.Replace(access, "/v1", "/v1beta1", 1), 400, "v1beta1"}
			cases["other review"] = bad{good, 400, "SubjectAccessReview"}
			cases["neither attributes"] = bad{`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"a"}}`, 400, "neither"}
			cases["spec stands twice"] = bad{strings.Replace(access, `"spec":`, `"spec":{},"spec":`, 1), 400, "spec"}
			cases["spec in upper case"] = bad{strings.Replace(access, `"spec":`, `"Spec":`, 1), 400, "neither"}
			cases["user stands twice"] = bad{strings.Replace(access, `"user":`, `"user":"admin","user":`, 1), 400, "user"}
		} else {
			cases["trailing data"] = bad{good + "{}", 400, "no AdmissionReview"}
			cases["trailing word"] = bad{good + " x", 400, "no AdmissionReview"}
			cases["wrong version"] = bad{strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), 400, "v1beta1"}
			cases["other review"] = bad{access, 400, "AdmissionReview"}
			cases["no request"] = bad{`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "no request"}
			cases["null request"] = bad{`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, 400, "no request"}
			cases["request is a number"] = bad{`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":1}`, 400, ""}
			cases["request in upper case"] = bad{strings.Replace(good, `"request":`, `"Request":`, 1), 400, "no request"}
			cases["request stands twice"] = bad{strings.Replace(good, `"request":`, `"request":{},"request":`, 1), 400, "request"}
			cases["object stands twice"] = bad{strings.Replace(good, `"object":`, `"object":{},"object":`, 1), 400, "object"}
			cases["user stands twice"] = bad{strings.Replace(good, `"username":`, `"username":"admin","username":`, 1), 400, "username"}
		}
		for name, c := range cases {
			t.Run(path+" "+name, func(t *testing.T) {
				response, text := post(t, server, path, "application/json", c.body)
				if response.StatusCode != c.code {
					t.Fatalf("got %d %.200s", response.StatusCode, text)
				}
				mustContain(t, text, c.want)
				if len(text) > 1000 || strings.Contains(text, `"allowed":true`) {
					t.Errorf("got %.1000s", text)
				}
			})
		}
	}
	for _, outcome := range seen.all {
		if !strings.HasSuffix(outcome, " refused") && outcome != "authorize error" {
			t.Errorf("observed %q", outcome)
		}
	}
}

func TestBadInput_MethodContentTypeAndEncoding(t *testing.T) {
	server, _ := serve(t, schematest.Schema(t), nil, holding("granular", "granular:*"))
	body := encode(t, review(scaling()))
	for _, path := range []string{"/admit/granular", "/admit/uncovered", "/admit/schemas", "/authorize"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			response, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "POST" {
				t.Errorf("%s %s: %d, Allow %q", method, path, response.StatusCode, response.Header.Get("Allow"))
			}
		}
		for _, contentType := range []string{"", "text/plain", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json-patch+json", ";"} {
			if response, text := post(t, server, path, contentType, body); response.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(text, "application/json") {
				t.Errorf("%s %q: %d %s", path, contentType, response.StatusCode, text)
			}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Content-Encoding", "gzip")
		if response, err := server.Client().Do(req); err != nil {
			t.Fatal(err)
		} else if response.Body.Close(); response.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("gzip: %d", response.StatusCode)
		}
	}
}

func TestBadInput_OversizedBodyWithoutLength(t *testing.T) {
	server, _ := serve(t, schematest.Schema(t), nil, holding())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/admit/granular", io.MultiReader(bytes.NewReader(bytes.Repeat([]byte(" "), maxBytes)), strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestP4_AuthorizeErrorIsHTTP500(t *testing.T) {
	body := encode(t, authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, Spec: *asking("update", "apps", "deployments", "")})
	server, seen := serve(t, nil, nil, &holder{holds: []string{"granular"}, fails: map[string]error{"granular": errors.New("boom")}})
	if response, text := post(t, server, "/authorize", "application/json", body); response.StatusCode != http.StatusInternalServerError || strings.Contains(text, "allowed") {
		t.Errorf("got %d %s", response.StatusCode, text)
	}
	if seen.all[0] != "authorize error" {
		t.Errorf("observed %q", seen.all)
	}
	server, _ = serve(t, nil, nil, holding("granular", "get"))
	response, text := post(t, server, "/authorize", "application/json", body)
	var out authorizationv1.SubjectAccessReview
	if err := json.Unmarshal([]byte(text), &out); err != nil || response.StatusCode != http.StatusOK || out.Kind != "SubjectAccessReview" || out.APIVersion != "authorization.k8s.io/v1" || !out.Status.Allowed {
		t.Errorf("got %d %s", response.StatusCode, text)
	}
}

func TestP4_AnswerIsSentBeforeTheTimeoutOfTheCaller(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": 9500 * time.Millisecond, "?timeout=10s": 9500 * time.Millisecond, "?timeout=3s": 2500 * time.Millisecond,
		"?timeout=600ms": 300 * time.Millisecond, "?timeout=1h": 29500 * time.Millisecond, "?timeout=-1s": 9500 * time.Millisecond, "?timeout=x": 9500 * time.Millisecond,
	} {
		if got := patience(httptest.NewRequest(http.MethodPost, "/admit/granular"+query, nil)); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
