package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func TestC1_P7_AllowedWithAuditAnnotations(t *testing.T) {
	plain, barred := schematest.Schema(t), schematest.Schema(t, scaleIsUncovered)
	for name, c := range map[string]struct {
		schema   *schema.Schema
		endpoint Endpoint
		holds    []string
		want     map[string]string
	}{
		"generic":                 {plain, Granular, []string{"patch"}, map[string]string{"mode": "generic", "verbs": "patch", "checks": "2", "fields": "granular:scale"}},
		"granular":                {plain, Granular, []string{"granular", "granular:scale"}, map[string]string{"mode": "granular", "verbs": "granular:scale"}},
		"uncovered for everyone":  {barred, Uncovered, []string{"granular:scale"}, map[string]string{"mode": "uncovered", "verbs": "granular:scale", "checks": "1"}},
		"uncovered by the marker": {barred, Granular, []string{"granular", "granular:scale"}, map[string]string{"verbs": "granular:scale"}},
	} {
		t.Run(name, func(t *testing.T) {
			req := scaling()
			result, err := reviewer(c.schema, holding(c.holds...)).Review(t.Context(), c.endpoint, req)
			response := Response(result, err, req)
			if !response.Allowed || response.UID != req.UID || response.Result != nil || len(response.Warnings) > 0 {
				t.Fatalf("got %+v, %v", response, err)
			}
			for key, value := range c.want {
				if response.AuditAnnotations[key] != value {
					t.Errorf("annotation %s is %q, want %q", key, response.AuditAnnotations[key], value)
				}
			}
			if len(response.AuditAnnotations) != 4 {
				t.Errorf("annotations %v", response.AuditAnnotations)
			}
		})
	}
}

func TestP5_DenialIsForbiddenAndNamesTheFirstField(t *testing.T) {
	req := update(`{"replicas":1,"paused":false}`, `{"replicas":2,"paused":true}`)
	result, err := reviewer(schematest.Schema(t), holding("granular", "granular:labels")).Review(t.Context(), Granular, req)
	response := Response(result, err, req)
	status := response.Result
	if response.Allowed || status == nil || status.Code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden || status.Status != metav1.StatusFailure {
		t.Fatalf("got %+v, %v", response, err)
	}
	mustContain(t, status.Message, `deployments.apps "web" is forbidden: User "alice" may not change .spec.`, "needs any one of granular:")
	d := status.Details
	if d == nil || d.Group != "apps" || d.Kind != "deployments" || d.Name != "web" || len(d.Causes) != 2 {
		t.Fatalf("details %+v", d)
	}
	if d.Causes[0].Type != "FieldValueForbidden" || !strings.HasPrefix(d.Causes[0].Field, ".spec.") || !strings.Contains(status.Message, d.Causes[0].Field) {
		t.Errorf("cause %+v", d.Causes[0])
	}
	if d.Causes[1].Type != "FieldValueForbidden" || d.Causes[1].Field == d.Causes[0].Field || !strings.HasPrefix(d.Causes[1].Message, "needs any one of granular:") {
		t.Errorf("further cause %+v", d.Causes[1])
	}
	if response.AuditAnnotations["mode"] != "granular" || response.AuditAnnotations["verbs"] != "" {
		t.Errorf("annotations %v", response.AuditAnnotations)
	}
}

func TestP5_DenialNamesTheSubresourceThatTheUserAddressed(t *testing.T) {
	req := scaling()
	req.SubResource, req.RequestSubResource = "status", "status"
	req.RequestResource = &metav1.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "deployments"}
	result, err := reviewer(schematest.Schema(t), holding()).Review(t.Context(), Granular, req)
	response := Response(result, err, req)
	mustContain(t, response.Result.Message, `deployments.extensions/status "web" is forbidden: User "alice" may not update it`)
	if len(response.Result.Details.Causes) != 0 || response.Result.Details.Group != "extensions" || response.AuditAnnotations["mode"] != "none" {
		t.Errorf("got %+v", response.Result.Details)
	}
}

