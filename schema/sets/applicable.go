package sets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// applications are the sets that may hold for requests to one endpoint. They are immutable.
type applications struct {
	all []application
	// questions are the conditions of all, each once.
	questions []question
	// always are the barriers of the sets if there are no questions, else nil.
	always schema.VerbSet
}

// question is a match condition, and the request for which it is evaluated.
type question struct {
	condition *condition
	as        variant
}

// application is a set, and what it holds for in a request.
type application struct {
	set *set
	// questions are the places in applications.questions of the conditions.
	questions []int
	// to are the changes for which the set holds if the conditions are true.
	to schema.Extent
}

// Matching returns the barriers of the sets that match a request and have an action, which is Deny for those that refuse writes.
func (s *Sets) Matching(ctx context.Context, ref schema.ResourceRef, request schema.Request, action v1alpha1.ValidationAction) (schema.VerbSet, error) {
	found := s.applicable.of(ref, s.applications)[action]
	if found == nil {
		return nil, nil
	}
	if len(found.questions) == 0 {
		return found.always, nil
	}
	e := newEvaluation(ctx, request, found.questions)
	var out schema.VerbSet
	for i := range found.all {
		if a := &found.all[i]; a.holds(e) {
			out = a.addTo(out)
		}
	}
	return out, utilerrors.NewAggregate(e.errs)
}

// addTo adds the barriers of a set that matches to others.
func (a *application) addTo(out schema.VerbSet) schema.VerbSet {
	if out == nil {
		out = schema.VerbSet{}
	}
	for v := range a.set.verbs {
		out.Add(v, a.to)
	}
	return out
}

// holds reports whether the set applies. It is false only if a condition is false; an error elsewhere does not change that.
func (a *application) holds(e *evaluation) bool {
	var failure error
	for _, i := range a.questions {
		holds, err := e.answer(i)
		if err == nil && !holds {
			return false
		}
		failure = cmp.Or(failure, err)
	}
	if failure != nil {
		e.errs = append(e.errs, fmt.Errorf("%s: %w", a.set.source, failure))
	}
	return true
}

// applications finds the sets that may hold for requests to an endpoint, by action.
func (s *Sets) applications(ref schema.ResourceRef) map[v1alpha1.ValidationAction]*applications {
	out := map[v1alpha1.ValidationAction]*applications{}
	for i := range s.all {
		set := &s.all[i]
		add := func(as variant, to schema.Extent) {
			for _, action := range set.does() {
				if out[action] == nil {
					out[action] = &applications{}
				}
				out[action].add(set, as, to)
			}
		}
		if set.coversAny(ref) {
			add(variant{}, schema.Extent{})
			if len(set.conditions) == 0 {
				continue
			}
			if changesUnseen(ref) {
				add(variant{isUpdate: true}, schema.Extent{})
			}
		}
		for _, part := range set.parts(ref) {
			add(variant{subresource: part}, schema.Extent{StatusOnly: part == status, OwnersOnly: part != status, StatusValues: part == status && s.storesStatus(ref)})
		}
	}
	for _, found := range out {
		for i := 0; len(found.questions) == 0 && i < len(found.all); i++ {
			found.always = found.all[i].addTo(found.always)
		}
	}
	return out
}

// changesUnseen reports whether requests to an endpoint change a stored object that they do not show.
func changesUnseen(ref schema.ResourceRef) bool {
	e, ok := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	return ok && e.ChangesUnseen()
}

// add adds a set with the conditions that decide whether it holds.
func (a *applications) add(set *set, as variant, to schema.Extent) {
	next := application{set: set, to: to}
	for _, c := range set.conditions {
		q := question{c, as}
		at := slices.Index(a.questions, q)
		if at < 0 {
			at, a.questions = len(a.questions), append(a.questions, q)
		}
		next.questions = append(next.questions, at)
	}
	a.all = append(a.all, next)
}

// does returns the actions of a set.
func (u *set) does() []v1alpha1.ValidationAction {
	if u.denies() {
		return []v1alpha1.ValidationAction{v1alpha1.ValidationDeny}
	}
	return u.actions
}

// maxEndpoints bounds the memory for endpoints. Clients name resources, and a large cluster has some thousand, of which few are written all the
// time.
const maxEndpoints = 1024

// longestEndpoint bounds the names of an endpoint that is remembered, in bytes. Names of the API are shorter.
const longestEndpoint = 2048

// applicable remembers the applications by endpoint. The zero value is empty. It is safe for concurrent use.
type applicable struct {
	mu    sync.RWMutex
	known map[schema.ResourceRef]map[v1alpha1.ValidationAction]*applications
}

// of returns the applications of an endpoint, and finds them if they are not known.
func (a *applicable) of(ref schema.ResourceRef, find func(schema.ResourceRef) map[v1alpha1.ValidationAction]*applications) map[v1alpha1.ValidationAction]*applications {
	a.mu.RLock()
	found, known := a.known[ref]
	a.mu.RUnlock()
	if known {
		return found
	}
	if found = find(ref); len(ref.Group)+len(ref.Version)+len(ref.Resource)+len(ref.Subresource) > longestEndpoint {
		return found
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxEndpoints {
		a.known = map[schema.ResourceRef]map[v1alpha1.ValidationAction]*applications{}
	}
	a.known[ref.Clone()] = found
	return found
}
