package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/fieldperm/fieldperm/test/previous/api/v1alpha1"
)

// shapeOfRequest is all that decides which sets may hold for a request, except for the values that match conditions read.
type shapeOfRequest struct {
	ref ResourceRef
	// sentAs equals kind if it is not known.
	kind, sentAs runtimeschema.GroupVersionKind
}

// applications are the sets that may hold for requests of one shape. They are immutable.
type applications struct {
	all []application
	// questions are the conditions of all, each once.
	questions []question
	// always are the barriers of the sets if there are no questions, else nil.
	always VerbSet
}

// question is the expression of conditions, and the request for which it is evaluated.
type question struct {
	expression *expression
	as         variant
}

// application is a set, and what it holds for in a request.
type application struct {
	set *uncoveredSet
	// questions are the places in applications.questions of the conditions whose input the request shows. All others count as true.
	questions []int
	// to are the changes for which the set holds if the conditions are true.
	to Extent
}

// matching returns the barriers of the sets that match a request and have an action, which is Deny for those that refuse writes.
func (s *Schema) matching(ctx context.Context, ref ResourceRef, request Request, action v1alpha1.ValidationAction) (VerbSet, error) {
	if len(s.uncovered) == 0 {
		return nil, nil
	}
	shape := shapeOfRequest{ref: ref, kind: request.Kind, sentAs: request.Kind}
	if request.SentAs != nil {
		shape.sentAs = *request.SentAs
	}
	found := s.applicable.of(shape, s.applications)[action]
	if found == nil {
		return nil, nil
	}
	if len(found.questions) == 0 {
		return found.always, nil
	}
	e := newEvaluation(ctx, request, found.questions)
	var out VerbSet
	for i := range found.all {
		a := &found.all[i]
		if extent, holds := a.holds(e); holds {
			out = a.addTo(out, extent)
		}
	}
	return out, utilerrors.NewAggregate(e.errs)
}

// addTo adds the barriers of a set that matches to others. The extent is that of its conditions.
func (a *application) addTo(out VerbSet, extent Extent) VerbSet {
	to := a.to
	// A condition that is false for the object takes the values in the status out, too.
	to.StatusValues = to.StatusValues && !extent.OwnersOnly
	extent.StatusOnly, extent.OwnersOnly, extent.StatusValues = to.StatusOnly, extent.OwnersOnly || to.OwnersOnly, to.StatusValues
	if out == nil {
		out = VerbSet{}
	}
	for v := range a.set.verbs {
		out.Add(v, extent)
	}
	return out
}

// holds reports whether the set applies. It is false only if a condition is false; an error elsewhere does not change that. A condition
// that reads more of the object than the request shows counts as true, because it would read another value. If only conditions that read
// the object are false, the set still holds for changes of owners, because such a change takes effect in the next apply of another
// manager, with another object.
func (a *application) holds(e *evaluation) (Extent, bool) {
	var extent Extent
	var failure error
	for _, i := range a.questions {
		holds, err := e.answer(i)
		switch {
		case err != nil:
			failure = err
		case !holds && e.questions[i].expression.reads == readsRequest:
			return Extent{}, false
		case !holds:
			extent.OwnersOnly = true
		}
	}
	if failure != nil {
		e.errs = append(e.errs, fmt.Errorf("%s: %w", a.set.source, failure))
	}
	return extent, true
}

