package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// coverage finds fields that have no verb of their own. A path is reported for the first version that has it.
func (l *linter) coverage(o *object, d *definition) {
	reported := map[string]bool{}
	for i := range d.versions {
		v := &d.versions[i]
		if !v.served || v.schema == nil {
			continue
		}
		c := &cover{linter: l, object: o, version: v.name, own: l.entriesOf(o, d, v.name), reported: reported}
		for _, top := range v.root().below() {
			switch name := top.name(); name {
			case "apiVersion", "kind", "metadata", "status":
				continue
			case "spec":
				for _, field := range top.below() {
					c.field(field)
				}
			default:
				c.field(top)
			}
			c.powers(top, "")
		}
	}
}

// entriesOf returns the paths with a verb in a version, those of PermissionSchemas included.
func (l *linter) entriesOf(o *object, d *definition, version string) map[string]string {
	out := map[string]string{}
	for path, u := range effective(o.uses(), version) {
		if u.Verb != "" {
			out[path] = u.Verb
		}
	}
	for i := range o.docs.Permissions {
		// The replicas of the scale subresource have the verb scale.
		if doc := &o.docs.Permissions[i]; doc.Form == schema.FormScale && slices.Contains(doc.Versions, version) {
			for _, e := range doc.Entries {
				out[e.Path] = e.Verb
			}
		}
	}
	for _, other := range l.objects {
		if other.ref.Kind != schemaKind {
			continue
		}
		for _, u := range other.uses() {
			if u.group == d.group && u.kind == d.kind && u.isAbout(version) && u.Verb != "" {
				out[u.path.String()] = u.Verb
			}
		}
	}
	return out
}

// cover is the search in one version.
type cover struct {
	*linter
	*object
	version string
	// own are the verbs by path.
	own      map[string]string
	reported map[string]bool
}

// once reports whether a path is reported for the first time.
func (c *cover) once(rule string, path fieldpath.Pattern) bool {
	key := rule + " " + path.String()
	first := !c.reported[key]
	c.reported[key] = true
	return first
}

// field reports a field of the specification without a verb at it or below it.
func (c *cover) field(p place) {
	path := p.path.String()
	for guarded := range c.own {
		if guarded == path || strings.HasPrefix(guarded, path+".") || strings.HasPrefix(guarded, path+"[") {
			return
		}
	}
	if !c.once(fieldNoVerb, p.path) {
		return
	}
	covering := "only granular:specification and granular:* cover it"
	if p.path[0].Name != "spec" {
		covering = "only granular:* covers it"
	}
	c.report(c.object, p.pointer, where([]string{c.version}, p.path), finding.Finding{
		Rule: fieldNoVerb, Level: finding.Note, Message: fmt.Sprintf("field %q has no verb: of the granular verbs %s", p.path, covering),
		Cure: "give it a verb, if some user should write it and not the rest",
	})
}

// powers reports fields with a power by their name. Below a field with a power it reports nothing: whoever holds that has the power anyway.
func (c *cover) powers(p place, coveredBy string) {
	own := c.own[p.path.String()]
	if own == "" {
		own = c.own[p.path.Child(fieldpath.Element{Any: true}).String()]
	}
	if name := p.name(); name != "" {
		if problem, has := convention.Unguarded(name, coveredBy); has && convention.Fits(name, typeOf(p.schema)) {
			if own == "" && c.once(convention.PowerByName, p.path) {
				c.report(c.object, p.pointer, where([]string{c.version}, p.path), finding.Finding{Rule: problem.Rule, Level: problem.Level, Message: problem.Message, Cure: problem.Cure})
			}
			return
		}
	}
	if own != "" {
		coveredBy = own
	}
	for _, next := range p.below() {
		c.powers(next, coveredBy)
	}
}
