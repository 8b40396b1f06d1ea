package admission

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// watcher watches every request.
type watcher struct {
	watches, warns, audits bool
	recorded               []*Observation
	failed                 int
}

func (w *watcher) Watch(*admissionv1.AdmissionRequest) Watch {
	if !w.watches {
		return nil
	}
	return w
}
func (w *watcher) Warns() bool           { return w.warns }
func (w *watcher) Audits() bool          { return w.audits }
func (w *watcher) Record(o *Observation) { w.recorded = append(w.recorded, o) }
func (w *watcher) Fail()                 { w.failed++ }

// respond sends a request to a handler, and returns the response.
func respond(t *testing.T, handler http.Handler, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	review := admissionv1.AdmissionReview{Request: req}
	review.APIVersion, review.Kind = admissionVersion, "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK || out.Response == nil || out.Response.UID != req.UID {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return out.Response
}

// P9: an observation allows every update, whatever the user holds and whatever fails.
func TestP9_ObservedUpdatesAreAllowed(t *testing.T) {
	create := scaling()
	create.Operation = admissionv1.Create
	unknown := scaling()
	unknown.Kind.Kind = "Unknown"
	const refused = `without update and patch this write is refused: deployments.apps "web" is forbidden: User "alice" may not `
	for name, c := range map[string]struct {
		watcher  *watcher
		holder   *holder
		request  *admissionv1.AdmissionRequest
		warning  string
		audit    map[string]string
		recorded string
		failed   int
	}{
		"not observed":     {&watcher{warns: true, audits: true}, holding(), scaling(), "", nil, "", 0},
		"observed":         {&watcher{watches: true}, holding("update"), scaling(), "", nil, "granular:scale ", 0},
		"audited":          {&watcher{watches: true, audits: true}, holding("update"), scaling(), "", map[string]string{"mode": "observed", "fields": "granular:scale"}, "granular:scale ", 0},
		"with the verbs":   {&watcher{watches: true, warns: true}, holding("update", "granular", "granular:scale"), scaling(), "", nil, "granular:scale ", 0},
		"without the verb": {&watcher{watches: true, warns: true, audits: true}, holding("update", "granular"), scaling(), refused + "change .spec.replicas", map[string]string{"mode": "observed", "fields": "granular:scale", "refused": "+"}, "granular:scale refused", 0},
		"without a marker": {&watcher{watches: true, warns: true}, holding("update", "granular:scale"), scaling(), refused + "update it", nil, "granular:scale refused", 0},
		"a create":         {&watcher{watches: true, warns: true}, holding("create"), create, "", nil, "", 0},
		"an unknown kind":  {&watcher{watches: true, audits: true}, holding("update"), unknown, "", map[string]string{"error": "+"}, "", 1},
		"a failing verb":   {&watcher{watches: true, warns: true}, &holder{fails: map[string]error{"granular": errors.New("down")}}, scaling(), "", map[string]string{"error": "+"}, "", 1},
		"the probe's user": {&watcher{watches: true, warns: true}, holding(), probeOf(scaling()), "", nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := respond(t, Handlers{MaxBytes: maxBytes}.ObservationHandler(reviewer(schematest.Schema(t), c.holder), c.watcher), c.request)
			warning := strings.Join(got.Warnings, "|")
			if !got.Allowed || got.Result != nil || (c.warning == "") != (warning == "") || !strings.HasPrefix(warning, c.warning) {
				t.Errorf("allowed %t, %+v, warning %q, want %q", got.Allowed, got.Result, warning, c.warning)
			}
			for key, value := range c.audit {
				if is := got.AuditAnnotations[key]; is != value && (value != "+" || is == "") {
					t.Errorf("annotation %s is %q, want %q", key, is, value)
				}
			}
			if len(got.AuditAnnotations) != len(c.audit) {
				t.Errorf("annotations %v, want %v", got.AuditAnnotations, c.audit)
			}
			recorded := ""
			for _, o := range c.watcher.recorded {
				recorded += strings.Join(o.Verbs, ",") + " "
				if o.Refused != "" {
					recorded += "refused"
				}
			}
			if recorded != c.recorded || c.watcher.failed != c.failed {
				t.Errorf("recorded %q, %d failed", recorded, c.watcher.failed)
			}
		})
	}
}

