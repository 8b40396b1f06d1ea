package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// condition is a match condition of an UncoveredPermissionSet.
type condition struct {
	name string
	*expression
}

// expression is a compiled match condition. Conditions with the same text have the same expression.
type expression struct {
	program cel.Program
	reads   reads
	// readsOld means that it reads oldObject.
	readsOld bool
	// fields are the fields of objects that it reads, except for metadata.
	fields []fieldpath.Pattern
	// readsFields means that it reads the request: the named fields of it, or if there are no names, all of it.
	readsFields   bool
	requestFields []string
	// loops means that it has a loop, which ends with the context.
	loops bool
}

// reads says which part of object and oldObject an expression reads.
type reads int

const (
	// readsRequest: the expression reads neither.
	readsRequest reads = iota
	// readsMetadata: the expression reads only their metadata, which is the same in every version of a kind.
	readsMetadata
	readsObject
)

const (
	requestVariable   = "request"
	objectVariable    = "object"
	oldObjectVariable = "oldObject"
)

// newExpression compiles a match condition.
func newExpression(text string) (*expression, error) {
	program, ast, err := requestDialect.compileAST(text, cel.BoolType)
	if err != nil {
		return nil, err
	}
	out := &expression{program: program}
	out.readsOf(ast)
	return out, nil
}

// expression returns the compiled expression, which many sets may have.
func (c *compiler) expression(text string) (*expression, error) {
	if known := c.expressions[text]; known != nil {
		return known, nil
	}
	x, err := newExpression(text)
	if err == nil {
		c.expressions[text] = x
	}
	return x, err
}

// readsOf finds the fields that an expression reads. A local variable with the name of one of the objects or of the request counts as that.
func (x *expression) readsOf(ast *cel.Ast) {
	x.readsOld = len(identifiers(ast, oldObjectVariable)) > 0
	for _, e := range identifiers(ast, objectVariable, oldObjectVariable) {
		field := selected(e)
		if len(field) > 0 && field[0].Name == "metadata" {
			x.reads = max(x.reads, readsMetadata)
			continue
		}
		x.reads, x.fields = readsObject, append(x.fields, field)
	}
	readsAll := false
	for _, e := range identifiers(ast, requestVariable) {
		x.readsFields = true
		if field := selected(e); len(field) > 0 {
			x.requestFields = append(x.requestFields, field[0].Name)
		} else {
			readsAll = true
		}
	}
	if readsAll {
		x.requestFields = nil
	}
	x.loops = len(celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), celast.KindMatcher(celast.ComprehensionKind))) > 0
}

// readsField reports whether the expression may read a field of the request.
func (x *expression) readsField(name string) bool {
	return x.readsFields && (len(x.requestFields) == 0 || slices.Contains(x.requestFields, name))
}

// holds evaluates the expression. An expression without loops ends soon, and needs no context.
func (x *expression) holds(ctx context.Context, in *input) (bool, error) {
	if x.loops {
		return evalBool(ctx, x.program, in)
	}
	out, _, err := x.program.Eval(in)
	return boolOf(out, err)
}

// identifiers returns the places in an expression where one of the names occurs.
func identifiers(ast *cel.Ast, names ...string) []celast.NavigableExpr {
	return celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), func(e celast.NavigableExpr) bool {
		return e.Kind() == celast.IdentKind && slices.Contains(names, strings.TrimPrefix(e.AsIdent(), "."))
	})
}

// selected returns the path that is selected from an expression, by x.field or x.?field.
func selected(e celast.NavigableExpr) fieldpath.Pattern {
	var out fieldpath.Pattern
	for {
		parent, ok := e.Parent()
		if !ok {
			return out
		}
		switch {
		case parent.Kind() == celast.SelectKind:
			out = append(out, fieldpath.Element{Name: parent.AsSelect().FieldName()})
		case parent.Kind() == celast.CallKind && parent.AsCall().FunctionName() == operators.OptSelect:
			name, isText := "", false
			if field := parent.AsCall().Args()[1]; field.Kind() == celast.LiteralKind {
				name, isText = field.AsLiteral().Value().(string)
			}
			if !isText {
				return out
			}
			out = append(out, fieldpath.Element{Name: name})
		default:
			return out
		}
		e = parent
	}
}

// reads returns the largest part that any of the conditions reads.
func (u *uncoveredSet) reads() reads {
	out := readsRequest
	for i := range u.conditions {
		out = max(out, u.conditions[i].reads)
	}
	return out
}

