package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/schema"
)

// versionsOf compares the served versions of a definition.
func (l *linter) versionsOf(o *object, d *definition) {
	uses := o.uses()
	first := map[string]*use{}
	firstVersion := map[string]string{}
	for i := range d.versions {
		v := &d.versions[i]
		if !v.served {
			continue
		}
		l.lossy(o, d, v)
		own := effective(uses, v.name)
		for _, path := range slices.Sorted(maps.Keys(own)) {
			u := own[path]
			if u.Verb == "" {
				continue
			}
			other := first[path]
			if other == nil {
				first[path], firstVersion[path] = u, v.name
				continue
			}
			if text := differ(u, other); text != "" {
				l.report(o, u.pointer("verb"), u.where(), finding.Finding{
					Rule: versionsDiffer, Level: finding.Error, Message: fmt.Sprintf("path %q of versions %q and %q: %s", u.path, v.name, firstVersion[path], text),
					Cure: "write the same in each served version", About: u.Verb,
				})
			}
		}
	}
	for i := range d.versions {
		if v := &d.versions[i]; v.served {
			l.lacks(o, v, effective(uses, v.name), first, firstVersion)
		}
	}
}

// differ says how two entries for one field differ, "" if they do not.
func differ(a, b *use) string {
	for _, key := range []struct{ name, a, b string }{
		{"verb", a.Verb, b.Verb}, {"parameterizedBy", a.ParameterizedBy, b.ParameterizedBy}, {"parameterTreatment", a.ParameterTreatment, b.ParameterTreatment},
		{"parameterExpression", a.ParameterExpression, b.ParameterExpression}, {"parameterSource", a.ParameterSource, b.ParameterSource},
		{"excluded", fmt.Sprint(a.Excluded), fmt.Sprint(b.Excluded)}, {"excludedWhen", a.ExcludedWhen, b.ExcludedWhen},
	} {
		if key.a != key.b {
			return fmt.Sprintf("%s is %q and %q", key.name, key.a, key.b)
		}
	}
	return ""
}

// lacks finds fields of a version that have a verb in another version only. As in fieldperm-gen crd, a field that has moved may have the verb
// elsewhere.
func (l *linter) lacks(o *object, v *version, own, first map[string]*use, firstVersion map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(first)) {
		theirs := first[path]
		hasVerb := slices.ContainsFunc(slices.Collect(maps.Values(own)), func(u *use) bool { return u.Verb == theirs.Verb })
		if own[path] != nil && own[path].Verb != "" || hasVerb {
			continue
		}
		at, declared := v.find(theirs.path)
		if !declared {
			continue
		}
		var edits []edit
		if own[path] == nil && theirs.form == schema.FormSchemaKeys {
			edits = o.insert(at.pointer, theirs)
		}
		l.report(o, at.pointer, where([]string{v.name}, theirs.path), finding.Finding{
			Rule: versionsDiffer, Level: finding.Error,
			Message: fmt.Sprintf("path %q of served version %q lacks verb %q, which version %q has", theirs.path, v.name, theirs.Verb, firstVersion[path]),
			Cure:    "give it the same verb in every served version that has it", About: theirs.Verb,
		}, edits...)
	}
}

// lossy reports a version through which a write may change what it does not show, as the compiler sees it.
func (l *linter) lossy(o *object, d *definition, v *version) {
	k := l.kind(d.group, v.name, d.kind)
	if k == nil || !k.Lossy() {
		return
	}
	cost := "of the granular verbs only granular:* covers a write through it"
	var barriers []string
	for _, b := range k.HiddenBarriers(nil) {
		barriers = append(barriers, b.String())
	}
	if len(barriers) > 0 {
		cost += ", and each write must pass the barriers " + strings.Join(barriers, ", ")
	}
	why := ""
	switch storage := d.storage(); {
	case d.converts:
		why = "a webhook converts it"
	case storage != nil && storage != v:
		if fields := differences(v.root(), storage.root()); len(fields) > 0 {
			why = fmt.Sprintf("it differs from the storage version %q in %s", storage.name, list(fields))
		}
	}
	if why != "" {
		cost += " (" + why + ")"
	}
	l.report(o, strings.TrimSuffix(v.pointer, "/schema/openAPIV3Schema")+"/name", v.name, finding.Finding{
		Rule: versionLossy, Level: finding.Warning, Message: fmt.Sprintf("version %q is lossy: %s", v.name, cost), Cure: k.Instead(), About: v.name,
	})
}

// differences returns the paths at which two schemas have other fields or other types. It does not look below such a path.
func differences(a, b place) []string {
	if typeOf(a.schema) != typeOf(b.schema) {
		return []string{a.path.String()}
	}
	theirs := map[string]place{}
	for _, p := range b.below() {
		theirs[p.path.String()] = p
	}
	var out []string
	for _, p := range a.below() {
		name := p.path.String()
		other, both := theirs[name]
		delete(theirs, name)
		if !both {
			out = append(out, name)
			continue
		}
		out = append(out, differences(p, other)...)
	}
	out = append(out, slices.Sorted(maps.Keys(theirs))...)
	slices.Sort(out)
	return out
}

// shown is how many paths a message lists.
const shown = 5

func list(paths []string) string {
	if len(paths) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:shown], ", "), len(paths)-shown)
	}
	return strings.Join(paths, ", ")
}
