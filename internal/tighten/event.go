package tighten

import (
	"slices"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Event is a write in an audit log. Its memory is used again for the next event.
type Event struct {
	// Line of the log, from 1.
	Line int64
	Time time.Time
	// User is the impersonated user if there is one: the write is authorized for it.
	User   string
	Groups []string
	// UserUID is that of the ServiceAccount, if the user has authenticated as one. Other users may have one or not.
	UserUID string
	// Verb is update or patch.
	Verb     string
	Resource Resource
	// Version is the API version of the request, without the group.
	Version string
	Object  Object
	UID     string
	DryRun  bool
	// Created: an update or a patch created the object. Its fields are those of a CREATE.
	Created bool
	// Marked: the webhook of users without the generic verb listed the fields.
	Marked bool
	// Observed: the event has the annotation with the changed fields.
	Observed bool
	fields   fields
}

// outcome says what an event of a log is.
type outcome int

const (
	// isOther: of another user, or no update.
	isOther outcome = iota
	isBroken
	isOtherStage
	isFailed
	isWrite
)

// members are the values of one event that are needed to judge it.
type members struct {
	kind, stage, verb, uri, time, stageTime     rawjson.Value
	user, impersonated, object, status, remarks rawjson.Value
}

func membersOf(event rawjson.Value) members {
	var m members
	for all := event.Members(); all.Next(); {
		into := &m.kind
		switch string(all.Name().Raw()) {
		case "kind":
		case "stage":
			into = &m.stage
		case "verb":
			into = &m.verb
		case "requestURI":
			into = &m.uri
		case "user":
			into = &m.user
		case "impersonatedUser":
			into = &m.impersonated
		case "objectRef":
			into = &m.object
		case "responseStatus":
			into = &m.status
		case "requestReceivedTimestamp":
			into = &m.time
		case "stageTimestamp":
			into = &m.stageTime
		case "annotations":
			into = &m.remarks
		default:
			continue
		}
		*into = all.Value()
	}
	return m
}

// read fills the event if it is a write of the subject.
func (ev *Event) read(event rawjson.Value, s Subject) outcome {
	m := membersOf(event)
	if m.stage.Kind() != rawjson.String {
		return isBroken
	}
	verb := text(m.verb)
	if verb != "update" && verb != "patch" {
		if verb == "" {
			return isBroken
		}
		return isOther
	}
	by := m.user
	if m.impersonated.IsObject() {
		by = m.impersonated
	}
	ev.User, ev.UserUID = text(by.Get("username")), text(by.Get("uid"))
	ev.Groups = ev.Groups[:0]
	for i := by.Get("groups").Items(); i.Next(); {
		ev.Groups = append(ev.Groups, text(i.Value()))
	}
	if !s.Made(ev.User, ev.Groups) {
		return isOther
	}
	if !m.stage.Is("ResponseComplete") {
		return isOtherStage
	}
	ev.Verb = verb
	return ev.write(&m)
}

// write fills what is the same for all users.
func (ev *Event) write(m *members) outcome {
	code, ok := m.status.Get("code").Int()
	switch {
	case !ok || code < 100:
		return isBroken // It may have succeeded.
	case code < 200 || code > 299:
		return isFailed
	}
	ev.Created = code == 201
	if ev.reference(m.object); ev.Resource.Name == "" {
		// A request for a path that is no resource.
		return isOther
	}
	ev.Time = timeOf(m.time)
	if ev.Time.IsZero() {
		ev.Time = timeOf(m.stageTime)
	}
	_, query, _ := strings.Cut(text(m.uri), "?")
	ev.DryRun = slices.ContainsFunc(strings.Split(query, "&"), func(parameter string) bool {
		return strings.HasPrefix(parameter, "dryRun=")
	})
	ev.annotations(m.remarks)
	return isWrite
}

// reference reads the objectRef.
func (ev *Event) reference(ref rawjson.Value) {
	ev.Resource, ev.Version, ev.Object, ev.UID = Resource{}, "", Object{}, ""
	subresource := ""
	for m := ref.Members(); m.Next(); {
		var into *string
		switch string(m.Name().Raw()) {
		case "apiGroup":
			into = &ev.Resource.Group
		case "resource":
			into = &ev.Resource.Name
		case "subresource":
			into = &subresource
		case "apiVersion":
			into = &ev.Version
		case "namespace":
			into = &ev.Object.Namespace
		case "name":
			into = &ev.Object.Name
		case "uid":
			into = &ev.UID
		default:
			continue
		}
		*into = text(m.Value())
	}
	if subresource != "" && ev.Resource.Name != "" {
		ev.Resource.Name += "/" + subresource
	}
}

// annotations reads the verbs of the changed fields. All webhooks list the same, so one is enough.
func (ev *Event) annotations(all rawjson.Value) {
	ev.Observed = false
	found, value := "", ""
	for m := all.Members(); m.Next(); {
		key := m.Name().String()
		if strings.HasSuffix(key, fieldsSuffix) && (found == "" || key < found) {
			// granular and observations precede uncovered.
			found, value, ev.Observed = key, text(m.Value()), true
		}
	}
	ev.Marked = found == markedFields
	ev.fields = parseFields(value, ev.fields.verbs)
}

func timeOf(v rawjson.Value) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text(v))
	if err != nil {
		return time.Time{}
	}
	return at
}

// text returns a string, and "" for any other value.
func text(v rawjson.Value) string {
	if v.Kind() != rawjson.String {
		return ""
	}
	return v.Text()
}
