package tighten

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"
)

// observationSource names PermissionObservations in the sources of a Use.
const observationSource = "observation"

// Observations returns what PermissionObservations have seen of the subject, and the names of those that observe it. Several
// observations of one subject see the same writes, so the result has the largest count of each verb.
func Observations(s Subject, items []v1alpha1.PermissionObservation) (*Evidence, []string) {
	all := &Evidence{}
	var names []string
	for i := range items {
		o := &items[i]
		switch observes(o, s) {
		case observedAlone, observedByName:
		case observedAmong:
			all.Gaps = append(all.Gaps, fmt.Sprintf("PermissionObservation %q observes %s and others, and its status has no groups: give %s an observation of its own", o.Name, s, s))
			continue
		default:
			continue
		}
		names = append(names, o.Name)
		all.Merge(observation(s, o))
	}
	return all, names
}

// observed says how an observation is about a subject.
type observed int

const (
	notObserved observed = iota
	// observedAlone: every row is about the subject.
	observedAlone
	// observedByName: the user of a row says whether it is.
	observedByName
	// observedAmong: the rows of a group cannot be told from others.
	observedAmong
)

func observes(o *v1alpha1.PermissionObservation, s Subject) observed {
	found := notObserved
	for i := range o.Spec.Subjects {
		named := &o.Spec.Subjects[i]
		is := s.names(&rbacv1.Subject{Kind: named.Kind, Name: named.Name, Namespace: named.Namespace}, "")
		switch {
		case is && len(o.Spec.Subjects) == 1:
			return observedAlone
		case is && s.Kind == rbacv1.GroupKind:
			return observedAmong
		case is, named.Kind == rbacv1.GroupKind && s.Kind != rbacv1.GroupKind && hasRows(o, s):
			// A group may contain the subject. If it does, rows have its name.
			found = observedByName
		}
	}
	return found
}

func hasRows(o *v1alpha1.PermissionObservation, s Subject) bool {
	for i := range o.Status.Resources {
		if o.Status.Resources[i].User == s.Username() {
			return true
		}
	}
	return false
}

func observation(s Subject, o *v1alpha1.PermissionObservation) *Evidence {
	e := &Evidence{}
	gap := func(format string, args ...any) {
		e.Gaps = append(e.Gaps, fmt.Sprintf("PermissionObservation %q ", o.Name)+fmt.Sprintf(format, args...))
	}
	status := &o.Status
	switch {
	case status.ObservedGeneration == 0:
		gap("has no status: fieldperm has not begun to observe, wait or look at its log")
		return e
	case status.ObservedGeneration != o.Generation:
		gap("has the status of an earlier specification: wait until fieldperm has written it")
	}
	if status.Omitted > 0 {
		gap("omits %d uses of verbs, because its status is full: narrow spec.resources, or use an audit log", status.Omitted)
	}
	if status.Failed > 0 {
		gap("could not determine the verbs of %d writes: look at its conditions", status.Failed)
	}
	e.Denied = status.Denied
	for i := range status.Gaps {
		g := &status.Gaps[i]
		gap("may have missed writes from %s to %s: %s", g.From.UTC().Format(timeFormat), g.To.UTC().Format(timeFormat), g.Reason)
	}
	for i := range status.Resources {
		if row := &status.Resources[i]; s.Kind == rbacv1.GroupKind || row.User == s.Username() {
			e.row(row, status)
		}
	}
	return e
}

// timeFormat is the format of times in texts.
const timeFormat = "2006-01-02T15:04:05Z"

// row adds one row of a status.
func (e *Evidence) row(row *v1alpha1.ObservedResource, status *v1alpha1.PermissionObservationStatus) {
	w := e.written(Resource{row.Group, row.Resource})
	if w == nil {
		return
	}
	marker := &Use{Count: row.Writes, Sources: []string{observationSource}, Namespaces: map[string]bool{}, Names: map[Object]bool{}, MoreNames: true}
	if status.Since != nil {
		marker.First = status.Since.Time
	}
	if status.Updated != nil {
		marker.Last = status.Updated.Time
	}
	for i := range row.Verbs {
		v := &row.Verbs[i]
		from := &Use{
			Count: v.Count, First: v.FirstTime.Time, Last: v.LastTime.Time, Example: Object{v.Example.Namespace, v.Example.Name},
			Sources: []string{observationSource}, Namespaces: map[string]bool{}, MoreNamespaces: v.MoreNamespaces,
			Names: map[Object]bool{}, MoreNames: v.Count > 1 || v.Example.Name == "",
		}
		if v.Example.Name != "" {
			from.Names[from.Example] = true
		}
		from.namespace(v.Example.Namespace)
		for _, namespace := range v.Namespaces {
			from.namespace(namespace)
		}
		if i == 0 {
			marker.First, marker.Last, marker.Example = from.First, from.Last, from.Example
		}
		seen := *from
		seen.Count = row.Writes
		e.merge(marker, &seen)
		if v.Verb == noVerb {
			w.None += v.Count
			continue
		}
		if _, err := verbs.Parse(v.Verb); err != nil || v.Verb == verbs.Marker {
			e.Gaps = append(e.Gaps, fmt.Sprintf("an observation of %s has the verb %q, which is none: ignored", Resource{row.Group, row.Resource}, v.Verb))
			continue
		}
		if u := e.use(w, v.Verb); u != nil {
			e.merge(u, from)
		}
	}
	if len(row.Verbs) == 0 {
		// Writes that changed nothing: their objects are not known.
		marker.MoreNamespaces = true
	}
	if u := e.use(w, verbs.Marker); u != nil {
		e.merge(u, marker)
	}
}
