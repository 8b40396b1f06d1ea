package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// policies decide in the authorization phase, by verb.
type policies map[string]authorizer.ConditionsAwareDecision

func (p policies) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", errors.New("asked without conditions")
}

func (p policies) ConditionsAwareAuthorize(_ context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if d, ok := p[a.GetVerb()]; ok && a.GetUser().GetName() == "alice" && a.GetResource() != "" && a.IsResourceRequest() {
		return d
	}
	return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
}

func (p policies) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", errors.New("evaluated without objects")
}

// TestK7_Authorize: the authorization phase allows what is allowed, lets through what can become allowed where admission decides, and refuses
// the rest at once.
func TestK7_Authorize(t *testing.T) {
	condition := func(id string) []authorizer.Condition {
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Type: "example.com/type", Condition: "true"}}
	}
	allow, deny := authorizer.ConditionsAwareDecisionAllow("policy allows", nil), authorizer.ConditionsAwareDecisionDeny("policy denies", nil)
	mayAllow := authorizer.ConditionsAwareDecisionConditionsMap(condition("d"), nil, condition("a"))
	mayDeny := authorizer.ConditionsAwareDecisionConditionsMap(condition("d"), nil, nil)
	const through = "granular: the request is allowed on conditions"
	for name, c := range map[string]struct {
		policies   policies
		verb       string
		resource   string
		holds      []string
		unenforced bool
		want       bool
		reason     string
	}{
		"allow":                                  {policies{"update": allow}, "update", "deployments", nil, false, true, "policy allows"},
		"allow needs no enforcement":             {policies{"update": allow}, "update", "deployments", nil, true, true, "policy allows"},
		"allow of what is not stored":            {policies{"create": allow}, "create", "tokens", nil, false, true, "policy allows"},
		"allow of a deletion":                    {policies{"delete": allow}, "delete", "deployments", nil, false, true, "policy allows"},
		"deny":                                   {policies{"update": deny}, "update", "deployments", []string{"granular"}, false, false, "policy denies"},
		"conditional allow":                      {policies{"update": mayAllow}, "update", "deployments", []string{"get"}, false, true, through},
		"conditional allow of a deletion":        {policies{"delete": mayAllow}, "delete", "deployments", nil, false, true, through},
		"conditional allow of a collection":      {policies{"deletecollection": mayAllow}, "deletecollection", "deployments", nil, false, true, through},
		"conditional allow of a token":           {policies{"create": mayAllow}, "create", "deployments/token", nil, false, true, through},
		"conditional allow, not of a token":      {policies{"update": mayAllow}, "update", "deployments/token", nil, false, false, ""},
		"conditional allow of a connection":      {policies{"create": mayAllow}, "create", "deployments/exec", nil, false, true, through},
		"conditional allow of a proxy":           {policies{"create": mayAllow}, "create", "deployments/proxy", nil, false, false, ""},
		"conditional allow, not of a connection": {policies{"update": mayAllow}, "update", "deployments/exec", nil, false, false, ""},
		"the marker allows no connection":        {policies{"granular": allow}, "create", "deployments/exec", []string{"granular"}, false, false, ""},
		"the marker allows no token":             {policies{"granular": allow}, "create", "deployments/token", []string{"granular"}, false, false, ""},
		"conditional allow of what is not there": {policies{"create": mayAllow}, "create", "tokens", nil, false, false, ""},
		"conditional allow, not enforced":        {policies{"update": mayAllow}, "update", "deployments", []string{"get"}, true, false, "granular: the request is allowed on conditions, but is not let through: "},
		"conditional allow of another verb":      {policies{"update": mayAllow}, "patch", "deployments", nil, false, false, ""},
		"conditional deny":                       {policies{"update": mayDeny}, "update", "deployments", nil, false, false, ""},
		"conditional deny and the marker":        {policies{"update": mayDeny}, "update", "deployments", []string{"granular", "get"}, false, true, allowReason},
		"the marker by a policy":                 {policies{"granular": allow}, "update", "deployments", []string{"get"}, false, true, allowReason},
		"the marker on a condition":              {policies{"granular": mayAllow}, "update", "deployments", []string{"get"}, false, true, allowReason},
		"the marker, not enforced":               {policies{"granular": allow}, "update", "deployments", []string{"get"}, true, false, unprovenReason},
		"the marker denied by a policy":          {policies{"granular": deny}, "update", "deployments", []string{"granular"}, false, false, ""},
		"the marker deletes nothing":             {policies{"granular": allow}, "delete", "deployments", []string{"granular"}, false, false, ""},
		"a verb that reads":                      {policies{"get": allow}, "get", "deployments", nil, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := authorizeReviewer(holding(c.holds...))
			r.Policies = func() (authorizer.Authorizer, error) { return c.policies, nil }
			if c.unenforced {
				r.Enforced = func(context.Context, *authorizationv1.ResourceAttributes) error { return errors.New("not proven") }
			}
			resource, subresource, _ := strings.Cut(c.resource, "/")
			asked := asking(c.verb, "apps", resource, subresource)
			if subresource != "" {
				// Endpoints are known by what an API server does.
				asked = asking(c.verb, "", map[string]string{"token": "serviceaccounts", "exec": "pods", "proxy": "pods"}[subresource], subresource)
				r.Allowed = func(_, _, subresource string) bool { return subresource == "" }
			}
			status, err := r.Review(t.Context(), asked)
			if err != nil || status.Allowed != c.want || status.Denied || !strings.HasPrefix(status.Reason, c.reason) {
				t.Errorf("got %+v, %v", status, err)
			}
		})
	}
	r := authorizeReviewer(holding("granular"))
	r.Policies = func() (authorizer.Authorizer, error) { return nil, errors.New("not read") }
	if status, err := r.Review(t.Context(), asking("update", "apps", "deployments", "")); err != nil || status.Allowed || !strings.Contains(status.Reason, "not read") {
		t.Errorf("before policies are read: %+v, %v", status, err)
	}
	own := asking("update", "apps", "deployments", "")
	own.Extra = map[string]authorizationv1.ExtraValue{"Fieldperm.dev/Generic-Only": {"true"}}
	r.Policies = func() (authorizer.Authorizer, error) { return policies{"update": allow}, nil }
	if status, err := r.Review(t.Context(), own); err != nil || status.Allowed {
		t.Errorf("A4: fieldperm's own check is answered: %+v, %v", status, err)
	}
}

