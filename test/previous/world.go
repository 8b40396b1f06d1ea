package previous

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
	beforeadmission "github.com/fieldperm/fieldperm/test/previous/admission"
	beforefieldperm "github.com/fieldperm/fieldperm/test/previous/fieldperm"
	beforeschema "github.com/fieldperm/fieldperm/test/previous/schema"
	beforefieldpath "github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
	beforeload "github.com/fieldperm/fieldperm/test/previous/schema/load"
	beforeverbs "github.com/fieldperm/fieldperm/test/previous/verbs"
	"github.com/fieldperm/fieldperm/verbs"
)

// World is a set of documents, compiled by both cores.
type World struct {
	before *beforeschema.Schema
	now    *schema.Schema
	// atTimes are the verbs, without parameters, of barriers that depend on values.
	atTimes func() map[string]bool
	known   map[asked]bool
}

func newWorld(before *beforeschema.Schema, now *schema.Schema) *World {
	atTimes := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		for _, k := range before.Kinds() {
			k.Walk(func(_ beforefieldpath.Pattern, n *beforeschema.Node) {
				for _, p := range n.Permissions() {
					out[p.Base().String()] = out[p.Base().String()] || p.Conditional()
				}
			})
		}
		for _, k := range now.Kinds() {
			k.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
				for _, p := range n.Permissions() {
					out[p.Base().String()] = out[p.Base().String()] || p.Conditional()
				}
			})
		}
		return out
	})
	return &World{before, now, atTimes, map[asked]bool{}}
}

// compare returns the differences between two answers about objects of a kind, nil if it did not compile.
func (w *World) compare(before, now Answer, kind *schema.Kind) []Difference {
	out := Compare(before, now)
	for i := range out {
		d := &out[i]
		if kind != nil {
			d.Kind = kind.GroupVersionKind.Kind
		}
		if len(d.AnyOf) > 0 {
			barrier, _, _ := strings.Cut(d.AnyOf[0], "(")
			pod, _ := w.now.Kind(podKind)
			d.AtTimes, d.Placed, d.OfPods = w.atTimes()[barrier], w.has(asked{kind, barrier, theirBarrier}), w.has(asked{pod, barrier, anywhere}) || w.has(asked{kind, barrier, inTemplate})
		}
	}
	return out
}

var podKind = runtimeschema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// asked is a question about a kind. Its answer does not change.
type asked struct {
	kind  *schema.Kind
	verb  string
	where where
}

type where int

const (
	anywhere where = iota
	theirBarrier
	inTemplate
)

// has reports whether a kind has a field with a verb, one where the verb is a barrier by itself, or one in the template of a Pod.
func (w *World) has(of asked) bool {
	found, known := w.known[of]
	if known || of.kind == nil {
		return found
	}
	of.kind.Walk(func(path fieldpath.Pattern, n *schema.Node) {
		found = found || slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool {
			return p.Base().String() == of.verb && (of.where != theirBarrier || p.MayBar()) && (of.where != inTemplate || strings.Contains(path.String(), "emplate"))
		})
	})
	w.known[of] = found
	return found
}

// Offline compiles the built-in kinds, the catalogue and files. The error has the faults of both cores, without those of documents about what
// does not exist. A core refuses writes to the kinds of documents with faults.
func Offline(files []string) (*World, error) {
	before, errs := beforeload.Offline(files)
	now, more := load.Offline(files)
	return newWorld(before, now), errors.Join(slices.DeleteFunc(append(errs, more...), func(err error) bool {
		unmatched, unmatchedBefore := (*schema.Error)(nil), (*beforeschema.Error)(nil)
		return errors.As(err, &unmatched) && unmatched.Unmatched || errors.As(err, &unmatchedBefore) && unmatchedBefore.Unmatched
	})...)
}

// Compare returns the differences in the review of a request, of granular and of uncovered.
func (w *World) Compare(ctx context.Context, req *admissionv1.AdmissionRequest) []Difference {
	var out []Difference
	of := admission.RequestedResource(req)
	kind, _ := w.now.KindFor(runtimeschema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}, of)
	for _, at := range []admission.Endpoint{admission.Granular, admission.Uncovered} {
		out = append(out, w.compare(w.Before(ctx, at, req), w.Now(ctx, at, req), kind)...)
	}
	return out
}

// Now returns the answer of the core in force.
func (w *World) Now(ctx context.Context, at admission.Endpoint, req *admissionv1.AdmissionRequest) Answer {
	r := admission.Reviewer{
		Schema:     func() *schema.Schema { return w.now },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return marker{} },
	}
	result, err := r.Review(ctx, at, req)
	if err != nil {
		return Answer{Err: err}
	}
	var out Answer
	for i := range result.Requirements {
		r := &result.Requirements[i]
		if at == admission.Granular || r.Barred() {
			out.Demands = append(out.Demands, demand(r.Path.String(), string(r.Operation), r.Candidates(), r.Barred(), r.Instead))
		}
	}
	if d := result.Denial; d != nil && (d.GenericOnly || len(result.Requirements) == 0) {
		out.Demands = append(out.Demands, Demand{AnyOf: []string{Generic}})
	}
	return out
}

