package review

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

func TestC1_AllowedAndDeniedReportsAreComplete(t *testing.T) {
	for name, test := range map[string]struct {
		caller, fields string
		allowed        bool
		mode           string
	}{
		"granular verb":        {"alice", scale, true, "granular"},
		"generic verb":         {"bob", scale, true, "generic"},
		"neither":              {"carol", scale, false, "none"},
		"create":               {"bob", about + `,"operation":"CREATE","object":` + one, false, "none"},
		"C4 delete":            {"alice", about + `,"operation":"DELETE","oldObject":` + one, false, "none"},
		"D11 subresource":      {"alice", about + `,"subResource":"status","operation":"UPDATE","oldObject":` + one + `,"object":` + two, true, "granular"},
		"D7 without uid":       {"alice", scale, true, "granular"},
		"D10 nothing changes":  {"alice", about + `,"operation":"UPDATE","oldObject":` + one + `,"object":` + one, true, "granular"},
		"uid and dry run sent": {"alice", scale + `,"uid":"1","dryRun":true`, true, "granular"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).post(named(test.caller), question(test.fields))
			expect(t, w, http.StatusOK, `"checks"`)
			var got Report
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if got.Allowed != test.allowed || got.Mode != test.mode || got.Allowed != (got.Message == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// The name and the namespace, which matter for grants, are taken from the object if the question does not repeat them.
func TestQuestionTakesNameAndNamespaceFromTheObject(t *testing.T) {
	const space = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`
	const namespaces = `"resource":{"version":"v1","resource":"namespaces"},"kind":{"version":"v1","kind":"Namespace"}`
	for name, test := range map[string]struct{ fields, namespace, name string }{
		"from the object":     {scale, "shop", "web"},
		"from the old object": {about + `,"operation":"DELETE","oldObject":` + one, "shop", "web"},
		"as sent":             {scale + `,"name":"other","namespace":"shop"`, "shop", "other"},
		"of a namespace":      {namespaces + `,"operation":"DELETE","oldObject":` + space, "shop", "shop"},
		"twice in the object": {about + `,"operation":"DELETE","oldObject":` + strings.Replace(one, `"name":"web"`, `"name":"web","name":"other"`, 1), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.post(named("alice"), question(test.fields))
			if len(f.grants.asked) != 1 || f.grants.asked[0].Namespace != test.namespace || f.grants.asked[0].Name != test.name {
				t.Errorf("asked %+v", f.grants.asked)
			}
		})
	}
}

func TestP4_RefusedQuestionsSayWhatToDo(t *testing.T) {
	const update = about + `,"operation":"UPDATE"`
	without := func(part string) string { return strings.Replace(scale, part, "", 1) }
	for name, test := range map[string]struct {
		body, want string
	}{
		"empty":                       {"", "body is empty: send one JSON document"},
		"no JSON":                     {"{", "send one JSON document of apiVersion"},
		"YAML":                        {"kind: AdmissionReview\n", "send one JSON document of apiVersion"},
		"null":                        {"null", `send apiVersion "admission.k8s.io/v1"`},
		"a list":                      {"[]", "send one JSON document"},
		"two documents":               {question(scale) + question(scale), "send one JSON document"},
		"another kind":                {`{"apiVersion":"v1","kind":"Pod"}`, `send apiVersion "admission.k8s.io/v1", kind "AdmissionReview"`},
		"another version":             {strings.Replace(question(scale), "k8s.io/v1", "k8s.io/v1beta1", 1), `send apiVersion "admission.k8s.io/v1"`},
		"no request":                  {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "send one with .request"},
		"null request":                {`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, "send one with .request"},
		"not UTF-8":                   {question(strings.Replace(scale, `"web"`, "\"w\xffb\"", 1)), "invalid UTF-8"},
		"duplicate key":               {question(scale + `,"operation":"DELETE"`), `duplicate object member name "operation" within "/request"`},
		"another case":                {question(scale + `,"Operation":"DELETE"`), `unknown field "request.Operation": correct the name`},
		"unknown key":                 {question(scale + `,"user":"bob"`), `unknown field "request.user": correct the name`},
		"unknown key of 100 kB":       {question(scale + `,"` + strings.Repeat("x", 100_000) + `":1`), "…: correct the name"},
		"wrong type":                  {question(strings.Replace(scale, `"UPDATE"`, "1", 1)), "send one JSON document"},
		"empty request":               {question(""), ".request.resource lacks"},
		"no resource":                 {question(`"operation":"UPDATE"`), `send all of it, such as {"group":"apps"`},
		"resource without version":    {question(without(`"version":"v1",`)), ".request.resource lacks"},
		"subresource in the resource": {question(strings.Replace(scale, `"deployments"`, `"deployments/scale"`, 1)), "send that as .request.subResource"},
		"no kind":                     {question(without(`,"kind":{"group":"apps","version":"v1","kind":"Deployment"}`)), ".request.kind lacks"},
		"kind without version":        {question(strings.Replace(scale, `"version":"v1","kind"`, `"kind"`, 1)), ".request.kind lacks"},
		"no operation":                {question(about), "send CREATE, UPDATE, DELETE or CONNECT"},
		"lower-case operation":        {question(about + `,"operation":"update"`), "send CREATE, UPDATE, DELETE or CONNECT"},
		"W1 connect":                  {question(about + `,"operation":"CONNECT"`), `operation "CONNECT" changes no object: send CREATE, UPDATE or DELETE`},
		"no object":                   {question(update + `,"oldObject":` + one), ".request.object is missing"},
		"null object":                 {question(update + `,"oldObject":` + one + `,"object":null`), ".request.object is missing"},
		"no old object":               {question(update + `,"object":` + one), ".request.oldObject is missing"},
		"object is a string":          {question(update + `,"oldObject":` + one + `,"object":"web"`), "is no JSON object"},
		"object does not fit":         {question(update + `,"oldObject":` + one + `,"object":` + strings.Replace(two, `"replicas":2`, `"template":[]`, 1)), ".spec.template"},
		"object of another kind":      {question(strings.Replace(scale, `"Deployment","metadata"`, `"Pod","metadata"`, 1)), `.request.oldObject is of apiVersion "apps/v1", kind "Pod"`},
		"object of another version":   {question(strings.Replace(scale, `"apps/v1"`, `"v1"`, 1)), "send the same for both"},
		"object in another namespace": {question(scale + `,"namespace":"prod"`), `.request.object is in namespace "shop", and .request.namespace is "prod"`},
		"object moves":                {question(strings.Replace(scale, `"namespace":"shop"`, `"namespace":"prod"`, 1)), `.request.oldObject is in namespace "prod"`},
		"100,000 levels":              {question(update + `,"oldObject":` + one + `,"object":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).post(named("alice"), test.body)
			expect(t, w, http.StatusBadRequest, test.want)
			if w.Body.Len() > 2048 {
				t.Errorf("the text has %d bytes: it is for reading", w.Body.Len())
			}
		})
	}
}

func TestP4_CodesOfBadRequests(t *testing.T) {
	send := func(method, contentType, body string) *http.Request {
		r := httptest.NewRequest(method, "/review", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		return r
	}
	compressed := send(http.MethodPost, "application/json", question(scale))
	compressed.Header.Set("Content-Encoding", "gzip")
	unsized := send(http.MethodPost, "application/json", question(scale)+strings.Repeat(" ", maxBytes))
	unsized.ContentLength = -1
	for name, test := range map[string]struct {
		request *http.Request
		code    int
		want    string
	}{
		"GET":                         {send(http.MethodGet, "application/json", ""), http.StatusMethodNotAllowed, "use POST"},
		"PUT":                         {send(http.MethodPut, "application/json", question(scale)), http.StatusMethodNotAllowed, "use POST"},
		"no content type":             {send(http.MethodPost, "", question(scale)), http.StatusUnsupportedMediaType, "use application/json"},
		"YAML":                        {send(http.MethodPost, "application/yaml", question(scale)), http.StatusUnsupportedMediaType, "use application/json"},
		"the content type of curl -d": {send(http.MethodPost, "application/x-www-form-urlencoded", question(scale)), http.StatusUnsupportedMediaType, "use application/json"},
		"compressed":                  {compressed, http.StatusUnsupportedMediaType, "send the body as it is"},
		"large":                       {send(http.MethodPost, "application/json", strings.Repeat(" ", maxBytes+1)), http.StatusRequestEntityTooLarge, "--max-request-bytes"},
		"large without a size":        {unsized, http.StatusRequestEntityTooLarge, "--max-request-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.serve(named("alice"), test.request)
			expect(t, w, test.code, test.want)
			if allow := w.Header().Get("Allow"); (allow == http.MethodPost) != (test.code == http.StatusMethodNotAllowed) {
				t.Errorf("Allow is %q", allow)
			}
			f.undecided(t)
		})
	}
}

func TestP4_AMissingAnswerIsNoDenial(t *testing.T) {
	for name, test := range map[string]struct {
		with   func(*fixture)
		fields string
		code   int
		want   string
	}{
		"authorizer fails":    {func(f *fixture) { f.grants.err = errors.New("etcd is down") }, scale, http.StatusInternalServerError, "etcd is down"},
		"authorizer is slow":  {func(f *fixture) { f.grants.err = context.DeadlineExceeded }, scale, http.StatusServiceUnavailable, "deadline"},
		"no schema yet":       {func(f *fixture) { f.Reviewer.Schema = func() *schema.Schema { return nil } }, scale, http.StatusServiceUnavailable, "try again"},
		"unknown kind":        {func(*fixture) {}, strings.ReplaceAll(scale, `"Deployment"`, `"Deploymint"`), http.StatusServiceUnavailable, "if .request.kind is misspelt, GET /permissions lists the kinds"},
		"no reviewer":         {func(f *fixture) { f.Reviewer = nil }, scale, http.StatusInternalServerError, "configure one"},
		"no authorizer":       {func(f *fixture) { f.Reviewer.Authorizer = nil }, scale, http.StatusInternalServerError, "configure one"},
		"the zero API":        {func(f *fixture) { f.API = API{} }, scale, http.StatusRequestEntityTooLarge, "0 bytes"},
		"no right to be read": {func(f *fixture) { f.reviewErr = errors.New("etcd is down") }, scale + `,"userInfo":{"username":"bob"}`, http.StatusInternalServerError, "whether the caller may ask about others: etcd is down: try again"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			test.with(f)
			w := f.post(named("alice"), question(test.fields))
			expect(t, w, test.code, test.want)
			if retry := w.Header().Get("Retry-After"); (retry != "") != (test.code == http.StatusServiceUnavailable) {
				t.Errorf("Retry-After is %q", retry)
			}
		})
	}
}

// When the caller disconnects, the question ends.
func TestP4_AReviewEndsWithItsCaller(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := false
	f.Reviewer.Authorizer = func(*admissionv1.AdmissionRequest) fieldperm.Authorizer {
		return authorizerFunc(func(ctx context.Context) error {
			seen = true
			cancel()
			return ctx.Err()
		})
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/review", strings.NewReader(question(scale)))
	r.Header.Set("Content-Type", "application/json")
	expect(t, f.serve(named("alice"), r), http.StatusServiceUnavailable, "canceled")
	if !seen {
		t.Error("the authorizer was not asked")
	}
}

// authorizerFunc denies, or returns an error.
type authorizerFunc func(context.Context) error

func (f authorizerFunc) Authorize(ctx context.Context, _ string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{}, f(ctx)
}
