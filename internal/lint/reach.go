package lint

import (
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// parameters finds parameter sources without a user.
func (l *linter) parameters(o *object) {
	for _, u := range o.uses() {
		if u.ParameterSource == "" || l.isTaken(u) {
			continue
		}
		l.report(o, u.pointer("parameterSource"), u.where(), finding.Finding{
			Rule: sourceNoUser, Level: finding.Warning, Message: fmt.Sprintf("parameter %q is emitted, and no verb at or below %q takes it", u.ParameterSource, reachOf(u.path)),
			Cure: "let a verb take it with parameterizedBy, or remove the source", About: u.ParameterSource,
		})
	}
}

// reachOf returns the path from which on verbs can take the parameter of a source: a key property of a list-map emits it for the whole item.
func reachOf(path fieldpath.Pattern) fieldpath.Pattern {
	if n := len(path); n >= 2 && !path[n-1].Any && path[n-2].Any {
		return path[:n-1]
	}
	return path
}

// isTaken reports whether a verb takes the parameter of a source, in any document about the kind.
func (l *linter) isTaken(source *use) bool {
	reach := reachOf(source.path)
	takes := func(path fieldpath.Pattern, e *compile.Entry) bool {
		return e.ParameterizedBy == source.ParameterSource && len(path) >= len(reach) && path[:len(reach)].Meets(reach)
	}
	for _, o := range l.objects {
		for _, u := range o.uses() {
			if u.group == source.group && u.kind == source.kind && takes(u.path, &u.Entry) {
				return true
			}
		}
	}
	for i := range l.catalogue {
		d := &l.catalogue[i]
		if d.Kind != "*" && (d.Group != source.group || d.Kind != source.kind) {
			continue
		}
		for j := range d.Entries {
			if path, err := fieldpath.ParsePattern(d.Entries[j].Path); err == nil && takes(path, &d.Entries[j]) {
				return true
			}
		}
	}
	return false
}

// reach finds verbs that no change can need.
func (l *linter) reach(o *object) {
	for _, u := range o.uses() {
		if u.Verb == "" {
			continue
		}
		if d := o.definition; d != nil && len(u.versions) == 1 {
			if v := d.version(u.versions[0]); v != nil && !v.served && !v.storage {
				l.report(o, u.pointer("verb"), u.where(), finding.Finding{
					Rule: verbUnreachable, Level: finding.Note, Message: fmt.Sprintf("verb %q: version %q is neither served nor the storage version", u.Verb, v.name),
					Cure: "remove the entry, or serve the version", About: u.Verb,
				})
				continue
			}
		}
		l.reached(u)
	}
}

// reached follows the path of an entry in the compiled versions. An entry is fine if it has an effect in one of them.
func (l *linter) reached(u *use) {
	var whyNot *finding.Finding
	for _, k := range l.kinds(u) {
		f := l.blocked(u, k)
		if f == nil {
			return
		}
		whyNot = f
	}
	if whyNot != nil {
		whyNot.About = u.Verb
		l.report(u.object, u.pointer("verb"), u.where(), *whyNot)
	}
}

// blocked returns why no change through a version can need the verb, nil if one can or if the version lacks the path.
func (l *linter) blocked(u *use, k *schema.Kind) *finding.Finding {
	at := k.Root
	var atomic fieldpath.Pattern
	var isList bool
	for i, e := range u.path {
		if atomic == nil && (at.List() != nil && at.List().Atomic() && e.Any || at.Map() != nil && at.Map().Atomic()) {
			atomic, isList = u.path[:i], at.List() != nil && at.List().Atomic() && e.Any
		}
		if at = at.Step(e); at == nil || at == schema.Unknown() {
			return nil
		}
		if at.Role() == schema.RoleServerWritten {
			return &finding.Finding{
				Rule: verbUnreachable, Level: finding.Warning, Message: fmt.Sprintf("verb %q: the API server writes %q by itself, and no change of it is charged", u.Verb, u.path[:i+1]),
				Cure: "remove the entry",
			}
		}
	}
	if !slices.ContainsFunc(at.Permissions(), func(p *schema.Permission) bool { return p.Base().Name() == u.Verb }) {
		return &finding.Finding{
			Rule: verbUnreachable, Level: finding.Warning, Message: fmt.Sprintf("verb %q: another entry for the path counts, with verb %s", u.Verb, verbsOf(at)),
			Cure: "remove this entry, or the one that takes its place: the annotation counts over the keys of a schema, and a PermissionSchema over both",
		}
	}
	if atomic == nil || u.IsBarrier() {
		return nil
	}
	cure := fmt.Sprintf("give the whole value the verb, with %q", atomic)
	if isList {
		cure = "give the list x-kubernetes-list-type: map and x-kubernetes-list-map-keys, or x-kubernetes-list-type: set, or move the verb to the list"
	}
	return &finding.Finding{
		Rule: atomicItemVerb, Level: finding.Warning, Message: fmt.Sprintf("verb %q is inside of %q, which is atomic: each change needs the verb of the whole", u.Verb, atomic),
		Cure: cure,
	}
}

func verbsOf(n *schema.Node) string {
	out := "none"
	for i, p := range n.Permissions() {
		if i == 0 {
			out = fmt.Sprintf("%q", p.Base().Name())
		} else {
			out += fmt.Sprintf(", %q", p.Base().Name())
		}
	}
	return out
}
