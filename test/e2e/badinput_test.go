//go:build integration

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	reviewHead = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"namespace":"default","name":"a","userInfo":{"username":"nobody"}`
	oldPart    = `,"oldObject":{"data":{"k":"v"}}`
	newPart    = `,"object":{"data":{"k":"w"}}`
	end        = `}}`
)

// TestBadInput_Admission sends the real binary requests that no API server would send. Every request gets a clear answer, none is allowed,
// and fieldperm continues to run.
func TestBadInput_Admission(t *testing.T) {
	s := start(t)
	kind := func(text string) string { return strings.Replace(reviewHead, `"ConfigMap"`, text, 1) }
	for _, c := range []struct {
		name, body string
		// code is the status code of the answer. inner, if set, is the code of the response in an answer with 200.
		code  int
		inner int32
		says  string
	}{
		{"nothing", "", 400, 0, "empty"},
		{"no JSON", "hello", 400, 0, "no AdmissionReview"},
		{"half a document", reviewHead, 400, 0, "no AdmissionReview"},
		{"null", "null", 400, 0, "AdmissionReview"},
		{"no AdmissionReview", `{"apiVersion":"v1","kind":"Pod"}`, 400, 0, `kind "Pod"`},
		{"an empty object", `{}`, 400, 0, "AdmissionReview"},
		{"another version", strings.Replace(reviewHead+oldPart+newPart+end, "k8s.io/v1", "k8s.io/v1beta1", 1), 400, 0, "v1beta1"},
		{"no request", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, 0, "no request"},
		{"request null", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, 400, 0, "no request"},
		{"request twice", reviewHead + oldPart + newPart + `},"request":{}}`, 400, 0, "request"},
		{"two documents", reviewHead + oldPart + newPart + end + `{}`, 400, 0, ""},
		{"invalid UTF-8", reviewHead + oldPart + `,"object":{"data":{"k":"` + "\xff" + `"}}` + end, 400, 0, "UTF-8"},
		{"no object", reviewHead + oldPart + end, 200, 400, "object"},
		{"object null", reviewHead + oldPart + `,"object":null` + end, 200, 400, "object"},
		{"no old object", reviewHead + newPart + end, 200, 400, "oldObject"},
		{"no user", strings.Replace(reviewHead, `"nobody"`, `""`, 1) + oldPart + newPart + end, 200, 400, "user"},
		{"no resource", strings.Replace(reviewHead, `"resource":"configmaps"`, `"resource":""`, 1) + oldPart + newPart + end, 200, 400, "resource"},
		{"an operation of its own", strings.Replace(reviewHead, `"UPDATE"`, `"MERGE"`, 1) + oldPart + newPart + end, 200, 400, "MERGE"},
		{"CONNECT", strings.Replace(reviewHead, `"UPDATE"`, `"CONNECT"`, 1) + oldPart + newPart + end, 200, 400, "CONNECT"},
		{"an unknown kind", kind(`"Gizmo"`) + oldPart + newPart + end, 200, 503, "Gizmo"},
		{"an object that does not fit", reviewHead + oldPart + `,"object":{"data":["k"]}` + end, 200, 500, ".data"},
		{"an object that is a list", reviewHead + oldPart + `,"object":[]` + end, 200, 500, "object"},
		{"a name of 10 KB", strings.Replace(reviewHead, `"a"`, `"`+strings.Repeat("a", 10<<10)+`"`, 1) + oldPart + newPart + end, 200, 403, "forbidden"},
		{"a label of 10 KB", reviewHead + oldPart + `,"object":{"metadata":{"labels":{"` + strings.Repeat("l", 10<<10) + `":"v"}},"data":{"k":"v"}}` + end, 200, 403, "forbidden"},
		{"deeply nested", reviewHead + oldPart + `,"object":{"data":` + strings.Repeat(`{"a":`, 200000) + "1" + strings.Repeat("}", 200000) + "}" + end, 400, 0, ""},
		{"nested as deep as the wire allows", reviewHead + oldPart + `,"object":{"x":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000) + "}" + end, 200, 403, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{"/admit/granular", "/admit/uncovered"} {
				code, body := post(t, s, path, "application/json", strings.NewReader(c.body))
				if code != c.code {
					t.Fatalf("%s: code %d, want %d: %.300s", path, code, c.code, body)
				}
				if len(body) > 64<<10 {
					t.Errorf("%s: an answer of %d bytes", path, len(body))
				}
				if code == 200 {
					body = inner(t, path, body, c.inner)
				}
				if !strings.Contains(body, c.says) && (path == "/admit/granular" || c.inner != 403) {
					t.Errorf("%s: %.300q does not say %q", path, body, c.says)
				}
			}
		})
	}
	alive(t, s)
}