// onObjects decides with the objects, by verb.
type onObjects map[string]fieldperm.AuthorizerDecision

func (c onObjects) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	if d, ok := c[verb]; ok {
		if d.Failure != nil {
			return fieldperm.AuthorizerDecision{}, d.Failure
		}
		return d, nil
	}
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}, nil
}

func (c onObjects) Unmet([]string) []fieldperm.Unmet {
	for _, d := range c {
		if d.Reason == "unmet" {
			return []fieldperm.Unmet{{Name: "p", Description: "what"}}
		}
	}
	return nil
}

// TestK7_Admit: conditions are asked before the chain. A Deny of the verb of the request denies it for every user, at both endpoints.
func TestK7_Admit(t *testing.T) {
	allow := fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "met", By: "policy"}
	deny := fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: "because", By: "policy"}
	unmet := fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion, Reason: "unmet"}
	ours := fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "granular: x"}
	boom := fieldperm.AuthorizerDecision{Failure: errors.New("boom")}
	update := scaling()
	remove := scaling()
	remove.Operation, remove.Object.Raw = admissionv1.Delete, nil
	connect := scaling()
	connect.Operation, connect.Resource, connect.SubResource, connect.OldObject.Raw = admissionv1.Connect, metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, "exec", nil
	connect.RequestResource = nil
	token := scaling()
	token.Operation, token.OldObject.Raw, token.RequestResource = admissionv1.Create, nil, nil
	token.Resource, token.SubResource = metav1.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "token"
	for name, c := range map[string]struct {
		req                 *admissionv1.AdmissionRequest
		conditional         onObjects
		holds               []string
		granular, uncovered bool
		message             string
	}{
		"allow":                            {update, onObjects{"update": allow}, nil, true, true, ""},
		"allow of patch":                   {update, onObjects{"patch": allow}, nil, true, true, ""},
		"allow of create":                  {update, onObjects{"create": allow}, nil, false, true, "needs update or patch"},
		"deny":                             {update, onObjects{"update": deny}, []string{"update", "granular", "granular:*"}, false, false, `may not update it; authorizer "policy" denies update: "because"`},
		"deny of patch":                    {update, onObjects{"patch": deny}, []string{"update"}, false, false, `denies patch`},
		"deny of create":                   {update, onObjects{"create": deny}, []string{"update"}, true, true, ""},
		"deny of a granular verb":          {update, onObjects{"granular:scale": deny}, []string{"granular", "granular:scale"}, false, true, `"policy" denies granular:scale`},
		"deny of one of two verbs":         {update, onObjects{"granular:scale": deny}, []string{"granular", "granular:specification"}, true, true, ""},
		"marker and granular verb":         {update, onObjects{"granular": allow, "granular:scale": allow}, nil, true, true, ""},
		"granular verb without the marker": {update, onObjects{"granular:scale": allow}, nil, false, true, "needs update or patch"},
		"unmet":                            {update, onObjects{"update": unmet}, nil, false, true, `; the condition of policy "p" is not met: "what"`},
		"unmet, but the chain allows":      {update, onObjects{"update": unmet}, []string{"update"}, true, true, ""},
		"unmet granular verb":              {update, onObjects{"granular:scale": unmet}, []string{"granular"}, false, true, `; the condition of policy "p" is not met: "what"`},
		"A4: our own Allow":                {update, onObjects{"update": ours}, nil, false, true, ""},
		"allow of a deletion":              {remove, onObjects{"delete": allow}, nil, true, true, ""},
		"deny of a deletion":               {remove, onObjects{"delete": deny}, []string{"delete"}, false, false, `may not delete it; authorizer "policy" denies delete`},
		"allow of a collection's deletion": {remove, onObjects{"deletecollection": allow}, nil, false, true, "needs delete"},
		"unmet deletion":                   {remove, onObjects{"delete": unmet}, nil, false, true, `needs delete; the condition of policy "p" is not met: "what"`},
		"allow of a connection":            {connect, onObjects{"create": allow}, nil, true, true, ""},
		"allow of an update by connection": {connect, onObjects{"update": allow}, nil, false, true, "pods/exec \"web\" is forbidden: User \"alice\" may not connect to it: needs create"},
		"C4: no verb covers a connection":  {connect, onObjects{"granular": allow, "granular:*": allow}, []string{"granular", "granular:*", "update"}, false, true, "needs create"},
		"create covers a connection":       {connect, nil, []string{"create"}, true, true, ""},
		"deny of a connection":             {connect, onObjects{"create": deny}, []string{"create"}, false, false, `may not connect to it; authorizer "policy" denies create`},
		"unmet connection":                 {connect, onObjects{"create": unmet}, nil, false, true, `needs create; the condition of policy "p" is not met: "what"`},
		"A2: the marker issues no token":   {token, onObjects{"create": unmet}, []string{"granular", "granular:*", "update"}, false, true, `needs create; the condition of policy "p" is not met: "what"`},
		"a condition issues a token":       {token, onObjects{"create": allow}, nil, true, true, ""},
		"no conditions":                    {update, nil, []string{"update"}, true, true, ""},
		"P4: an error denies nothing":      {update, onObjects{"update": boom}, []string{"update"}, false, false, "boom"},
		"P4: an error of a granular verb":  {update, onObjects{"granular:scale": boom}, []string{"granular"}, false, true, "boom"},
		"P4: an error denies no deletion":  {remove, onObjects{"delete": boom}, []string{"delete"}, false, false, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reviewer(schematest.Schema(t), holding(c.holds...))
			r.Conditional = func(w *Write, _ fieldperm.Authorizer) (Conditions, error) {
				object, old, err := w.Objects()
				if (len(w.Changes) > 0) != (c.req == update || c.req == token) || (object == nil) != (c.req == remove) || (old == nil) != (c.req == connect || c.req == token) || err != nil || w.Request != c.req {
					t.Errorf("got %+v, %v, %v, %v", w, object, old, err)
				}
				if c.conditional == nil {
					return nil, nil
				}
				return c.conditional, nil
			}
			for endpoint, want := range map[Endpoint]bool{Granular: c.granular, Uncovered: c.uncovered} {
				result, err := r.Review(t.Context(), endpoint, c.req)
				response := Response(result, err, c.req)
				if response.Allowed != want || !want && !strings.Contains(response.Result.Message, c.message) {
					t.Errorf("%s: %+v", endpoint, response)
				}
				if strings.HasPrefix(name, "P4") && !want && err == nil {
					t.Errorf("%s: the error is a denial", endpoint)
				}
			}
		})
	}
	r := reviewer(schematest.Schema(t), holding("update"))
	r.Conditional = func(*Write, fieldperm.Authorizer) (Conditions, error) {
		return nil, errors.New("not read")
	}
	for _, req := range []*admissionv1.AdmissionRequest{update, remove} {
		if result, err := r.Review(t.Context(), Uncovered, req); Code(err) != 503 {
			t.Errorf("before policies are read: %+v, %v", result, err)
		}
	}
}

