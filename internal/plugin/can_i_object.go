package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/internal/livefield"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// situation is one object, with the user that may change it or not.
type situation struct {
	caller *caller
	of     *inquiry
	kind   livefield.Kind
	// object is the object as decoded JSON.
	object map[string]any
	// base is the request without the new object.
	base  *admissionv1.AdmissionRequest
	judge *anyvalue.Judge
	// value is that of --value.
	value    any
	hasValue bool
	// ignored are the fields at the top of the object that the endpoint does not write.
	ignored []string
}

// situation reads the object, and prepares the decision.
func (o *permission) situation(ctx context.Context, c *caller, target string) (*situation, error) {
	of, name, err := o.target(c.traced, target, o.subresource)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fmt.Errorf("%q names no object: write KIND/NAME", target)
	}
	s := &situation{caller: c, of: of}
	if s.kind.Tree, err = of.tree(c.traced); err != nil {
		return nil, err
	}
	if e, isKnown := endpoint.Lookup(of.kind.Group, of.resource, of.subresource); isKnown && !e.Updates() {
		return nil, fmt.Errorf("%s: does not update an object: use kubectl fieldperm review -f with an AdmissionReview", e.Name())
	}
	if of.subresource == "" && slices.Contains(of.subresources(c.traced), "status") {
		s.ignored = []string{"status"}
	}
	raw, err := o.body(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(raw, &s.object); err != nil {
		return nil, fmt.Errorf("%s: is no object: %w: give one", target, err)
	}
	known, err := c.compiled.KindFor(runtimeschema.GroupVersionKind(s.base.Kind), s.ref())
	if err != nil {
		return nil, err
	}
	s.kind.Root = known.Root
	s.judge = o.judge(s)
	return s, nil
}

func (s *situation) ref() schema.ResourceRef {
	return schema.ResourceRef{Group: s.of.kind.Group, Version: s.of.kind.Version, Resource: s.of.resource, Subresource: s.of.subresource}
}

// body returns the object of -f, else that of the cluster, and prepares the request about it.
func (o *permission) body(ctx context.Context, s *situation, name string) ([]byte, error) {
	resource := runtimeschema.GroupVersionResource{Group: s.of.kind.Group, Version: s.of.kind.Version, Resource: s.of.resource}
	about := &object{gvk: s.kind.Tree.GroupVersionKind, name: name}
	if o.file != "" {
		given, err := o.object("-f", o.file)
		if err != nil {
			return nil, err
		}
		if given.gvk != about.gvk || given.name != name {
			return nil, fmt.Errorf("-f %q: is %s %q of %q, and the question is about %s %q of %q: give the object in question",
				o.file, given.gvk.Kind, given.name, given.gvk.GroupVersion(), about.gvk.Kind, name, about.gvk.GroupVersion())
		}
		about = given
	} else {
		live, err := o.live(ctx, s, resource, name)
		if err != nil {
			return nil, err
		}
		about.raw, about.gvk, about.namespace = live.raw, live.gvk, live.namespace
	}
	gvk, gvr := metav1.GroupVersionKind(about.gvk), metav1.GroupVersionResource(resource)
	s.base = &admissionv1.AdmissionRequest{
		Kind: gvk, Resource: gvr, SubResource: s.of.subresource, RequestKind: &gvk, RequestResource: &gvr, RequestSubResource: s.of.subresource,
		Name: name, Namespace: o.namespaceOf(about, resource), Operation: admissionv1.Update,
		UserInfo: s.caller.userInfo(), OldObject: runtime.RawExtension{Raw: about.raw},
	}
	return about.raw, nil
}

// live reads the object from the cluster.
func (o *permission) live(ctx context.Context, s *situation, resource runtimeschema.GroupVersionResource, name string) (*object, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	mapper, err := o.cluster.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	mapping, err := mapper.RESTMapping(s.of.kind.GroupKind(), s.of.kind.Version)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: install the kind, or choose a version that is served with --api-version", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	var of dynamic.ResourceInterface = client.Resource(resource)
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if namespace, _, err = o.cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, fmt.Errorf("namespace: %w: give --namespace", err)
		}
		of = client.Resource(resource).Namespace(namespace)
	}
	var path []string
	needs := resource.GroupResource().String()
	if s.kind.Tree.GroupKind() != s.of.kind.GroupKind() {
		// The body is of another kind, such as Scale.
		path = []string{s.of.subresource}
		needs = runtimeschema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/" + s.of.subresource}.String()
	}
	live, err := of.Get(ctx, name, metav1.GetOptions{}, path...)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("object: %w: correct the name, or give --namespace", err)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("object: %w: allow get on %s, or give the object with -f", err, needs)
	case err != nil:
		return nil, fmt.Errorf("object: %w: try again, or give the object with -f", err)
	}
	raw, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return &object{raw: raw, gvk: live.GroupVersionKind(), name: name, namespace: namespace}, nil
}