// inner returns the message of a response that must not be an Allow. If no barrier is concerned, the uncovered webhook has no reason to
// deny.
func inner(t *testing.T, path, body string, code int32) string {
	t.Helper()
	var review admissionv1.AdmissionReview
	must(t, json.Unmarshal([]byte(body), &review))
	if review.Response == nil || review.Response.UID != "u" {
		t.Fatalf("%s: no response for the request: %.300s", path, body)
	}
	if path == "/admit/uncovered" && code == 403 {
		return ""
	}
	if review.Response.Allowed || review.Response.Result == nil || review.Response.Result.Code != code {
		t.Fatalf("%s: allowed %v, result %+v, want code %d", path, review.Response.Allowed, review.Response.Result, code)
	}
	return review.Response.Result.Message
}

// TestBadInput_HTTP tests the checks before the body is read.
func TestBadInput_HTTP(t *testing.T) {
	s := start(t)
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	good := reviewHead + oldPart + newPart + end
	for path, most := range map[string]int{"/admit/granular": 32 << 20, "/admit/uncovered": 32 << 20, "/admit/schemas": 32 << 20, "/authorize": 8 << 20} {
		response, err := client.Get(s.WebhookURL() + path)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %d", path, response.StatusCode)
		}
		if code, body := post(t, s, path, "text/plain", strings.NewReader(good)); code != http.StatusUnsupportedMediaType {
			t.Errorf("%s as text: %d %s", path, code, body)
		}
		if code, _ := post(t, s, path, "application/json", strings.NewReader(good+strings.Repeat(" ", most))); code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s of more than %d bytes: %d", path, most, code)
		}
		// The body has no length that is known in advance.
		if code, _ := post(t, s, path, "application/json", io.MultiReader(strings.NewReader(good), strings.NewReader(strings.Repeat(" ", most)))); code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s of more than %d bytes in pieces: %d", path, most, code)
		}
	}
	if code, _ := post(t, s, "/nothing", "application/json", strings.NewReader(good)); code != http.StatusNotFound {
		t.Errorf("/nothing: %d", code)
	}
	trust := client.Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.Certificates = []tls.Certificate{}
	anonymous := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	defer anonymous.CloseIdleConnections()
	for _, path := range []string{"/admit/granular", "/authorize", "/metrics"} {
		response, err := anonymous.Post(s.WebhookURL()+path, "application/json", strings.NewReader(good))
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a certificate: %d", path, response.StatusCode)
		}
	}
	alive(t, s)
}

// TestBadInput_Authorize sends invalid SubjectAccessReviews.
func TestBadInput_Authorize(t *testing.T) {
	s := start(t)
	const head = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":`
	for name, body := range map[string]string{
		"no attributes":       head + `{"user":"a"}}`,
		"both attributes":     head + `{"user":"a","resourceAttributes":{"verb":"update"},"nonResourceAttributes":{"path":"/"}}}`,
		"nobody":              head + `{"resourceAttributes":{"verb":"update","resource":"configmaps"}}}`,
		"no spec":             `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"}`,
		"an AdmissionReview":  reviewHead + oldPart + newPart + end,
		"no JSON":             "hello",
		"spec twice":          head + `{},"spec":{}}`,
		"deeply nested extra": head + `{"user":"a","extra":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`,
	} {
		code, answer := post(t, s, "/authorize", "application/json", strings.NewReader(body))
		if code != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400: %.300s", name, code, answer)
		}
	}
	code, answer := post(t, s, "/authorize", "application/json", strings.NewReader(head+`{"user":"a","resourceAttributes":{"verb":"update","resource":"configmaps"}}}`))
	var review authorizationv1.SubjectAccessReview
	must(t, json.Unmarshal([]byte(answer), &review))
	if code != http.StatusOK || review.Status.Allowed || review.Status.Denied {
		t.Errorf("a review that makes sense: %d %s", code, answer)
	}
	alive(t, s)
}

func post(t *testing.T, s *stack.Stack, path, contentType string, body io.Reader) (int, string) {
	t.Helper()
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Post(s.WebhookURL()+path, contentType, body)
	must(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(bytes.TrimSpace(raw))
}

func alive(t *testing.T, s *stack.Stack) {
	t.Helper()
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	for _, path := range []string{"/livez", "/readyz"} {
		response, err := client.Get(s.WebhookURL() + path)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}
