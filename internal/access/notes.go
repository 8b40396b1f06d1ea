package access

import (
	"fmt"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// general are the notes of every answer: what RBAC does not know.
var general = []string{
	"RBAC does not know who is in a group: a row is about a user with the groups that every such user has, and no others.",
	"Members of system:masters may change everything. RBAC is not asked about them.",
	"Granular verbs let a write in while fieldperm runs and enforcement is proven.",
	"Other authorizers of kube-apiserver (Node, webhooks, ABAC) and of fieldperm-webhook were not read.",
}

// granularNote is the index of the note about granular verbs.
const granularNote = 2

// Notes returns sentences that an answer about a place needs, the special ones first.
func Notes(w *Write, p *fieldtree.Place) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	path := p.Path.String()
	switch p.Node().Role {
	case schema.RoleServerWritten:
		say("The API server writes %s: no request changes it.", path)
	case schema.RoleIdentity:
		if w.posts() {
			say("%s needs no verb in a new object.", path)
		} else {
			say("The API server refuses most changes of %s, whoever makes them.", path)
		}
	case schema.RoleOwnership:
		say("Changing the owner of a field needs the verb of that field: ask about the field.")
	case schema.RoleNone:
	}
	if !w.TakesMarker || w.Absent {
		say("Granular verbs let no write of %s in.", p.Kind.ResourceName())
	}
	if w.OnFloor && !w.Absent {
		say("No barrier of an UncoveredPermissionSet reaches %s: the control plane needs them.", p.Kind.ResourceName())
	}
	if w.posts() {
		say("A new object needs granular:creation and the verb of every field that it has. The rows are about its existence and this field.")
	}
	if p.Kind.Lossy {
		say("A write through version %s may change fields that it does not show. It needs granular:* or the generic permission.", p.Kind.Version)
	}
	switch {
	case w.drops(p):
		say("The API server drops changes of %s in writes of %s: ask with --subresource status.", path, p.Kind.ResourceName())
	case w.Subresource == "" && isStatus(path) && !endpoint.BuiltIn(w.Group, w.Resource):
		say("If the definition has the subresource status, the API server drops changes of %s in writes of %s: ask with --subresource status.", path, p.Kind.ResourceName())
	}
	if below := barriersBelow(p); len(below) > 0 && !w.Absent {
		say("Fields below have barriers, which need their verbs as well: %s.", listed(below))
	}
	if len(p.Path) > 0 && len(p.Node().Children) > 0 { // The answer about an object lists the fields too.
		say("Subjects that may change only a part of it have no row: ask about the part.")
	}
	for i, text := range general {
		if i != granularNote || w.TakesMarker {
			out = append(out, text)
		}
	}
	return out
}

func isStatus(path string) bool { return path == ".status" || strings.HasPrefix(path, ".status.") }

// drops reports whether the API server drops changes of a field in the write: the status of a built-in kind is written through its subresource.
func (w *Write) drops(p *fieldtree.Place) bool {
	_, has := endpoint.Lookup(w.Group, w.Resource, "status")
	return has && w.Subresource == "" && isStatus(p.Path.String()) && endpoint.BuiltIn(w.Group, w.Resource) &&
		!(w.posts() && endpoint.StatusOnCreate(w.Group, w.Resource))
}

// maxLooked bounds the fields that are looked at below a place, because a type may unfold without bound.
const maxLooked = 20_000

// barriersBelow returns the verbs of barriers below a place with the path of each, without those of verbs above it.
func barriersBelow(p *fieldtree.Place) []string {
	var out []string
	left := maxLooked
	seen := map[string]bool{}
	var visit func(*fieldtree.Place)
	visit = func(at *fieldtree.Place) {
		for _, c := range at.Node().Children {
			below := at.Child(c)
			if left--; left < 0 || below.Repeats() != nil {
				continue
			}
			for _, v := range below.Node().Verbs {
				bars := v.Bars()
				for _, b := range below.SetsOn(v) {
					bars = bars || b.Denies()
				}
				if text := below.Path.String() + " (" + v.Text + ")"; bars && !seen[text] {
					seen[text] = true
					out = append(out, text)
				}
			}
			visit(below)
		}
	}
	visit(p)
	return out
}
