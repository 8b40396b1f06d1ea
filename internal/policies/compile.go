package policies

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// genericVerbs are the verbs of policies that are not granular.
var genericVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// compiler compiles the policies of one refresh. Types are read once for all of them.
type compiler struct {
	expressions *expression.Compiler
	types       Types
	known       map[endpoint.Ref]map[string]*expression.Types
	// unread is why types could not be read, nil if all could.
	unread error
}

func newCompiler(expressions *expression.Compiler, types Types) *compiler {
	return &compiler{expressions: expressions, types: types, known: map[endpoint.Ref]map[string]*expression.Types{}}
}

// decode reads a policy strictly: a field that this version does not know may narrow an Allow.
func decode(source string, raw []byte) (*v1alpha1.ConditionalPolicy, []error) {
	var out v1alpha1.ConditionalPolicy
	strict, err := kjson.UnmarshalStrict(raw, &out)
	if err != nil {
		strict = append(strict, err)
	}
	var faults []error
	for _, err := range strict {
		faults = append(faults, &schema.Error{Source: source, Message: err.Error() + ": correct the field, or leave it out"})
	}
	return &out, faults
}

// errNoServer is the error of Types where no API server publishes types. Conditions are not checked then.
var errNoServer = errors.New("no API server says which types there are: use the cluster to check it")

