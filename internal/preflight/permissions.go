package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
)

// mostKinds bounds the summary, so that it fits on a screen.
const mostKinds = 40

// permissions compiles the schemas with the built-in kinds, like serve when it starts.
func (f *flags) permissions(context.Context) (*report, []error) {
	if len(f.schemas) == 0 {
		return nil, nil
	}
	_, compiled, unmatched, err := sources.Files(f.schemas)
	if err != nil {
		return nil, withLines(flatten(err))
	}
	given, errs := load.Files(f.schemas)
	if len(errs) > 0 {
		return nil, withLines(errs)
	}
	out := &report{title: "permission schemas of " + strings.Join(f.schemas, ", ") + ":"}
	var kinds []*schema.Kind
	for _, kind := range compiled.Kinds() {
		if speaksFor(given, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b *schema.Kind) int { return strings.Compare(a.String(), b.String()) })
	for i, kind := range kinds {
		if i == mostKinds {
			out.lines = append(out.lines, fmt.Sprintf("… and %d more kinds", len(kinds)-mostKinds))
			break
		}
		out.lines = append(out.lines, describe(kind))
	}
	for i := range given.Permissions {
		if d := &given.Permissions[i]; d.Fragment != "" {
			out.lines = append(out.lines, fmt.Sprintf("%s: fragment %s, in %d kinds", d.Source, d.Fragment, len(d.KindsIn(compiled))))
		}
		for _, warning := range admission.SchemaWarnings(&given.Permissions[i]) {
			out.warnings = append(out.warnings, fmt.Sprintf("%s: %s", given.Permissions[i].Source, warning))
		}
	}
	for i := range given.Uncovered {
		set := &given.Uncovered[i]
		out.lines = append(out.lines, fmt.Sprintf("%s: uncovers %s", set.Source, strings.Join(set.Set.Spec.UncoveredPermissions, ", ")))
		for _, warning := range admission.SetWarnings(compiled, set) {
			out.warnings = append(out.warnings, fmt.Sprintf("%s: %s", set.Source, warning))
		}
	}
	if len(out.lines) == 0 {
		out.warnings = append(out.warnings, "they are about no kind that is known: give the CustomResourceDefinitions too")
	}
	for _, err := range unmatched {
		var e *schema.Error
		if errors.As(err, &e) {
			out.warnings = append(out.warnings, err.Error())
		}
	}
	return out, nil
}

// withLines adds lines to faults of schema documents, and removes duplicates: a kind with several versions may cause the same fault
// several times.
func withLines(errs []error) []error {
	var out []error
	said := map[string]bool{}
	for _, err := range errs {
		var fault *schema.Error
		if errors.As(err, &fault) {
			err = errors.New(placed(fault))
		}
		if !said[err.Error()] {
			said[err.Error()] = true
			out = append(out, err)
		}
	}
	return out
}

// speaksFor reports whether the documents define a kind or protect its fields.
func speaksFor(given compile.Documents, kind *schema.Kind) bool {
	for _, topology := range given.Topologies {
		if _, ok := topology.Kinds[kind.GroupVersionKind]; ok {
			return true
		}
	}
	return slices.ContainsFunc(given.Permissions, func(d compile.PermissionDocument) bool {
		return d.Group == kind.Group && d.Kind == kind.Kind && (len(d.Versions) == 0 || slices.Contains(d.Versions, kind.Version))
	})
}

// maxPlaces bounds the paths of a kind that are visited, because a recursive schema may be expanded without bound.
const maxPlaces = 20_000

// describe returns a kind's verbs, and how many of its fields have a barrier.
func describe(kind *schema.Kind) string {
	verbs, barriers := map[string]bool{}, 0
	whole := kind.Guarded(maxPlaces, func(_ fieldpath.Pattern, node *schema.Node) {
		for _, permission := range node.Permissions() {
			verbs[permission.Base().String()] = true
			if permission.MayBar() {
				barriers++
			}
		}
	})
	names := slices.Sorted(maps.Keys(verbs))
	more := ""
	if !whole {
		more = " or more"
	}
	return fmt.Sprintf("%s %s: verbs %s; barriers: %d%s", kind.GroupVersion(), kind.GroupVersionKind.Kind, strings.Join(names, ", "), barriers, more)
}
