package tighten

import "github.com/fieldperm/fieldperm/verbs"

// logSource names audit logs in the sources of a Use.
const logSource = "audit log"

// Collect adds an update of an audit log.
func (e *Evidence) Collect(ev *Event) {
	w := e.written(ev.Resource)
	if w == nil {
		return
	}
	for _, group := range ev.Groups {
		e.group(group)
	}
	e.add(w, verbs.Marker, logSource, ev.Time, ev.Object)
	if ev.Created && !ev.Marked {
		// The verb create covers what a new object has. The marker lets the request in.
		return
	}
	if !ev.Observed {
		w.Unobserved++
	}
	w.Cut += ev.fields.cut
	if ev.fields.none {
		w.None++
	}
	e.Omitted += int64(ev.fields.faulty)
	for _, verb := range ev.fields.verbs {
		e.add(w, verb, logSource, ev.Time, ev.Object)
	}
}
