package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestBody_ReleasedMemoryIsOverwritten: also that of a body which was longer than announced.
func TestBody_ReleasedMemoryIsOverwritten(t *testing.T) {
	for _, announced := range []int64{-1, 0, 1, 4 << 10, 4<<10 + 1, 100 << 10, 1 << 20, 2 << 20} {
		for _, length := range []int{1, 4 << 10, 4<<10 + 100, 5 << 10, 300 << 10} {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(bytes.Repeat([]byte("x"), length)))
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = announced
			got, err := read(httptest.NewRecorder(), r, 4<<20)
			if err != nil || len(got.bytes) != length || bytes.Count(got.bytes, []byte("x")) != length {
				t.Fatalf("announced %d, sent %d: %d bytes, %v", announced, length, len(got.bytes), err)
			}
			if most := max(2*announced, 0) + 8<<10; int64(cap(got.memory)) > most {
				t.Errorf("announced %d: takes %d bytes", announced, cap(got.memory))
			}
			kept, memory := got.bytes, got.memory[:cap(got.memory)]
			got.release()
			if bytes.Contains(kept, []byte("x")) || bytes.Contains(memory, []byte("x")) {
				t.Errorf("announced %d, sent %d: the bytes are still there", announced, length)
			}
		}
	}
}

// kept are texts that outlive a review, with copies of them.
type kept struct {
	mu    sync.Mutex
	texts [][2]string
}

func (k *kept) keep(texts ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, text := range texts {
		k.texts = append(k.texts, [2]string{text, strings.Clone(text)})
	}
}

func (k *kept) request(req *admissionv1.AdmissionRequest) {
	u := &req.UserInfo
	k.keep(string(req.UID), req.Kind.Kind, req.Resource.Group, req.Resource.Resource, req.SubResource, req.Namespace, req.Name, string(req.Operation), u.Username, u.UID)
	k.keep(u.Groups...)
	for key, values := range u.Extra {
		k.keep(append([]string{key}, values...)...)
	}
	k.keep(RequestedResource(req).Resource, resourceName(req))
}

// Authorize denies, and keeps the verb.
func (k *kept) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	k.keep(verb)
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(verb == "granular" || verb == "get")}, nil
}

// Unmet implements Conditions.
func (k *kept) Unmet([]string) []fieldperm.Unmet { return nil }

// labelled is an update of a label, whose key is a parameter of a verb.
func labelled(key string) *admissionv1.AdmissionRequest {
	out := scaling()
	out.UID, out.DryRun = types.UID("uid of "+key), new(bool)
	out.RequestResource = &metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	out.UserInfo.Groups, out.UserInfo.Extra = []string{"group"}, map[string]authenticationv1.ExtraValue{"some/key": {"value"}}
	out.Object.Raw = []byte(strings.Replace(string(out.OldObject.Raw), `"metadata":{`, `"metadata":{"labels":{"`+key+`":"x"},`, 1))
	return out
}

