package fieldperm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/verbs"
)

// Subject describes the request for a message: the user, the action and the object.
type Subject struct {
	// Resource is the resource as an API server writes it: "deployments.apps", "deployments.apps/status".
	Resource string
	// Name is the name of the object; it may be empty on CREATE.
	Name string
	User string
	// Verb is the action of the request: "create", "update", "delete", "connect to".
	Verb string
}

// maxNameInMessage is the maximum number of bytes of one name in a message, so that a hostile name cannot fill logs.
const maxNameInMessage = 256

// Message returns the denial as text, in the form that an API server uses for its own denials (P5).
func (d *Denial) Message(s Subject) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q is forbidden: User %q ", s.Resource, shortened(s.Name), shortened(s.User))
	if d.IsRefusal() {
		fmt.Fprintf(&b, "may not %s it", s.Verb)
		d.Refusal.write(&b)
		return b.String()
	}
	if d.Requirement == nil {
		fmt.Fprintf(&b, "may not %s it: needs %s", s.Verb, strings.Join(d.Generic, " or "))
		switch {
		case d.GenericOnly:
		case slices.Contains(d.Generic, "create"):
			fmt.Fprintf(&b, ", or granular with %s and the granular verbs of every field", verbs.Creation())
		default:
			b.WriteString(", or granular with the granular verbs of every changed field")
		}
		d.Refusal.write(&b)
		d.writeUnmet(&b)
		return b.String()
	}
	if d.Requirement.Operation == Created {
		b.WriteString("may not create it")
	} else {
		fmt.Fprintf(&b, "may not change %s", shortened(d.Field()))
		if d.Requirement.Path.IsRoot() {
			b.WriteString(" (the object as a whole)")
		}
	}
	switch d.Requirement.Operation {
	case Created, Modified, Added, Removed:
	case Reordered:
		b.WriteString(" (the order of its items)")
	case Ownership:
		b.WriteString(" (its field managers")
		if d.Requirement.Entry != "" {
			b.WriteString(": " + shortened(d.Requirement.Entry))
		}
		b.WriteString(")")
	}
	switch {
	case d.Checks > 0:
		fmt.Fprintf(&b, ": the request needs more than %d permission checks", d.Checks)
		if len(d.Needs) > 0 {
			fmt.Fprintf(&b, ": a grant of %s would do, or change fewer fields at once", d.Needs[0])
		}
	case len(d.Needs) == 0:
		b.WriteString(": no verb covers it")
	case len(d.Needs) == 1:
		fmt.Fprintf(&b, ": needs %s", d.Needs[0])
	default:
		b.WriteString(": needs any one of ")
		for i, v := range d.Needs {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(v.String())
		}
	}
	if d.Requirement.Instead != "" {
		fmt.Fprintf(&b, "; %s", d.Requirement.Instead)
	}
	d.Refusal.write(&b)
	d.writeUnmet(&b)
	if d.Unattributed && d.Requirement.Instead == "" {
		b.WriteString("; no field manager owns this change: a default of the API server, a mutating webhook or a policy made it, not the request")
	}
	if d.More > 0 {
		fmt.Fprintf(&b, " (%d more %s not looked at)", d.More, plural(d.More, "change was", "changes were"))
	}
	return b.String()
}

// write adds the authorizer that denies the verb, so that the reader does not search for a missing grant.
func (r *Refusal) write(b *strings.Builder) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "; authorizer %q denies %s", shortened(r.By), shortened(r.Verb))
	if r.Reason != "" {
		fmt.Fprintf(b, ": %q", shortened(r.Reason))
	}
}

// maxUnmetInMessage is the maximum number of conditions that a message names.
const maxUnmetInMessage = 3

// writeUnmet adds the conditions that are not met.
func (d *Denial) writeUnmet(b *strings.Builder) {
	for i, u := range d.Unmet {
		if i == maxUnmetInMessage {
			fmt.Fprintf(b, "; %d more %s not met", len(d.Unmet)-i, plural(len(d.Unmet)-i, "condition is", "conditions are"))
			return
		}
		if u.Authorizer == "" {
			fmt.Fprintf(b, "; the condition of policy %q is not met", shortened(u.Name))
		} else {
			fmt.Fprintf(b, "; the condition %q of authorizer %q is not met", shortened(u.Name), shortened(u.Authorizer))
		}
		if u.Description != "" {
			fmt.Fprintf(b, ": %q", shortened(u.Description))
		}
	}
}

// Field returns the path of the first change that is not covered, "" if the denial names no change.
func (d *Denial) Field() string {
	if d.Requirement == nil {
		return ""
	}
	return d.Requirement.Path.String()
}

func plural(n int, singular, several string) string {
	if n == 1 {
		return singular
	}
	return several
}

func shortened(name string) string { return shorten.Text(name, maxNameInMessage) }
