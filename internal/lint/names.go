package lint

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/verbs"
)

// Names returns what the conventions say about whose verbs those of one file are: well known, of a reserved domain, or of the domain of another
// API group. The file compiles. Suppressions count.
func Names(file File, registry *convention.Registry) ([]Finding, []error) {
	l := &linter{on: map[string]bool{convention.VerbNotRegistered: true, convention.ReservedDomain: true, convention.DomainNotOfGroup: true}}
	l.checker.Registry = *registry
	objects, _, errs := read(&file)
	for _, o := range objects {
		errs = append(errs, o.decode()...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	l.objects = objects
	l.names()
	l.suppress()
	slices.SortStableFunc(l.found, byPlace)
	return l.found, nil
}

// names applies the conventions for the names of verbs to each entry, and compares the verbs of all objects.
func (l *linter) names() {
	for _, o := range l.objects {
		for _, u := range o.uses() {
			if u.Verb == "" {
				continue
			}
			for _, p := range l.checker.Verb(convention.Use{Verb: u.Verb, Path: u.path, Group: u.group, Kind: u.kind, Own: u.own()}) {
				var edits []edit
				if p.Instead != "" {
					edits = o.replace(u.pointer("verb"), u.Verb, p.Instead)
				}
				l.problem(u, p, edits...)
			}
		}
	}
}

// problem reports a problem of the verb of an entry.
func (l *linter) problem(u *use, p convention.Problem, edits ...edit) {
	l.report(u.object, u.pointer("verb"), u.where(), finding.Finding{Rule: p.Rule, Level: p.Level, Message: p.Message, Cure: p.Cure, About: u.Verb}, edits...)
}

// duplicates finds verbs of the object that nearly are verbs of an object before it, or of an entry before it. Each verb is reported once.
func (l *linter) duplicates(o *object) {
	var before []string
	for _, other := range l.objects {
		if other == o {
			break
		}
		for _, u := range other.uses() {
			before = append(before, u.Verb)
		}
	}
	reported := map[string]bool{}
	for _, u := range o.uses() {
		for _, verb := range before {
			if p, ok := convention.Near(u.Verb, verb); ok && verbs.ValidateName(verb) == nil && verbs.ValidateName(u.Verb) == nil && !reported[u.Verb] && !l.checker.Registry.Has(u.Verb) {
				reported[u.Verb] = true
				l.problem(u, p)
			}
		}
		before = append(before, u.Verb)
	}
}
