package fieldrole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// Change returns the rules for the change from before to after, two states of one object. before is nil for an object that is created. The
// decision with the verbs of each rule is Allow, and without any one of them it is not.
func (k *Kinds) Change(ctx context.Context, before, after *unstructured.Unstructured, o Options) ([]*Rule, error) {
	t, err := k.ofObject(after)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if b, a := before.GroupVersionKind(), after.GroupVersionKind(); b != a {
			return nil, fmt.Errorf("--old is a %q of %q, --new a %q of %q: give two states of one object", b.Kind, b.GroupVersion(), a.Kind, a.GroupVersion())
		}
		if b, a := before.GetNamespace()+"/"+before.GetName(), after.GetNamespace()+"/"+after.GetName(); b != a {
			return nil, fmt.Errorf("--old is %q, --new is %q: give two states of one object", b, a)
		}
	}
	var out []*Rule
	for _, w := range t.writes(before, after) {
		rule, err := t.decided(ctx, w, o)
		if err != nil {
			return nil, err
		}
		out = append(out, rule)
	}
	if len(out) == 0 {
		return nil, errors.New("--old and --new are equal: a write that changes nothing needs the marker only; give two states that differ")
	}
	return out, nil
}

// ofObject returns the kind of an object, in the version of the object.
func (k *Kinds) ofObject(object *unstructured.Unstructured) (*Target, error) {
	gvk := object.GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" {
		return nil, errors.New("--new: is no Kubernetes object: give it an apiVersion and a kind")
	}
	return k.Find((&Target{GroupVersionKind: gvk}).full())
}

// full returns the kind as Find takes it, with its group.
func (t *Target) full() string { return t.Group + "/" + t.Version + "/" + t.Kind }

// write is one request.
type write struct {
	subresource   string
	before, after map[string]any
}

// writes returns the requests that make a change: the API server takes the status through its subresource alone.
func (t *Target) writes(before, after *unstructured.Unstructured) []write {
	var old map[string]any
	if before != nil {
		old = before.Object
	}
	if !t.hasStatus() || old == nil && endpoint.StatusOnCreate(t.Group, t.Resource) {
		if equality.Semantic.DeepEqual(old, after.Object) {
			return nil
		}
		return []write{{"", old, after.Object}}
	}
	var out []write
	main := withStatus(after.Object, old[status])
	if !equality.Semantic.DeepEqual(old, main) {
		out = append(out, write{"", old, main})
	}
	if !equality.Semantic.DeepEqual(main[status], after.Object[status]) {
		out = append(out, write{status, main, after.Object})
	}
	return out
}

// withStatus returns an object with another status, without one if it is nil.
func withStatus(object map[string]any, of any) map[string]any {
	out := maps.Clone(object)
	delete(out, status)
	if of != nil {
		out[status] = of
	}
	return out
}

// decided finds the verbs of one request by deciding on it.
func (t *Target) decided(ctx context.Context, w write, o Options) (*Rule, error) {
	out := &Rule{Target: t, Subresource: w.subresource}
	if !endpoint.TakesMarker(t.Group, t.Resource, w.subresource) {
		return nil, fmt.Errorf("resource %q: granular verbs do not let writes of it in: grant create, update and patch", out.resource())
	}
	request, err := t.request(w)
	if err != nil {
		return nil, err
	}
	enter := "patch"
	if w.before == nil {
		enter = "create"
	}
	answer, err := needs.Find(ctx, needs.Question{Reviewer: t.reviewer(nil), Request: request, Enter: []string{enter}})
	if err != nil {
		return nil, err
	}
	if !answer.Enough {
		return nil, fmt.Errorf("%s: no role is enough for the change: %q: grant update", t.Kind, answer.Uncured)
	}
	if slices.Contains(answer.Ask, rootVerb) && !o.Wildcard {
		for i := range answer.Changes {
			if c := &answer.Changes[i]; len(c.Needs) > 0 && c.Needs[0] == rootVerb {
				return nil, fmt.Errorf("path %q of %s: only %s covers the change, and with it every field that no barrier guards: give the field a verb (docs/guide/schema-authors.md), or add --allow-wildcard", c.Path, t.Kind, rootVerb)
			}
		}
	}
	out.Updates = slices.Contains(answer.Ask, readVerb)
	out.Verbs = slices.DeleteFunc(answer.Ask, func(verb string) bool { return verb == readVerb })
	if !slices.Contains(out.Verbs, verbs.Marker) {
		return nil, fmt.Errorf("%s: the change needs no marker: report this as a fault of fieldperm", t.Kind)
	}
	tree, err := t.tree(w.subresource)
	if err != nil {
		return nil, err
	}
	for i := range answer.Changes {
		c := &answer.Changes[i]
		if c.Operation == string(fieldperm.Created) {
			continue // The role says that it creates.
		}
		f := Field{Path: c.Path, Barrier: !slices.Contains(c.Needs, "update") && !slices.Contains(c.Needs, "create")}
		for _, verb := range c.Needs {
			if slices.Contains(out.Verbs, verb) {
				f.Verbs = append(f.Verbs, verb)
				break
			}
		}
		if f.place, err = tree.Find(c.Path); err != nil {
			f.place, f.unplaced = tree.Place(), true
		}
		out.Fields = append(out.Fields, f)
	}
	out.describe(tree)
	if err := out.companions(ctx, tree); err != nil {
		return nil, err
	}
	if w.before == nil {
		out.Notes = nil // Nothing changes.
	}
	return out, nil
}

func (t *Target) request(w write) (*admissionv1.AdmissionRequest, error) {
	kind := metav1.GroupVersionKind(t.GroupVersionKind)
	resource := metav1.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
	object := &unstructured.Unstructured{Object: w.after}
	out := &admissionv1.AdmissionRequest{
		Kind: kind, Resource: resource, SubResource: w.subresource, RequestKind: &kind, RequestResource: &resource, RequestSubResource: w.subresource,
		Name: object.GetName(), Namespace: object.GetNamespace(), Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: "holder"},
	}
	if out.Namespace == "" && t.Group == "" && t.Resource == "namespaces" {
		out.Namespace = out.Name
	}
	var err error
	if out.Object.Raw, err = json.Marshal(w.after); err != nil {
		return nil, err
	}
	if w.before == nil {
		out.Operation = admissionv1.Create
		return out, nil
	}
	raw, err := json.Marshal(w.before)
	out.OldObject = runtime.RawExtension{Raw: raw}
	return out, err
}

// reviewer decides as the webhooks do, for a user that holds some verbs.
func (t *Target) reviewer(held []string) admission.Reviewer {
	return admission.Reviewer{
		Schema:     func() *schema.Schema { return t.kinds.compiled },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return exactly(held) },
		Limits:     fieldperm.Limits{MaxChecks: fieldperm.DefaultMaxChecks, Parallel: 1},
	}
}

// exactly holds some verbs, and the marker only if it is one of them.
type exactly []string

// Authorize reports whether a verb is held.
func (h exactly) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h, verb))}, nil
}
