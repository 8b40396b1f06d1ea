package tighten

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/verbs"
)

// Refused is a write of a log that would be refused after a proposal.
type Refused struct {
	Line     int64
	Time     time.Time
	User     string
	Verb     string
	Resource Resource
	Object   Object
	// Missing are the verbs that are missing, create or the marker alone if the request would not be let in.
	Missing []string
}

// Simulation replays writes against what the subject holds after a proposal. A verb with a parameter is also covered by the verb without
// it, and every verb by granular:*. More general verbs of a chain depend on the schema and do not count. Barriers do not either.
type Simulation struct {
	// Writes were judged, Unjudged were not: their changes are not known. Granting were not either: they write Roles or bindings, and
	// kube-apiserver also asks whether the subject holds what they grant.
	Writes, Unjudged, Granting int64
	Refused                    int64

	after   []Grant
	guarded []guard
	cache   map[question]bool
}

// NewSimulation returns a simulation of a proposal.
func NewSimulation(p *Proposal) *Simulation {
	return &Simulation{after: p.after, guarded: p.guarded, cache: map[question]bool{}}
}

// question is whether the subject holds a verb.
type question struct {
	resource        Resource
	namespace, name string
	verb            string
}

// maxQuestions bounds the memory of a simulation.
const maxQuestions = 1 << 16

// Judge returns the refusal of a write, or nil.
func (s *Simulation) Judge(ev *Event) *Refused {
	missing, judged := s.missing(ev)
	if len(missing) > 0 {
		s.Writes++
		s.Refused++
		return &Refused{ev.Line, ev.Time, ev.User, ev.Verb, ev.Resource, ev.Object, missing}
	}
	switch {
	case !judged:
		s.Unjudged++
	case s.grants(ev):
		s.Granting++
	default:
		s.Writes++
	}
	return nil
}

// grants reports whether a write is one of an RBAC object whose rights kube-apiserver compares with those of the subject, which has lost some.
func (s *Simulation) grants(ev *Event) bool {
	if !slices.ContainsFunc(s.guarded, func(g guard) bool {
		return g.resource == ev.Resource && (g.scope == "" || g.scope == ev.Object.Namespace)
	}) {
		return false
	}
	known := ev.Observed && !ev.Created && !ev.fields.none && ev.fields.cut == 0 && ev.fields.faulty == 0
	return !known || slices.ContainsFunc(ev.fields.verbs, func(verb string) bool { return !isGarbageCollection(verb) })
}

func (s *Simulation) missing(ev *Event) (missing []string, judged bool) {
	holds := func(verb string) bool {
		return s.holds(question{ev.Resource, ev.Object.Namespace, ev.Object.Name, verb})
	}
	if !holds(ev.Verb) && !holds(verbs.Marker) {
		return []string{verbs.Marker}, true
	}
	if ev.Created {
		// An update that creates an object is let in as an update, and its fields are those of a CREATE.
		if holds(createVerb) {
			return nil, true
		}
		if !ev.Marked {
			return []string{createVerb}, true
		}
	} else if holds(updateVerb) || holds(patchVerb) {
		return nil, true
	}
	if ev.fields.none {
		missing = append(missing, updateVerb)
	}
	for _, verb := range ev.fields.verbs {
		if !holds(verb) {
			missing = append(missing, verb)
		}
	}
	slices.Sort(missing)
	return missing, ev.Observed && ev.fields.cut == 0 && ev.fields.faulty == 0
}

func (s *Simulation) holds(q question) bool {
	answer, ok := s.cache[q]
	if ok {
		return answer
	}
	answer = slices.ContainsFunc(s.after, func(g Grant) bool {
		return (g.Scope == "" || g.Scope == q.namespace) && slices.ContainsFunc(g.Rules, func(r rbacv1.PolicyRule) bool {
			return matches(&r, q.resource) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.name)) && grantsGranular(r.Verbs, q.verb)
		})
	})
	if len(s.cache) >= maxQuestions {
		clear(s.cache)
	}
	s.cache[q] = answer
	return answer
}
