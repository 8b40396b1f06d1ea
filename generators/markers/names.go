package markers

import (
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// names returns what the conventions say about whose verbs the markers have, as warnings and errors at the markers. The other conventions are
// left to the lint.
func (d *definition) names(registry *convention.Registry) (warnings, errs []error) {
	if registry == nil {
		return nil, nil
	}
	checker := convention.Checker{Registry: *registry}
	group, kind := d.groupAndKind()
	var warned, refused mistakes
	for _, v := range d.versions {
		for _, path := range slices.Sorted(maps.Keys(v.places)) {
			verb := v.places[path].merged.Get(grammar.Verb)
			pattern, err := fieldpath.ParsePattern(path)
			if verb == nil || err != nil {
				continue // An invalid path is reported by the compiler.
			}
			for _, p := range checker.Verb(convention.Use{Verb: verb.Value, Path: pattern, Group: group, Kind: kind, Own: true}) {
				if !slices.Contains([]string{convention.VerbNotRegistered, convention.ReservedDomain, convention.DomainNotOfGroup}, p.Rule) {
					continue
				}
				into := &warned
				if p.Level == finding.Error {
					into = &refused
				}
				into.at(verb.ValuePosition, "%s: %s [%s]", p.Message, p.Cure, p.Rule)
			}
		}
	}
	return warned.errors(), refused.errors()
}

func (d *definition) groupAndKind() (group, kind string) {
	spec, _ := d.tree["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ = spec["group"].(string)
	kind, _ = names["kind"].(string)
	return group, kind
}
