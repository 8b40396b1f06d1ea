package schema

import (
	"fmt"

	"github.com/google/cel-go/cel"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// condition is a match condition of an UncoveredPermissionSet. Conditions with the same text have the same program.
type condition struct{ program cel.Program }

// newCondition compiles a match condition. It reads the request without its objects. The error says so if an API server would let a match condition
// read what this one reads.
func newCondition(expression string) (*condition, error) {
	program, err := requestDialect.compile(expression, cel.BoolType)
	if err == nil {
		return &condition{program}, nil
	}
	if _, onObjects := objectsDialect.compile(expression, cel.BoolType); onObjects == nil {
		return nil, fmt.Errorf("expression %q reads more than the request without its objects: name users, groups, operations, names or namespaces; what depends on objects is a ConditionalPolicy of effect Deny", expression)
	}
	return nil, err
}

// condition returns the compiled match condition, which many sets may have.
func (c *compiler) condition(expression string) (*condition, error) {
	if known := c.conditions[expression]; known != nil {
		return known, nil
	}
	compiled, err := newCondition(expression)
	if err == nil {
		c.conditions[expression] = compiled
	}
	return compiled, err
}

// namesOf returns the endpoint and its aliases.
func namesOf(ref ResourceRef) []ResourceRef {
	out := []ResourceRef{ref}
	for _, alias := range endpoint.Aliases(ref.Group, ref.Resource, ref.Subresource) {
		out = append(out, ResourceRef{Group: alias.Group, Resource: alias.Resource, Subresource: alias.Subresource})
	}
	return out
}

// name returns the resource with its subresource.
func (r ResourceRef) name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// String returns the endpoint without its version.
func (r ResourceRef) String() string {
	return runtimeschema.GroupResource{Group: r.Group, Resource: r.name()}.String()
}