// request returns the request that changes a field to the value.
func (s *situation) request(f *livefield.Field) (*admissionv1.AdmissionRequest, error) {
	changed, err := f.Set(s.object, s.value)
	if err != nil {
		return nil, err
	}
	out := *s.base
	out.Object.Raw, err = json.Marshal(changed)
	return &out, err
}

// judge returns the judge of the object.
func (o *permission) judge(s *situation) *anyvalue.Judge {
	chain := s.caller.chain.For(s.base)
	j := &anyvalue.Judge{
		Verb: o.verb, Holdings: &anyvalue.Holdings{Authorizer: chain}, OnFloor: s.onFloor(), Elsewhere: s.elsewhere(),
		TakesMarker: endpoint.TakesMarker(s.of.kind.Group, s.of.resource, s.of.subresource),
	}
	if !s.caller.policies.Empty() {
		j.Holdings.Conditions = s.conditions
	}
	if !o.offline() {
		j.LetIn = func(ctx context.Context) (bool, error) {
			// The API server asks its authorizers, with fieldperm's among them.
			answer, err := chain.Authorize(ctx, o.verb, false)
			if err == nil && !answer.Allowed() {
				err = answer.Failure
			}
			return answer.Allowed(), err
		}
	}
	return j
}

// conditions returns the conditions of policies about a verb of the user on the object.
func (s *situation) conditions(ctx context.Context, verb string) []anyvalue.Condition {
	ref := admission.RequestedResource(s.base)
	var out []anyvalue.Condition
	for _, d := range s.caller.policies.Describe(ctx, authorizer.AttributesRecord{
		User: s.caller.user, Verb: verb, Namespace: s.base.Namespace, Name: s.base.Name,
		APIGroup: ref.Group, APIVersion: ref.Version, Resource: ref.Resource, Subresource: ref.Subresource, ResourceRequest: true,
	}) {
		out = append(out, anyvalue.Condition{Policy: d.Policy, Effect: d.Effect, Text: d.Condition, Err: d.Err})
	}
	return out
}

// elsewhere returns the barriers of sets for other subresources, whose fields the object has.
func (s *situation) elsewhere() []schema.SetVerb {
	if e, isKnown := endpoint.Lookup(s.of.kind.Group, s.of.resource, s.of.subresource); s.of.subresource != "" && (!isKnown || !e.ChangesOwners()) {
		return nil
	}
	var out []schema.SetVerb
	for _, subresource := range s.of.subresources(s.caller.traced) {
		ref := s.ref()
		if subresource == ref.Subresource || subresource == "status" {
			continue
		}
		ref.Subresource = subresource
		for _, v := range s.caller.compiled.SetVerbs(ref) {
			if slices.ContainsFunc(s.caller.compiled.SetVerbs(s.ref()), func(own schema.SetVerb) bool { return own.Source == v.Source && own.Verb == v.Verb }) {
				continue
			}
			out = append(out, v)
		}
	}
	return out
}

// ignores reports whether the endpoint does not write a field.
func (s *situation) ignores(path string) bool {
	return slices.ContainsFunc(s.ignored, func(top string) bool {
		rest, below := strings.CutPrefix(path, "."+top)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// changeable returns an error for a field about which no verb decides.
func (s *situation) changeable(f *livefield.Field) error {
	switch role := f.Place.Node().Role; {
	case s.ignores(f.Text()):
		return fmt.Errorf("path %q: a write of %s does not change it: give --subresource status", f.Text(), s.of.resource)
	case role == schema.RoleServerWritten:
		return fmt.Errorf("path %q: is written by the API server, whatever the user sends: name another field", f.Text())
	case f.Text() == "" && s.hasValue:
		return errors.New("path is empty: --value is of a field: name one, or use kubectl fieldperm review")
	}
	return nil
}