// TestK4_ConditionsReadObjectsAsReadersDo: a Scale without replicas has 0. An object that cannot be read is an error.
func TestK4_ConditionsReadObjectsAsReadersDo(t *testing.T) {
	req := scaling()
	req.Kind.Group, req.Kind.Version, req.Kind.Kind = "autoscaling", "v1", "Scale"
	req.Object.Raw = []byte(`{"spec":{}}`)
	w := NewWrite(req, nil, nil)
	object, _, err := w.Objects()
	if fields, _ := object.(map[string]any); err != nil || fields["spec"].(map[string]any)["replicas"] != int64(0) {
		t.Errorf("got %v, %v", object, err)
	}
	req.Object.Raw = []byte(`{"spec":`)
	for _, w := range []*Write{NewWrite(req, nil, nil), {Request: req}} {
		if object, _, err := w.Objects(); err == nil || object != nil {
			t.Errorf("got %v, %v", object, err)
		}
	}
}

// TestK4_ScannedObjectsAreThoseThatReadersGet: a Scale and a custom resource, which readers get in another form, are decoded.
func TestK4_ScannedObjectsAreThoseThatReadersGet(t *testing.T) {
	const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"kind":"Widget","plural":"widgets"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"}}}}}}}]}}`
	for name, c := range map[string]struct {
		kind, resource metav1.GroupVersionKind
		subresource    string
		operation      admissionv1.Operation
		scanned        bool
	}{
		"a Deployment":       {metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "deployments"}, "", admissionv1.Update, true},
		"a new Deployment":   {metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "deployments"}, "", admissionv1.Create, true},
		"a Scale":            {metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "deployments"}, "scale", admissionv1.Update, false},
		"a custom resource":  {metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "widgets"}, "", admissionv1.Update, false},
		"a deleted resource": {metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "deployments"}, "", admissionv1.Delete, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := scaling()
			req.Operation, req.Kind, req.SubResource = c.operation, c.kind, c.subresource
			req.Resource = metav1.GroupVersionResource{Group: c.resource.Group, Version: c.resource.Version, Resource: c.resource.Kind}
			req.RequestKind, req.RequestResource, req.RequestSubResource = &req.Kind, &req.Resource, c.subresource
			text := `{"apiVersion":"` + c.kind.Group + "/" + c.kind.Version + `","kind":"` + c.kind.Kind + `","metadata":{"name":"web","namespace":"shop"},"spec":{}}`
			req.Object.Raw, req.OldObject.Raw = []byte(text), []byte(text)
			if c.operation == admissionv1.Create {
				req.OldObject.Raw = nil
			}
			if c.operation == admissionv1.Delete {
				req.Object.Raw = nil
			}
			body, err := json.Marshal(&admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: admissionVersion, Kind: "AdmissionReview"}, Request: req})
			if err != nil {
				t.Fatal(err)
			}
			in, err := Read(body)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Release()
			seen := false
			r := reviewer(schematest.Schema(t, widgets), holding("update", "create", "delete"))
			r.Conditional = func(w *Write, _ fieldperm.Authorizer) (Conditions, error) {
				seen = true
				object, old, ok := w.Scanned()
				if ok != c.scanned || ok && (object.IsAbsent() || old.IsAbsent() != (c.operation == admissionv1.Create)) {
					t.Errorf("scanned: %t, %s, %s", ok, object.Raw(), old.Raw())
				}
				return nil, nil
			}
			if result, err := r.ReviewDecoded(t.Context(), Granular, in); err != nil || !result.Allowed || !seen {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}

// TestW4_ConditionsDoNotReachTheFloor: what a control plane needs to go on running waits for no condition.
func TestW4_ConditionsDoNotReachTheFloor(t *testing.T) {
	req := scaling()
	req.Resource.Group, req.Resource.Resource = "coordination.k8s.io", "leases"
	r := reviewer(schematest.Schema(t), holding())
	r.Conditional = func(*Write, fieldperm.Authorizer) (Conditions, error) {
		return onObjects{"update": {Outcome: fieldperm.Deny}}, nil
	}
	if result, err := r.Review(t.Context(), Uncovered, req); err != nil || !result.Allowed {
		t.Errorf("got %+v, %v", result, err)
	}
}