// showsObject reports whether the body of a request is the object that the set names. It is false if the set names Deployments and the
// body is a Scale. If a set names only the subresource, it is about the body of the subresource.
func (u *uncoveredSet) showsObject(ref ResourceRef, body runtimeschema.GroupKind) bool {
	shows := true
	for _, at := range namesOf(ref) {
		switch {
		case !u.covers(at):
		case isObject(at, body):
			return true
		case !u.namesEndpoint(at) || !takes(at, body):
			shows = false
		}
	}
	return shows
}

// namesOf returns the endpoint and its aliases.
func namesOf(ref ResourceRef) []ResourceRef {
	out := []ResourceRef{ref}
	for _, alias := range endpoint.Aliases(ref.Group, ref.Resource, ref.Subresource) {
		out = append(out, ResourceRef{Group: alias.Group, Resource: alias.Resource, Subresource: alias.Subresource})
	}
	return out
}

// namesEndpoint reports whether the set covers the endpoint only by the endpoint's own name, and not by the name of its resource.
func (u *uncoveredSet) namesEndpoint(ref ResourceRef) bool {
	names := false
	for r := range u.named(ref.Group) {
		switch {
		case r == ref.name() || ref.Subresource != "" && r == "*/"+ref.Subresource:
			names = true
		case r == "*" || r == ref.Resource:
			return false
		}
	}
	return names
}

// isObject reports whether a body of this kind is the whole object of the endpoint's resource.
func isObject(ref ResourceRef, body runtimeschema.GroupKind) bool {
	own, ok := endpoint.Lookup(ref.Group, ref.Resource, "")
	if !ok || !own.Whole {
		return false
	}
	if own.Body.Kind != "" {
		return own.GroupKind() == body
	}
	// The kind of a custom resource is not known here. The kinds of its subresources are.
	at, ok := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	return ok && at.Body == own.Body
}

// takes reports whether an endpoint takes bodies of this kind.
func takes(ref ResourceRef, body runtimeschema.GroupKind) bool {
	e, ok := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	return ok && e.GroupKind() == body
}

// Unread describes where match conditions of an UncoveredPermissionSet count as true because they read an object that requests do not
// show.
type Unread struct {
	// Conditions are the names of the conditions that read the object.
	Conditions []string
	// Where lists endpoints whose body has another kind, and lossy versions.
	Where []string
}

// Unread returns these places for the set of a source, nil if there are none.
func (s *Schema) Unread(source string) *Unread {
	for i := range s.uncovered {
		set := &s.uncovered[i]
		if set.source != source || set.reads() == readsRequest {
			continue
		}
		out := &Unread{Where: append(s.otherBodies(set), s.lossyVersions(set)...)}
		for j := range set.conditions {
			if set.conditions[j].reads > readsRequest {
				out.Conditions = append(out.Conditions, set.conditions[j].name)
			}
		}
		if len(out.Where) > 0 {
			return out
		}
	}
	return nil
}

// otherBodies returns the endpoints at which a set guards a field and the body is not the object that the set names.
func (s *Schema) otherBodies(set *uncoveredSet) []string {
	endpoints := endpoint.All()
	for _, resource := range s.landscape.scaled {
		if e, ok := endpoint.Lookup(resource.Group, resource.Resource, scaleSubresource); ok && !endpoint.BuiltIn(resource.Group, resource.Resource) {
			endpoints = append(endpoints, e)
		}
	}
	var out []string
	for i := range endpoints {
		e := &endpoints[i]
		ref := ResourceRef{Group: e.Group, Resource: e.Resource, Subresource: e.Subresource}
		shows := set.showsObject(ref, e.GroupKind()) && !(e.ChangesUnseen() && slices.ContainsFunc(set.conditions, func(c condition) bool { return c.readsOld }))
		if !e.Creates() && !e.Updates() || !set.coversAny(ref) || shows {
			continue
		}
		guards := func(body *Kind) bool {
			k, err := s.KindFor(body.GroupVersionKind, ref)
			return err != nil || set.guards(k, everywhere) > 0
		}
		if slices.ContainsFunc(s.landscape.bodies[e.GroupKind()], guards) {
			out = append(out, ref.String())
		}
	}
	return out
}

// lossyVersions returns the versions of the set's resources that do not show the fields that a condition reads.
func (s *Schema) lossyVersions(set *uncoveredSet) []string {
	var out []string
	for _, t := range set.targets {
		own, _ := endpoint.Lookup(t.Group, t.Resource, "")
		for _, k := range t.kinds {
			// Not all known versions of built-in kinds are served.
			served := own.Body.Kind == "" || own.GroupKind() == k.GroupKind() && slices.Contains(own.Versions, k.Version)
			if text := fmt.Sprintf("%s in version %s", t, k.Version); served && !set.isShownIn(k) && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
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