func TestC1_MarkerAloneGrantsNothing(t *testing.T) {
	for _, holds := range [][]string{{"granular"}, {"granular:scale"}, {}} {
		result, err := reviewer(schematest.Schema(t), holding(holds...)).Review(t.Context(), Granular, scaling())
		if err != nil || result.Allowed {
			t.Errorf("%v: %+v, %v", holds, result, err)
		}
	}
}

func TestC2_BarrierHoldsForTheGenericPermission(t *testing.T) {
	s := schematest.Schema(t, scaleIsUncovered)
	for _, endpoint := range []Endpoint{Granular, Uncovered} {
		result, err := reviewer(s, holding("update", "patch", "granular", "granular:*", "granular:specification")).Review(t.Context(), endpoint, scaling())
		if err != nil || result.Allowed {
			t.Errorf("%s: %+v, %v", endpoint, result, err)
		}
	}
}

func TestC2_BarrierHoldsByEitherNameOfTheResource(t *testing.T) {
	s := schematest.Schema(t, scaleIsUncovered)
	sent := scaling()
	sent.RequestResource = &metav1.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "deployments"}
	converted := scaling()
	converted.RequestResource = ptr.To(converted.Resource)
	converted.Resource.Group = "extensions"
	for name, req := range map[string]*admissionv1.AdmissionRequest{"sent as extensions": sent, "converted to extensions": converted} {
		if result, err := reviewer(s, holding("update")).Review(t.Context(), Granular, req); err != nil || result.Allowed {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}

func TestW2_UncoveredAsksForNoGenericPermission(t *testing.T) {
	h := holding()
	result, err := reviewer(schematest.Schema(t, scaleIsUncovered), h).Review(t.Context(), Uncovered, update(`{"paused":false}`, `{"paused":true}`))
	if err != nil || !result.Allowed || len(h.asked) != 0 {
		t.Errorf("got %+v, %v, asked %q", result, err, h.asked)
	}
}

func TestC6_GenericVerbsAreThoseOfTheOperation(t *testing.T) {
	create := scaling()
	create.Operation = admissionv1.Create
	for name, c := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		want []string
	}{
		"UPDATE": {scaling(), []string{"update true", "patch true", "granular false"}},
		"CREATE": {create, []string{"create true", "granular false"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := holding()
			if _, err := reviewer(schematest.Schema(t), h).Review(t.Context(), Granular, c.req); err != nil || !slices.Equal(h.asked, c.want) {
				t.Errorf("asked %q, %v", h.asked, err)
			}
		})
	}
}

func TestC5_CreateComparesWithNothing(t *testing.T) {
	req := scaling()
	req.Operation, req.OldObject = admissionv1.Create, req.Object
	if result, err := reviewer(schematest.Schema(t), holding("granular")).Review(t.Context(), Granular, req); err != nil || result.Allowed || len(result.Requirements) == 0 {
		t.Errorf("an oldObject beside CREATE hides the new fields: %+v, %v", result, err)
	}
}

func TestC4_DeleteIsForHoldersOfTheGenericVerb(t *testing.T) {
	one := scaling()
	one.Operation, one.Object.Raw = admissionv1.Delete, nil
	collection := one.DeepCopy()
	collection.Name = ""
	for name, c := range map[string]struct {
		req    *admissionv1.AdmissionRequest
		holder *holder
		want   bool
	}{
		"delete":                   {one, holding("delete"), true},
		"deletecollection of one":  {one, holding("deletecollection"), false},
		"deletecollection":         {collection, holding("deletecollection"), true},
		"delete of the collection": {collection, holding("delete"), false},
		"all granular":             {one, holding("granular", "granular:*", "update", "patch", "create"), false},
		"A4: our own Allow":        {one, &holder{holds: []string{"delete"}, reason: "granular: x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := reviewer(schematest.Schema(t), c.holder).Review(t.Context(), Granular, c.req)
			if response := Response(result, err, c.req); response.Allowed != c.want {
				t.Errorf("got %+v, %v", response, err)
			}
			// The API server has authorized what only the webhook for barriers sees, and no barrier is about a deletion.
			if result, err := reviewer(schematest.Schema(t), c.holder).Review(t.Context(), Uncovered, c.req); err != nil || !result.Allowed {
				t.Errorf("uncovered: %+v, %v", result, err)
			}
		})
	}
	result, err := reviewer(schematest.Schema(t), holding()).Review(t.Context(), Granular, one)
	mustContain(t, Response(result, err, one).Result.Message, `may not delete it: needs delete`)
	result, err = reviewer(schematest.Schema(t), holding()).Review(t.Context(), Granular, collection)
	mustContain(t, Response(result, err, collection).Result.Message, `may not delete it: needs deletecollection`)
}