// K4: a condition on changes sees each scalar of an added item in an observation too.
func TestK4_P9_ConditionsOfAnObservationSeeEveryChange(t *testing.T) {
	req := update(`{"template":{"spec":{"containers":[]}}}`, `{"template":{"spec":{"containers":[{"name":"web","image":"nginx"}]}}}`)
	var seen []string
	r := reviewer(schematest.Schema(t), holding("update"))
	r.Conditional = func(w *Write, _ fieldperm.Authorizer) (Conditions, error) {
		parts, err := w.Parts()
		if err != nil {
			t.Error(err)
		}
		for i := range parts {
			seen = append(seen, parts[i].Path.String())
		}
		return nil, nil
	}
	respond(t, Handlers{MaxBytes: maxBytes}.ObservationHandler(r, &watcher{watches: true}), req)
	if image := `.spec.template.spec.containers[?(@.name=="web")].image`; !slices.ContainsFunc(seen, func(path string) bool { return strings.HasSuffix(path, ".image") }) {
		t.Errorf("conditions see %q, not %s", seen, image)
	}
}

func probeOf(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	req.UserInfo.Username = ProbeUser
	return req
}

// P9: what fieldperm refuses is no evidence: a barrier in force refuses it, or a user without the generic permission lacks the verb.
func TestP9_ADeniedUpdateIsNotCounted(t *testing.T) {
	const tried = "  validationActions: [Audit]\n"
	for name, c := range map[string]struct {
		set    string
		holds  []string
		denied bool
	}{
		"update, and no barrier":                    {"", []string{"update"}, false},
		"update, and a barrier":                     {scaleIsUncovered, []string{"update"}, true},
		"granular:* before a barrier":               {scaleIsUncovered, []string{"update", "granular", "granular:*"}, true},
		"the verb of the barrier":                   {scaleIsUncovered, []string{"update", "granular:scale"}, false},
		"a set that does not refuse":                {scaleIsUncovered + tried, []string{"update"}, false},
		"a user without update, without the verb":   {"", []string{"granular"}, true},
		"a user without update, with the verb":      {"", []string{"granular", "granular:scale"}, false},
		"a user without update, without the marker": {"", []string{"granular:scale"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var sets []string
			if c.set != "" {
				sets = append(sets, c.set)
			}
			watcher := &watcher{watches: true, warns: true, audits: true}
			got := respond(t, Handlers{MaxBytes: maxBytes}.ObservationHandler(reviewer(schematest.Schema(t, sets...), holding(c.holds...)), watcher), scaling())
			if !got.Allowed || len(watcher.recorded) != 1 || watcher.recorded[0].Denied != c.denied {
				t.Fatalf("allowed %t, recorded %+v", got.Allowed, watcher.recorded)
			}
			// The update is refused, and needs no warning of what would be.
			if c.denied && (len(got.Warnings) > 0 || watcher.recorded[0].Refused != "") {
				t.Errorf("warnings %q", got.Warnings)
			}
		})
	}
}

// W2: a set that does not refuse writes warns, and bars nothing.
func TestW2_SetsThatDoNotDeny(t *testing.T) {
	const refused = `will be refused once the barrier is enforced: deployments.apps "web" is forbidden: User "alice" may not change .spec.replicas`
	for name, c := range map[string]struct {
		actions, holds string
		denied         bool
		warning        string
		audited        bool
	}{
		"without actions":     {"", "update", true, "", false},
		"no action":           {"[]", "update", true, "", false},
		"Deny":                {"[Deny]", "update", true, "", false},
		"Deny and Audit":      {"[Deny, Audit]", "update", true, "", false},
		"an unknown action":   {"[Warn, Log]", "update", true, "", false},
		"Warn":                {"[Warn]", "update", false, refused, false},
		"Audit":               {"[Audit]", "update", false, "", true},
		"Warn and Audit":      {"[Warn, Audit]", "update", false, refused, true},
		"Warn, with the verb": {"[Warn]", "granular:scale", false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			set := scaleIsUncovered
			if c.actions != "" {
				set += "  validationActions: " + c.actions + "\n"
			}
			r := reviewer(schematest.Schema(t, set), holding(c.holds))
			result, err := r.Review(t.Context(), Uncovered, scaling())
			if err != nil || result.Allowed == c.denied {
				t.Errorf("enforced: %+v, %v", result, err)
			}
			got := respond(t, Handlers{MaxBytes: maxBytes}.TrialHandler(r), scaling())
			if warning := strings.Join(got.Warnings, "|"); !got.Allowed || (c.warning == "") != (warning == "") || !strings.HasPrefix(warning, c.warning) {
				t.Errorf("tried: allowed %t, warning %q, want %q", got.Allowed, warning, c.warning)
			}
			if _, audited := got.AuditAnnotations[AnnotationRefused]; audited != c.audited {
				t.Errorf("tried: annotations %v", got.AuditAnnotations)
			}
		})
	}
	// Nothing is known of the kinds yet: the write passes, and the audit event says that it was not tried.
	got := respond(t, Handlers{MaxBytes: maxBytes}.TrialHandler(reviewer((*schema.Schema)(nil), holding())), scaling())
	if !got.Allowed || got.AuditAnnotations[AnnotationError] == "" {
		t.Errorf("without a schema: %+v", got)
	}
}
