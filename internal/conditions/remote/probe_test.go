package remote

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// TestK3_AProbeJudgesTheDialect: a review in the dialect and a refusal of the condition are answers, and nothing else is.
func TestK3_AProbeJudgesTheDialect(t *testing.T) {
	text := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	const plain, json = "text/plain", "application/json"
	review := `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string // "" for an endpoint that answers
	}{
		"a refusal that names the condition": {text(400, plain, `condition "fieldperm.dev/health-check" is not known`), ""},
		"the same as JSON":                   {text(422, json, `{"unknown":["fieldperm.dev/health-check"]}`), ""},
		"a Status":                           {text(400, json, `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"what?"}`), ""},
		"a failed evaluation":                {text(200, json, review+`{"allowed":false,"evaluationError":"what?"}}`), ""},
		"a denial":                           {text(200, json, review+`{"allowed":false,"denied":true}}`), ""},
		"a refusal of something":             {text(400, plain, "review.kind: is not SubjectAccessReview"), "rejected our request"},
		"no Status":                          {text(400, json, `{"apiVersion":"v1","kind":"Status","status":"Success"}`), "rejected our request"},
		"no such path":                       {text(404, json, `{"apiVersion":"v1","kind":"Status","status":"Failure"}`), "could not find"},
		"no credentials":                     {text(401, plain, `fieldperm.dev/health-check`), "client to provide credentials"},
		"a failure":                          {text(500, plain, "fieldperm.dev/health-check"), "an error on the server"},
		"a SubjectAccessReview":              {text(200, json, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":false}}`), "AuthorizationConditionsReview"},
		"conditions":                         {text(200, json, review+`{"allowed":false,"conditionSetChain":[]}}`), "no answer"},
		"a page":                             {text(200, "text/html", "<html>"), "review"},
		"a redirect":                         {text(302, plain, ""), "redirects"},
		"no answer in time":                  {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			a, _ := serve(t, wire.ConditionSetChain, func(config *Config, p *peer) {
				config.Timeout = 200 * time.Millisecond
				p.answer["/conditions"] = func(w http.ResponseWriter, r *http.Request) { asked.Add(1); c.answer(w, r) }
			})
			err := a.Probe(t.Context(), "checker")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || asked.Load() != 1 {
				t.Errorf("%v after %d questions, want %q", err, asked.Load(), c.want)
			}
		})
	}
}

// TestK3_AProbeIsHarmless: in each dialect it asks about an object that is not stored, and an endpoint of another dialect is found out.
func TestK3_AProbeIsHarmless(t *testing.T) {
	for _, asks := range dialects {
		for _, speaks := range dialects {
			var asked wire.ConditionsRequest
			a, p := serve(t, asks, func(_ *Config, p *peer) { p.dialect = speaks })
			inner := p.ServeHTTP
			p.answer["/conditions"] = func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if asks == speaks {
					if asked, err = asks.ReadConditionsRequest(body); err != nil {
						t.Errorf("%s: %v", asks, err)
					}
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				delete(p.answer, "/conditions")
				inner(w, r)
			}
			err := a.Probe(t.Context(), "checker")
			if (err == nil) != (asks == speaks) {
				t.Errorf("%s asked in %s: %v", speaks, asks, err)
			}
			if of := asked.Admission; asks == speaks && (of == nil || of.DryRun == nil || !*of.DryRun || of.UserInfo.Username != "checker" || of.Resource.Group != "fieldperm.dev" || p.reviews.Load() != 0) {
				t.Errorf("%s: asked about %+v", asks, of)
			}
		}
	}
}