func TestP4_AuthorizerErrorIsNeitherAllowNorDenial(t *testing.T) {
	boom := errors.New("boom")
	s := schematest.Schema(t)
	remove := scaling()
	remove.Operation = admissionv1.Delete
	for name, c := range map[string]struct {
		req    *admissionv1.AdmissionRequest
		holder *holder
		code   int32
	}{
		"generic verb":       {scaling(), &holder{fails: map[string]error{"update": boom}}, 500},
		"second generic":     {scaling(), &holder{fails: map[string]error{"patch": boom}}, 500},
		"marker":             {scaling(), &holder{fails: map[string]error{"granular": boom}}, 500},
		"granular verb":      {scaling(), &holder{holds: []string{"granular"}, fails: map[string]error{"granular:*": boom}}, 500},
		"delete":             {remove, &holder{fails: map[string]error{"delete": boom}}, 500},
		"out of time":        {scaling(), &holder{fails: map[string]error{"update": fmt.Errorf("asked: %w", context.DeadlineExceeded)}}, 503},
		"caller has gone":    {scaling(), &holder{fails: map[string]error{"update": context.Canceled}}, 503},
		"error beside Allow": {scaling(), &holder{holds: []string{"update"}, fails: map[string]error{"update": boom}}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := reviewer(s, c.holder).Review(t.Context(), Granular, c.req)
			response := Response(result, err, c.req)
			if err == nil || response.Allowed || response.Result.Code != c.code || response.Result.Reason == metav1.StatusReasonForbidden || len(response.AuditAnnotations) != 0 {
				t.Errorf("got %+v, %v", response, err)
			}
			if retry := response.Result.Details; (c.code == 503) != (retry != nil && retry.RetryAfterSeconds > 0) {
				t.Errorf("details %+v", retry)
			}
		})
	}
}

func TestP6_DryRunIsDecidedAlike(t *testing.T) {
	for _, holds := range [][]string{{"granular"}, {"granular", "granular:scale"}, {"update"}} {
		var responses []*admissionv1.AdmissionResponse
		for _, dryRun := range []*bool{nil, ptr.To(false), ptr.To(true)} {
			req := scaling()
			req.DryRun = dryRun
			result, err := reviewer(schematest.Schema(t), holding(holds...)).Review(t.Context(), Granular, req)
			responses = append(responses, Response(result, err, req))
		}
		if !reflect.DeepEqual(responses[0], responses[1]) || !reflect.DeepEqual(responses[0], responses[2]) {
			t.Errorf("%v: %+v", holds, responses)
		}
	}
}

func TestP7_AnnotationIsBounded(t *testing.T) {
	result := &Result{Decision: fieldperm.Decision{Allowed: true}}
	for i := range 500 {
		result.CoveredBy = append(result.CoveredBy, fmt.Sprintf("granular:label(example-%d.com)", i), "granular:scale", "")
	}
	if got := coveringVerbs(result); len(got) > maxAnnotation || !strings.HasSuffix(got, ",…") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	result.CoveredBy = []string{"granular:scale", "", "granular:image", "granular:scale"}
	if got := coveringVerbs(result); got != "granular:image,granular:scale" {
		t.Errorf("got %q", got)
	}
}