// compile returns the policy in the form in which it decides, and its faults. A policy that is invalid must not allow. before is an earlier form
// of the same spec, nil if there is none: it counts for resources whose types cannot be read now.
func (c *compiler) compile(p *v1alpha1.ConditionalPolicy, before *policy) (*policy, []error) {
	source := admission.DocumentSource(v1alpha1.ConditionalPolicyKind, p.Name)
	var faults []error
	fault := func(pointer, format string, args ...any) {
		faults = append(faults, &schema.Error{Source: source, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
	checkSpec(&p.Spec, fault)
	if effectOf(p.Spec.Effect) == expression.Deny {
		for _, ref := range refs(&p.Spec) {
			if connects(ref) && !endpoint.IsConnection(ref.Group, ref.Resource, ref.Subresource) {
				fault("/spec/resources", "a Deny of %s does not reach users that RBAC allows it, because admission does not see its verb: take it out", describe(ref))
			}
		}
	}
	compiled, err := c.expressions.Compile(p.Spec.Condition, nil)
	if err != nil {
		fault("/spec/condition", "%v", err)
		return newPolicy(p.Name, &p.Spec, nil, nil), faults
	}
	if compiled.ReadsVerb() {
		fault("/spec/condition", "reads request.verb, which is not known in admission: write one policy for each verb")
	}
	checked, isUnchecked := map[version]bool{}, false
	for _, ref := range refs(&p.Spec) {
		types, err := c.typesOf(ref)
		if err != nil {
			if isUnchecked = errors.Is(err, errNoServer); !isUnchecked {
				c.unread = err
				before.copyChecked(ref, checked)
			}
			faults = append(faults, &schema.Error{Source: source, Pointer: "/spec/condition", Message: fmt.Sprintf("is not checked against types: %v", err), Unmatched: true})
			continue
		}
		if len(types) == 0 {
			faults = append(faults, &schema.Error{
				Source: source, Pointer: "/spec/resources", Unmatched: true,
				Message: fmt.Sprintf("no resource %q is served: correct the name, or install it", describe(ref)),
			})
		}
		for _, name := range sortedKeys(types) {
			of := version{runtimeschema.GroupVersionResource{Group: ref.Group, Version: name, Resource: ref.Resource}, ref.Subresource}
			switch {
			case !applies(&p.Spec, ref, name):
			case types[name] == nil:
				faults = append(faults, &schema.Error{
					Source: source, Pointer: "/spec/condition", Unmatched: true,
					Message: fmt.Sprintf("%s: the type of version %q is not published yet: until it is, the condition does not count for that version", describe(ref), name),
				})
			case types[name] == untyped:
				checked[of] = true
			default:
				_, err := c.expressions.Compile(p.Spec.Condition, types[name])
				if checked[of] = err == nil; err != nil {
					faults = append(faults, typeFault{&schema.Error{Source: source, Pointer: "/spec/condition", Message: fmt.Sprintf("%s: %v", describe(ref), err)}})
				}
			}
		}
	}
	out := newPolicy(p.Name, &p.Spec, compiled, checked)
	out.isUnchecked = isUnchecked
	return out, faults
}

// typeFault is a fault about the type of one version. The policy is in force for other versions and resources: who may change a
// CustomResourceDefinition must not thereby change what a policy decides about them.
type typeFault struct{ fault *schema.Error }

// Error returns the text of the fault.
func (f typeFault) Error() string { return f.fault.Error() }

// Unwrap returns the fault.
func (f typeFault) Unwrap() error { return f.fault }

// untyped is the type of a version whose objects have no type that CEL can use.
var untyped = &expression.Types{}

// checkSpec finds what the CustomResourceDefinition refuses too. An older definition may be installed.
func checkSpec(spec *v1alpha1.ConditionalPolicySpec, fault func(pointer, format string, args ...any)) {
	if len(spec.Subjects) == 0 {
		fault("/spec/subjects", "is empty: name users, groups or ServiceAccounts")
	}
	for i, subject := range spec.Subjects {
		if !slices.Contains([]string{"User", "Group", "ServiceAccount"}, subject.Kind) {
			fault(fmt.Sprintf("/spec/subjects/%d/kind", i), "%q is no kind of a subject: use User, Group or ServiceAccount", subject.Kind)
		}
	}
	if len(spec.Resources) == 0 {
		fault("/spec/resources", "is empty: name resources")
	}
	if len(spec.Verbs) == 0 {
		fault("/spec/verbs", "is empty: name verbs")
	}
	for i, verb := range spec.Verbs {
		if slices.Contains(genericVerbs, verb) || verb == verbs.Marker {
			continue
		}
		if _, err := verbs.Parse(verb); err != nil {
			fault(fmt.Sprintf("/spec/verbs/%d", i), "%v: use %s, %s or a granular verb", err, strings.Join(genericVerbs, ", "), verbs.Marker)
		}
	}
	if slices.Contains(spec.Verbs, "update") != slices.Contains(spec.Verbs, "patch") {
		fault("/spec/verbs", "admission cannot tell update and patch apart: name both or none")
	}
	switch spec.Effect {
	case v1alpha1.PolicyAllow, v1alpha1.PolicyNoOpinion, v1alpha1.PolicyDeny:
	default:
		fault("/spec/effect", "%q is no effect: use Allow, NoOpinion or Deny", spec.Effect)
	}
}

// refs returns the resources that a policy names without a wildcard.
func refs(spec *v1alpha1.ConditionalPolicySpec) []endpoint.Ref {
	var out []endpoint.Ref
	for _, rule := range spec.Resources {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				resource, subresource, _ := strings.Cut(name, "/")
				ref := endpoint.Ref{Group: group, Resource: resource, Subresource: subresource}
				if group != "*" && resource != "*" && !slices.Contains(out, ref) {
					out = append(out, ref)
				}
			}
		}
	}
	return out
}

// applies reports whether a policy is written for a version of a resource.
func applies(spec *v1alpha1.ConditionalPolicySpec, ref endpoint.Ref, version string) bool {
	return slices.ContainsFunc(spec.Resources, func(r v1alpha1.PolicyResource) bool {
		return names(&r, &ref) && (len(r.APIVersions) == 0 || slices.Contains(r.APIVersions, version))
	})
}

// typesOf returns the types of a resource by version. A version has a nil type while the API server does not publish one, and untyped if CEL
// cannot use what it publishes. It never publishes the options of connections.
func (c *compiler) typesOf(ref endpoint.Ref) (map[string]*expression.Types, error) {
	if out, ok := c.known[ref]; ok {
		return out, nil
	}
	published, err := c.types(ref)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*expression.Types, len(published))
	for name, of := range published {
		switch types, err := c.expressions.Types(map[string]*spec.Schema{name: of}); {
		case err == nil:
			out[name] = types
		case of != nil || connects(ref):
			out[name] = untyped
		default:
			out[name] = nil
		}
	}
	c.known[ref] = out
	return out, nil
}

// connects reports whether a resource is a connection, whose options have no published type.
func connects(ref endpoint.Ref) bool {
	e, known := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	return known && !e.Creates() && !e.Updates()
}

func describe(ref endpoint.Ref) string {
	out := ref.Name()
	if ref.Group != "" {
		out += "." + ref.Group
	}
	return out
}

// isFaulty reports whether one of the faults is about the policy itself.
func isFaulty(faults []error) bool {
	return slices.ContainsFunc(faults, func(err error) bool {
		var e *schema.Error
		return !errors.As(err, &e) || !e.Unmatched
	})
}

// isInvalid reports whether one of the faults is about what the policy says, whatever the types are.
func isInvalid(faults []error) bool {
	return isFaulty(slices.DeleteFunc(slices.Clone(faults), func(err error) bool { return errors.As(err, new(typeFault)) }))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