// applications finds the sets that may hold for requests of a shape, by action.
func (s *Schema) applications(shape shapeOfRequest) map[v1alpha1.ValidationAction]*applications {
	out := map[v1alpha1.ValidationAction]*applications{}
	unseen := changesUnseen(shape.ref)
	for i := range s.uncovered {
		set := &s.uncovered[i]
		covers, parts := set.coversAny(shape.ref), set.parts(shape.ref)
		if !covers && len(parts) == 0 {
			continue
		}
		var conditions []*expression
		shown := s.shown(set, shape)
		for j := range set.conditions {
			if x := set.conditions[j].expression; shown.shows(x) {
				conditions = append(conditions, x)
			}
		}
		add := func(as variant, to Extent) {
			for _, action := range set.does() {
				if out[action] == nil {
					out[action] = &applications{}
				}
				out[action].add(set, conditions, as, to)
			}
		}
		if covers {
			add(variant{}, Extent{})
		}
		if covers && unseen && len(conditions) > 0 {
			add(variant{isUpdate: true}, Extent{})
		}
		if covers && len(conditions) == 0 {
			continue
		}
		for _, part := range parts {
			add(variant{subresource: part}, Extent{StatusOnly: part == status, OwnersOnly: part != status, StatusValues: part == status && s.storesStatus(shape.ref)})
		}
	}
	for _, found := range out {
		for i := 0; len(found.questions) == 0 && i < len(found.all); i++ {
			found.always = found.all[i].addTo(found.always, Extent{})
		}
	}
	return out
}

// add adds a set with the conditions that decide whether it holds.
func (a *applications) add(set *uncoveredSet, conditions []*expression, as variant, to Extent) {
	next := application{set: set, to: to}
	for _, x := range conditions {
		q := question{x, as.seenBy(x)}
		at := slices.Index(a.questions, q)
		if at < 0 {
			at, a.questions = len(a.questions), append(a.questions, q)
		}
		next.questions = append(next.questions, at)
	}
	a.all = append(a.all, next)
}

// does returns the actions of a set.
func (u *uncoveredSet) does() []v1alpha1.ValidationAction {
	if u.denies() {
		return []v1alpha1.ValidationAction{v1alpha1.ValidationDeny}
	}
	return u.actions
}

// maxShapes bounds the memory for shapes of requests. Clients name resources, and a large cluster has some thousand shapes, of which few
// are written all the time.
const maxShapes = 1024

// longestShape bounds the names of a shape that is remembered, in bytes. Names of the API are shorter.
const longestShape = 2048

// applicable remembers the applications by shape. The zero value is empty. It is safe for concurrent use.
type applicable struct {
	mu    sync.RWMutex
	known map[shapeOfRequest]map[v1alpha1.ValidationAction]*applications
}

// of returns the applications of a shape, and finds them if they are not known.
func (a *applicable) of(shape shapeOfRequest, find func(shapeOfRequest) map[v1alpha1.ValidationAction]*applications) map[v1alpha1.ValidationAction]*applications {
	a.mu.RLock()
	found, known := a.known[shape]
	a.mu.RUnlock()
	if known {
		return found
	}
	if found = find(shape); shape.size() > longestShape {
		return found
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxShapes {
		a.known = map[shapeOfRequest]map[v1alpha1.ValidationAction]*applications{}
	}
	a.known[shape.clone()] = found
	return found
}

// size returns the length of all names, in bytes.
func (s shapeOfRequest) size() int {
	n := len(s.ref.Group) + len(s.ref.Version) + len(s.ref.Resource) + len(s.ref.Subresource)
	for _, k := range []runtimeschema.GroupVersionKind{s.kind, s.sentAs} {
		n += len(k.Group) + len(k.Version) + len(k.Kind)
	}
	return n
}

// clone copies the names, which may be parts of the body of a request.
func (s shapeOfRequest) clone() shapeOfRequest {
	kind := func(k runtimeschema.GroupVersionKind) runtimeschema.GroupVersionKind {
		return runtimeschema.GroupVersionKind{Group: strings.Clone(k.Group), Version: strings.Clone(k.Version), Kind: strings.Clone(k.Kind)}
	}
	return shapeOfRequest{
		ref: ResourceRef{
			Group: strings.Clone(s.ref.Group), Version: strings.Clone(s.ref.Version), Resource: strings.Clone(s.ref.Resource), Subresource: strings.Clone(s.ref.Subresource),
		},
		kind: kind(s.kind), sentAs: kind(s.sentAs),
	}
}