func TestResponse_WithoutResultAllowsNothing(t *testing.T) {
	for _, response := range []*admissionv1.AdmissionResponse{Response(nil, nil, nil), Response(&Result{}, nil, scaling()), Response(&Result{Decision: fieldperm.Decision{Allowed: true}}, errors.New("x"), nil)} {
		if response.Allowed || response.Result == nil || response.Result.Code < 400 {
			t.Errorf("got %+v", response)
		}
	}
}

// faultyDeployment makes the kind fail to compile.
const faultyDeployment = `
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: x}
spec: {group: apps, kind: Deployment, permissions: [{path: .spec.nope, verb: example.com/nope}]}
`

func TestBadInput_AnUnknownKindIsDenied(t *testing.T) {
	faulty, _ := compile.Compile(schematest.Documents(t, faultyDeployment))
	unknown := scaling()
	unknown.Kind.Kind = "Nothing"
	for name, c := range map[string]struct {
		schema *schema.Schema
		req    *admissionv1.AdmissionRequest
		want   string
	}{
		"unknown":           {schematest.Schema(t), unknown, "Nothing"},
		"failed to compile": {faulty, scaling(), ".spec.nope"},
		"no schema yet":     {nil, scaling(), "not loaded yet"},
		"zero schema":       {&schema.Schema{}, scaling(), "Deployment"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, endpoint := range []Endpoint{Granular, Uncovered} {
				h := holding("update", "granular", "granular:*")
				result, err := reviewer(c.schema, h).Review(t.Context(), endpoint, c.req)
				response := Response(result, err, c.req)
				if response.Allowed || response.Result.Code != http.StatusServiceUnavailable || response.Result.Details.RetryAfterSeconds == 0 || len(h.asked) > 0 {
					t.Errorf("%s: got %+v, asked %q", endpoint, response, h.asked)
				}
				mustContain(t, response.Result.Message, c.want)
			}
		})
	}
}