// TestBody_NothingRefersToAReleasedBody runs all reviewers, and compares what outlives a review with what it was.
func TestBody_NothingRefersToAReleasedBody(t *testing.T) {
	k, w := &kept{}, &watcher{watches: true, warns: true, audits: true}
	s := schematest.Schema(t, scaleIsUncovered)
	writes := reviewer(s, nil)
	writes.Authorizer = func(req *admissionv1.AdmissionRequest) fieldperm.Authorizer { k.request(req); return k }
	var raw [][]byte
	writes.Conditional = func(write *Write, _ fieldperm.Authorizer) (Conditions, error) {
		raw = append(raw, write.Request.Object.Raw, write.Request.OldObject.Raw)
		for _, c := range write.Changes {
			k.keep(c.Path.String())
			for _, v := range c.Chain {
				k.keep(v.String())
			}
		}
		return nil, nil
	}
	first := authorizeReviewer(nil)
	first.Authorizer = func(spec *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer {
		a := spec.ResourceAttributes
		k.keep(spec.User, spec.UID, a.Namespace, a.Verb, a.Group, a.Version, a.Resource, a.Subresource, a.Name)
		k.keep(spec.Groups...)
		for key, values := range spec.Extra {
			k.keep(append([]string{key}, values...)...)
		}
		return k
	}
	h := Handlers{
		MaxBytes: 1 << 20,
		Observe:  func(endpoint string, outcome Outcome, _ int, _ time.Duration) { k.keep(endpoint, string(outcome)) },
		Decided:  func(endpoint Endpoint, mode fieldperm.Mode, _ bool) { k.keep(string(endpoint), string(mode)) },
		Share:    func(_ context.Context, user string, _ bool) bool { k.keep(user); return true },
	}
	documents := schematest.Documents(t)
	handlers := map[string]http.Handler{
		"granular": h.ReviewHandler(Granular, writes), "uncovered": h.ReviewHandler(Uncovered, writes), "observed": h.ObservationHandler(writes, w), "tried": h.TrialHandler(writes),
		"schemas": h.SchemaHandler(&SchemaReviewer{Documents: func() *compile.Documents { return &documents }}),
	}
	unusual := strings.NewReplacer(`"operation"`, `"newField":{},"operation"`) // The library decodes it.
	for name, handler := range handlers {
		for _, key := range []string{"example.com/a", `exa\u006dple.com/b`, strings.Repeat("long.example.com/", 30)} {
			for _, body := range []string{encode(t, review(labelled(key))), unusual.Replace(encode(t, review(labelled(key))))} {
				code, answer := postTo(t, handler, []byte(body))
				if code != http.StatusOK {
					t.Fatalf("%s: %d %s", name, code, answer)
				}
			}
		}
	}
	for _, o := range w.recorded {
		k.keep(append([]string{o.Refused}, o.Verbs...)...)
		for _, verb := range o.Verbs {
			if !strings.HasPrefix(verb, "granular:") {
				t.Errorf("observed %q", verb)
			}
		}
	}
	for _, body := range []string{wholeAccess, strings.Replace(wholeAccess, `"metadata":{}`, `"metadata":{"name":"x"}`, 1)} {
		if code, answer := postTo(t, h.AuthorizeHandler(first), []byte(body)); code != http.StatusOK || !strings.Contains(string(answer), `"allowed":true`) {
			t.Fatalf("%d %s", code, answer)
		}
	}
	for _, d := range wire.All() {
		if one, two := served(t, d, first, writes, asking("update", "apps", "deployments", ""), labelled("example.com/a")); !one.IsUnconditional() && two.IsAllow() {
			t.Fatalf("%s: %s, %s", d, one, two)
		}
	}
	for _, text := range k.texts {
		if text[0] != text[1] {
			t.Errorf("%q has become %q", text[1], text[0])
		}
	}
	overwritten := 0
	for _, bytes := range raw {
		if len(bytes) > 0 && bytes[0] == 0 {
			overwritten++
		}
	}
	if len(k.texts) < 500 || overwritten < len(raw)/2 {
		t.Errorf("%d texts, %d of %d objects overwritten: the test proves little", len(k.texts), overwritten, len(raw))
	}
}

// TestBody_ConcurrentReviewsDoNotMix: each denial is about the request that it answers.
func TestBody_ConcurrentReviewsDoNotMix(t *testing.T) {
	server, _ := serve(t, schematest.Schema(t), nil, holding("granular"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 40 {
				key := fmt.Sprintf("example.com/%d-%d-%s", i, j, strings.Repeat("x", i*j))
				body := encode(t, review(labelled(key)))
				response, err := server.Client().Post(server.URL+"/admit/granular", "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || !strings.Contains(string(answer), `"uid":"uid of `+key+`"`) || !strings.Contains(string(answer), key+"]") && !strings.Contains(string(answer), key+`\"`) {
					t.Errorf("%s: %s, %v", key, answer, err)
				}
			}
		})
	}
	all.Wait()
}
