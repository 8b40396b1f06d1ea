package markers

import (
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// probes are put beside the markers of types and fields before controller-gen's generator runs a second time. Each becomes a validation
// rule of the node that the marker is about. They show where the markers land in controller-gen's own schemas, so that a marker which it
// drops (of a type behind a custom schema, for example) is found.
type probes struct {
	planted []below
	// places are the marker values of the collector into which probes were put.
	places []markers.MarkerValues
}

// probeName is the name of the probes among an AST node's markers. controller-gen does not read names of values.
const probeName = "fieldperm:probe"

// probeRule is the rule by which a probe is recognized in a schema. It is no CEL, so that no author's rule is the same.
const probeRule = "fieldperm: probe"

// probe is a marker as controller-gen applies it to a schema.
type probe []int

var _ crd.SchemaMarker = probe{}

// ApplyToSchema implements crd.SchemaMarker.
func (p probe) ApplyToSchema(_ *crdmarkers.SchemaContext, schema *apiextensionsv1.JSONSchemaProps) error {
	for _, id := range p {
		schema.XValidations = append(schema.XValidations, apiextensionsv1.ValidationRule{Rule: probeRule, Message: strconv.Itoa(id)})
	}
	return nil
}

// plant adds probes for all types that were reached.
func (p *probes) plant(g *graph, collector *markers.Collector) error {
	for t := range g.uses {
		if !g.marked[t] {
			continue
		}
		nodes, err := collector.MarkersInPackage(t.Package)
		if err != nil {
			return err
		}
		own := at("", t.Keys)
		if t.Fields == nil {
			own = append(own, g.mapKeys(t.Package, t.Spec.Type)...)
		}
		p.put(nodes, t.Spec, own)
		for _, f := range t.Fields {
			p.put(nodes, f.Node, append(at("", f.Keys), g.mapKeys(t.Package, f.Node.Type)...))
		}
	}
	return nil
}

func at(path string, keys Keys) []below {
	var out []below
	for _, v := range keys {
		out = append(out, below{path, v})
	}
	return out
}

func (p *probes) put(nodes map[ast.Node]markers.MarkerValues, node ast.Node, values []below) {
	if len(values) == 0 {
		return
	}
	var ids probe
	for _, v := range values {
		ids = append(ids, len(p.planted))
		p.planted = append(p.planted, v)
	}
	if nodes[node] == nil {
		nodes[node] = markers.MarkerValues{}
	}
	nodes[node][probeName] = []any{ids}
	p.places = append(p.places, nodes[node])
}

// remove takes the probes out again, because other generators share the collector.
func (p *probes) remove() {
	for _, values := range p.places {
		delete(values, probeName)
	}
}

// landed are the markers that landed at a path of a schema.
type landed map[string][]*Value

// run runs controller-gen's generator with the probes. It returns where they landed, by the name of the file and the version.
func (p *probes) run(g *graph, generator crd.Generator, ctx *genall.GenerationContext) (map[string]map[string]landed, error) {
	defer p.remove()
	if err := p.plant(g, ctx.Collector); err != nil {
		return nil, err
	}
	var files artifacts
	inMemory := *ctx
	inMemory.OutputRule = &files
	if errs := generate(generator, &inMemory); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	out := map[string]map[string]landed{}
	for _, file := range files {
		tree, err := file.tree()
		if err != nil {
			return nil, err
		}
		out[file.name] = map[string]landed{}
		versionSchemas(tree, func(_ int, version string, schema map[string]any) {
			found := landed{}
			visitSchema(schema, "", "", func(node map[string]any, path, _ string) { err = p.collect(node, path, found, err) })
			out[file.name][version] = found
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
	}
	return out, nil
}

// collect takes the probes of one node.
func (p *probes) collect(node map[string]any, path string, into landed, err error) error {
	rules, _ := node["x-kubernetes-validations"].([]any)
	for _, item := range rules {
		rule, _ := item.(map[string]any)
		if rule["rule"] != probeRule {
			continue
		}
		message, _ := rule["message"].(string)
		id, failed := strconv.Atoi(message)
		if failed != nil || id >= len(p.planted) {
			return fmt.Errorf("unknown probe %q", message)
		}
		v := p.planted[id]
		if at := path + v.path; !slices.Contains(into[at], v.value) {
			into[at] = append(into[at], v.value)
		}
	}
	return err
}