func TestBadInput_RequestThatCannotBeDecided(t *testing.T) {
	with := func(change func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionRequest {
		req := scaling()
		change(req)
		return req
	}
	for name, c := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		code int32
		want string
	}{
		"nil":               {nil, 400, "no request"},
		"no object":         {with(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = nil }), 400, ".request.object is missing"},
		"null object":       {with(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("null") }), 400, ".request.object is missing"},
		"no old object":     {with(func(r *admissionv1.AdmissionRequest) { r.OldObject.Raw = nil }), 400, ".request.oldObject is missing"},
		"create, no object": {with(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Create; r.Object.Raw = nil }), 400, ".request.object is missing"},
		"CONNECT":           {with(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect }), 400, "webhook's rules"},
		"CONNECT to a proxy": {with(func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Resource.Group, r.Resource.Resource, r.SubResource, r.RequestResource = admissionv1.Connect, "", "pods", "proxy", nil
		}), 400, "webhook's rules"},
		"CONNECT without options": {with(func(r *admissionv1.AdmissionRequest) {
			r.Operation, r.Resource.Group, r.Resource.Resource, r.SubResource, r.RequestResource, r.Object.Raw = admissionv1.Connect, "", "pods", "exec", nil, nil
		}), 400, ".request.object is missing"},
		"no operation":       {with(func(r *admissionv1.AdmissionRequest) { r.Operation = "" }), 400, "send CREATE"},
		"other operation":    {with(func(r *admissionv1.AdmissionRequest) { r.Operation = "update" }), 400, `"update"`},
		"no user":            {with(func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username = "" }), 400, "no user"},
		"no resource":        {with(func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "" }), 400, "no resource"},
		"object is a list":   {with(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("[1]") }), 500, "no JSON object"},
		"object is no JSON":  {with(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{"spec":`) }), 500, "no JSON"},
		"does not fit":       {update(`{"replicas":1}`, `{"replicas":[{"a":1}]}`), 500, ".spec.replicas"},
		"invalid UTF-8":      {with(func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte("{\"spec\":{\"x\":\"\xff\"}}") }), 500, ""},
		"deeply nested":      {update(`{}`, strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000)), 500, ""},
		"deeply nested list": {update(`{}`, `{"x":`+strings.Repeat("[", 200000)+strings.Repeat("]", 200000)+`}`), 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := holding("granular", "granular:*")
			result, err := reviewer(schematest.Schema(t), h).Review(t.Context(), Granular, c.req)
			response := Response(result, err, c.req)
			if response.Allowed || response.Result.Code != c.code {
				t.Fatalf("got %+v", response.Result)
			}
			mustContain(t, response.Result.Message, c.want)
			if len(response.Result.Message) > 2000 {
				t.Errorf("message of %d bytes", len(response.Result.Message))
			}
		})
	}
	if _, err := reviewer(schematest.Schema(t), holding("update")).Review(t.Context(), "other", scaling()); Code(err) != 400 {
		t.Errorf("endpoint: %v", err)
	}
	if _, err := (&Reviewer{}).Review(t.Context(), Granular, scaling()); err == nil {
		t.Error("the zero Reviewer decides")
	}
}

func TestBadInput_ADuplicateKeyHidesNoChange(t *testing.T) {
	for _, after := range []string{`{"replicas":1,"replicas":2}`, `{"replicas":2,"replicas":1}`} {
		if result, err := reviewer(schematest.Schema(t), holding("granular")).Review(t.Context(), Granular, update(`{"replicas":1}`, after)); err == nil && result.Allowed {
			t.Errorf("%s: is let through", after)
		}
	}
}

func TestBadInput_LongNameAndLabelAreDecidedAndShortened(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	req := scaling()
	req.Name, req.UserInfo.Username = long, long
	req.Object.Raw = []byte(`{"metadata":{"labels":{"` + long + `/a":"` + long + `"}},"spec":{"replicas":1}}`)
	req.OldObject.Raw = []byte(`{"metadata":{},"spec":{"replicas":1}}`)
	result, err := reviewer(schematest.Schema(t), holding("granular")).Review(t.Context(), Granular, req)
	response := Response(result, err, req)
	if response.Allowed || response.Result.Code != http.StatusForbidden || len(response.Result.Message) > 4<<10 {
		t.Errorf("code %d, message of %d bytes", response.Result.Code, len(response.Result.Message))
	}
	if result, err := reviewer(schematest.Schema(t), holding("granular", "granular:labels")).Review(t.Context(), Granular, req); err != nil || !result.Allowed {
		t.Errorf("a label whose key is no parameter is not covered by granular:labels: %v", err)
	}
}

// TestC3_TheVersionOfTheRequestCounts: a webhook whose rules name one version sees a converted object.
func TestC3_TheVersionOfTheRequestCounts(t *testing.T) {
	req := scaling()
	req.Kind = metav1.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	req.Resource = metav1.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	req.OldObject.Raw = []byte(`{"metadata":{"name":"web"}}`)
	req.Object.Raw = req.OldObject.Raw
	for version, allowed := range map[string]bool{"v1": false, "v2": true} {
		kind, resource := req.Kind, req.Resource
		kind.Version, resource.Version = version, version
		req.RequestKind, req.RequestResource = &kind, &resource
		result, err := reviewer(schematest.Schema(t), holding("granular")).Review(t.Context(), Granular, req)
		if err != nil || result.Allowed != allowed {
			t.Errorf("sent as %s: allowed %v, %v", version, result.Allowed, err)
		}
	}
	req.RequestKind.Version = "v0"
	if _, err := reviewer(schematest.Schema(t), holding("granular")).Review(t.Context(), Granular, req); Code(err) != http.StatusServiceUnavailable {
		t.Error("a version that is not known was decided on")
	}
}