// Before returns the answer of the previous core.
func (w *World) Before(ctx context.Context, at admission.Endpoint, req *admissionv1.AdmissionRequest) Answer {
	r := beforeadmission.Reviewer{
		Schema:     func() *beforeschema.Schema { return w.before },
		Authorizer: func(*admissionv1.AdmissionRequest) beforefieldperm.Authorizer { return markerBefore{} },
	}
	result, err := r.Review(ctx, beforeadmission.Endpoint(at), req)
	if err != nil {
		return Answer{Err: err}
	}
	var out Answer
	for i := range result.Requirements {
		r := &result.Requirements[i]
		if at == admission.Granular || r.Barred() {
			out.Demands = append(out.Demands, demand(r.Path.String(), string(r.Operation), r.Candidates(), r.Barred(), r.Instead))
		}
	}
	if d := result.Denial; d != nil && (d.GenericOnly || len(result.Requirements) == 0) {
		out.Demands = append(out.Demands, Demand{AnyOf: []string{Generic}})
	}
	return out
}

func demand[V fmt.Stringer](path, operation string, candidates []V, barred bool, instead string) Demand {
	d := Demand{Path: path, Owners: operation == string(fieldperm.Ownership), Instead: instead}
	for _, v := range candidates {
		d.AnyOf = append(d.AnyOf, v.String())
	}
	if !barred {
		d.AnyOf = append(d.AnyOf, Generic)
	}
	return d
}

// marker is a user who holds the marker only, so that Decide reaches the changes.
type marker struct{}

// Authorize implements fieldperm.Authorizer.
func (marker) Authorize(_ context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(!generic && verb == verbs.Marker)}, nil
}

type markerBefore struct{}

// Authorize implements the interface of the previous core.
func (markerBefore) Authorize(_ context.Context, verb string, generic bool) (beforefieldperm.AuthorizerDecision, error) {
	return beforefieldperm.AuthorizerDecision{Outcome: beforefieldperm.OutcomeOf(!generic && verb == verbs.Marker)}, nil
}

// Definition compiles a CustomResourceDefinition with the entries of the catalogue that are for every kind. The error is that of either core.
func Definition(raw []byte) (*World, error) {
	all, err := load.Catalogue(false)
	if err != nil {
		return nil, err
	}
	docs, errs := load.CRD("random", raw)
	docs.Permissions = append(slices.DeleteFunc(all, func(d compile.PermissionDocument) bool { return d.Kind != "*" }), docs.Permissions...)
	now, more := compile.Compile(docs)
	allBefore, err := beforeload.Catalogue(false)
	if err != nil {
		return nil, err
	}
	docsBefore, errsBefore := beforeload.CRD("random", raw)
	docsBefore.Permissions = append(slices.DeleteFunc(allBefore, func(d beforeschema.PermissionDocument) bool { return d.Kind != "*" }), docsBefore.Permissions...)
	before, moreBefore := beforeschema.Compile(docsBefore)
	return newWorld(before, now), errors.Join(slices.Concat(errs, more, errsBefore, moreBefore)...)
}

// CompareObjects returns the differences in the comparison of two objects of a kind; old is nil for a creation. The verbs are barriers of
// sets.
func (w *World) CompareObjects(ctx context.Context, gvk runtimeschema.GroupVersionKind, old, new []byte, barriers []verbs.Verb) []Difference {
	kind, _ := w.now.Kind(gvk)
	return w.compare(w.objectsBefore(ctx, gvk, old, new, barriers), w.objectsNow(ctx, gvk, old, new, barriers), kind)
}

func (w *World) objectsNow(ctx context.Context, gvk runtimeschema.GroupVersionKind, old, new []byte, barriers []verbs.Verb) (out Answer) {
	kind, err := w.now.Kind(gvk)
	if err != nil {
		return Answer{Err: err}
	}
	set := schema.VerbSet{}
	for _, v := range barriers {
		set[v] = schema.Extent{}
	}
	requirements, err := fieldperm.Diff(ctx, old, new, kind, set)
	for i := range requirements {
		r := &requirements[i]
		out.Demands = append(out.Demands, demand(r.Path.String(), string(r.Operation), r.Candidates(), r.Barred(), r.Instead))
	}
	out.Err = err
	return out
}

func (w *World) objectsBefore(ctx context.Context, gvk runtimeschema.GroupVersionKind, old, new []byte, barriers []verbs.Verb) (out Answer) {
	kind, err := w.before.Kind(gvk)
	if err != nil {
		return Answer{Err: err}
	}
	set := beforeschema.VerbSet{}
	for _, v := range barriers {
		before, err := beforeverbs.Parse(v.String())
		if err != nil {
			return Answer{Err: err}
		}
		set[before] = beforeschema.Extent{}
	}
	requirements, err := beforefieldperm.Diff(ctx, old, new, kind, set)
	for i := range requirements {
		r := &requirements[i]
		out.Demands = append(out.Demands, demand(r.Path.String(), string(r.Operation), r.Candidates(), r.Barred(), r.Instead))
	}
	out.Err = err
	return out
}
