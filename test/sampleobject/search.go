package sampleobject

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	// maxChecks bounds a search. The hardest schemas in use need some hundreds of checks.
	maxChecks = 3000
	// maxWords bounds the string literals that are taken from the rules.
	maxWords = 24
)

var errTooMany = fmt.Errorf("none of %d values fits", maxChecks)

// search looks for values that fit a schema. It checks every value at its own node before the value becomes part of a larger one,
// so that a rule is solved at the node that has it.
type search struct {
	top node
	// identity is the fields that the caller sets in an object: apiVersion, kind, metadata.
	identity map[string]any
	// dropped is the field that the API server drops on create, "" for none.
	dropped string
	// words are the string literals of all rules. They are often the values that the rules require.
	words      []string
	left       int
	validators map[*apiextensions.JSONSchemaProps]validation.SchemaValidator
	rules      map[*structuralschema.Structural]*schemacel.Validator
	results    map[question]result
}

// question and result are the arguments and the result of one call of values.
type question struct {
	schema     *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	want       int
}

type result struct {
	values []any
	err    error
}

func newSearch(top node) *search {
	s := &search{
		top: top, left: maxChecks,
		validators: map[*apiextensions.JSONSchemaProps]validation.SchemaValidator{},
		rules:      map[*structuralschema.Structural]*schemacel.Validator{},
		results:    map[question]result{},
	}
	s.collect(top.structural)
	return s
}

var literal = regexp.MustCompile(`'([^'\\]+)'|"([^"\\]+)"`)

// collect gathers the words of a schema.
func (s *search) collect(structural *structuralschema.Structural) {
	visitor := structuralschema.Visitor{Structural: func(at *structuralschema.Structural) bool {
		for _, rule := range at.XValidations {
			for _, match := range literal.FindAllStringSubmatch(rule.Rule, -1) {
				if word := match[1] + match[2]; len(s.words) < maxWords && !slices.Contains(s.words, word) {
					s.words = append(s.words, word)
				}
			}
		}
		return false
	}}
	visitor.Visit(structural.DeepCopy())
	slices.Sort(s.words)
}

// values returns at least one and at most want different values that fit a node. The error names the field for which there is no
// value.
func (s *search) values(n node, want int) ([]any, error) {
	if n.path == nil {
		return s.search(n, want) // the result depends on the name, so it is not cached
	}
	key := question{n.schema, n.structural, want}
	known, ok := s.results[key]
	if !ok {
		known.values, known.err = s.search(n, want)
		s.results[key] = known
	}
	return known.values, known.err
}

func (s *search) search(n node, want int) ([]any, error) {
	kind := n.schema.Type
	switch {
	case kind == "object" && len(n.schema.Enum) == 0:
		return s.objects(n, want)
	case kind == "array" && len(n.schema.Enum) == 0:
		return s.lists(n, want)
	default:
		return s.scalars(n, want)
	}
}

// found collects different values of a node.
type found struct {
	search *search
	node   node
	want   int
	values []any
	last   error
}

// try adds a value if it fits. It reports whether the search has ended.
func (f *found) try(value any) bool {
	if slices.ContainsFunc(f.values, func(other any) bool { return reflect.DeepEqual(other, value) }) {
		return len(f.values) >= f.want
	}
	if err := f.search.check(f.node, value); err != nil {
		f.last = err
		return errors.Is(err, errTooMany)
	}
	f.values = append(f.values, value)
	return len(f.values) >= f.want
}

// result returns the collected values.
func (f *found) result() ([]any, error) {
	if len(f.values) > 0 {
		return f.values, nil
	}
	if f.last == nil {
		f.last = errors.New("nothing is known to try")
	}
	return nil, fmt.Errorf("%s: no valid value was found: %w", pathOf(f.node), f.last)
}

func pathOf(n node) string {
	if n.path == nil {
		return "the object"
	}
	return "." + n.path.String()
}

// check returns nil if a value fits its node, with the defaults that the API server will add.
func (s *search) check(n node, value any) error {
	if s.left--; s.left < 0 {
		return errTooMany
	}
	validator, ok := s.validators[n.schema]
	if !ok {
		var err error
		if validator, _, err = validation.NewSchemaValidator(n.schema); err != nil {
			return err
		}
		s.validators[n.schema] = validator
	}
	value = runtime.DeepCopyJSONValue(value)
	root := n.path == nil
	if object, ok := value.(map[string]any); ok && root {
		value = s.identified(object)
	}
	if n.structural != nil {
		defaulting.Default(value, n.structural)
	}
	if err := validation.ValidateCustomResource(n.path, value, validator).ToAggregate(); err != nil {
		return err
	}
	if n.structural == nil {
		return nil
	}
	rules, ok := s.rules[n.structural]
	if !ok {
		rules = schemacel.NewValidator(n.structural, root || n.structural.XEmbeddedResource, celconfig.PerCallLimit)
		s.rules[n.structural] = rules
	}
	if rules == nil {
		return nil
	}
	faults, _ := rules.Validate(context.Background(), n.path, n.structural, value, nil, celconfig.RuntimeCELCostBudget)
	return faults.ToAggregate()
}
