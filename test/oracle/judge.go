package oracle

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/exact"
	"github.com/fieldperm/fieldperm/verbs"
)

// Verdict describes the fault in one change of a stored object.
type Verdict struct {
	Event   *Event
	Reason  string
	Charges []exact.Charge
	// custom is the drawn definition of the object, nil if it is of another kind.
	custom *custom
	// unseen says that the stored object has a part that no reader receives.
	unseen bool
}

func (v *Verdict) String() string {
	out := fmt.Sprintf("%s\n  key    %s (revision %d)", v.Reason, v.Event.Key, v.Event.Revision)
	for _, c := range v.Charges {
		out += "\n  charge " + c.String()
	}
	return out + fmt.Sprintf("\n  before %s\n  after  %s", v.Event.Old, v.Event.New)
}

// judgement is the result for one change.
type judgement struct {
	fields int
	// charges are all charges, covered or not.
	charges []exact.Charge
	wrong   *Verdict
}

// judge compares the stored value of one key before and after. It compares every changed field with the verbs that the user holds on the
// object's own resource or on the addressed resource.
func (w *world) judge(e *Event, r *Request) (judgement, error) {
	e, err := e.modern()
	if err != nil {
		return judgement{}, err
	}
	raw := e.New
	if raw == nil {
		raw = e.Old
	}
	d, err := decode(raw)
	if err != nil {
		return judgement{}, err
	}
	if e.Old != nil && e.New != nil {
		before, err := decode(e.Old)
		if err != nil {
			return judgement{}, err
		}
		if before.Kind != d.Kind {
			return judgement{}, fmt.Errorf("kind %s is stored where %s was", d.Kind, before.Kind)
		}
	}
	own, known := w.resource(d.Kind.GroupKind())
	if !known {
		return judgement{}, fmt.Errorf("no endpoint serves the stored kind %s", d.Kind)
	}
	places := []standing{{r.Endpoint.Place, r.creates}}
	if own != r.Endpoint.Place {
		places = append(places, standing{own, e.Created()})
	}
	if e.Deleted() {
		return w.judgeDeletion(e, d, r, places)
	}
	unseen := false
	if c := w.customs[own]; c != nil || own.Group == v1alpha1.GroupVersion.Group {
		for _, raw := range []*[]byte{&e.Old, &e.New} {
			var isUnseen bool
			if *raw, isUnseen, err = readable(c, *raw, e.Created()); err != nil {
				return judgement{}, err
			}
			unseen = unseen || isUnseen
		}
	}
	charges, err := w.stored.Charges(d.Kind, e.Old, e.New, w.barriers(own, r), r.version())
	if err != nil {
		return judgement{}, fmt.Errorf("%s: %w", d.Kind, err)
	}
	w.addBodyVerbs(r, charges)
	out := judgement{fields: len(charges), charges: charges}
	user, denied, err := r.User.in(own, r, e)
	if err != nil {
		return judgement{}, err
	}
	if denied != nil {
		out.wrong = &Verdict{e, "a policy denies the change: " + denied.on.expression, charges, w.customs[own], unseen}
		return out, nil
	}
	if open := uncovered(user, charges, places); len(open) > 0 {
		out.wrong = &Verdict{e, "a change is not covered by the verbs of the user", open, w.customs[own], unseen}
	}
	return out, nil
}

// addBodyVerbs adds the verbs of the Scale to the verbs of the object where a Scale becomes the replicas of an object (D11). It does not
// add them where a barrier guards the replicas.
func (w *world) addBodyVerbs(r *Request, charges []exact.Charge) {
	const replicas = ".spec.replicas"
	if r.Endpoint.Kind.Kind != "Scale" {
		return
	}
	for i := range charges {
		if c := &charges[i]; c.Path == replicas && c.Barrier < 0 {
			c.Chain = slices.Concat(c.Chain, w.stored.VerbsAt(r.Endpoint.Kind, replicas))
		}
	}
}

// modern returns the same event in versions for which a schema exists.
func (e *Event) modern() (*Event, error) {
	out := *e
	for _, raw := range []*[]byte{&out.Old, &out.New} {
		if *raw == nil {
			continue
		}
		var err error
		if *raw, err = legacy(*raw); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// judgeDeletion judges a deletion. No granular verb permits a deletion (C4). But an object with a deletion timestamp is deleted when its
// last finalizer is removed.
func (w *world) judgeDeletion(e *Event, d *decoded, r *Request, places []standing) (judgement, error) {
	if d.Metadata.DeletionTimestamp == nil {
		if slices.ContainsFunc(places, func(s standing) bool { return r.User.generic(s) }) && r.Endpoint.Sub == "eviction" {
			return judgement{fields: 1}, nil
		}
		return judgement{fields: 1, wrong: &Verdict{Event: e, Reason: "an object is deleted"}}, nil
	}
	without, err := withoutFinalizers(e.Old)
	if err != nil {
		return judgement{}, err
	}
	own, _ := w.resource(d.Kind.GroupKind())
	charges, err := w.stored.Charges(d.Kind, e.Old, without, w.barriers(own, r), r.version())
	if err != nil {
		return judgement{}, err
	}
	out := judgement{fields: len(charges)}
	user, _, err := r.User.in(own, r, e)
	if err != nil {
		return judgement{}, err
	}
	if open := uncovered(user, charges, places); len(open) > 0 {
		out.wrong = &Verdict{Event: e, Reason: "the last finalizer is gone, which no verb of the user covers", Charges: open}
	}
	return out, nil
}

func withoutFinalizers(raw []byte) ([]byte, error) {
	object, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	delete(metadata(object), "finalizers")
	if spec, ok := object["spec"].(map[string]any); ok && object["kind"] == "Namespace" {
		delete(spec, "finalizers")
	}
	return json.Marshal(object)
}

// standing is a place where a user may hold verbs, and says whether the request is a CREATE there.
type standing struct {
	Place
	create bool
}

// generic reports whether the user holds the generic permission (C6).
func (u *User) generic(s standing) bool {
	if s.create {
		return u.Holds(s.Place, "create")
	}
	return u.Holds(s.Place, "update") || u.Holds(s.Place, "patch")
}

// uncovered returns the charges that no verb of the user covers (C1, C2).
func uncovered(u *User, charges []exact.Charge, places []standing) []exact.Charge {
	var out []exact.Charge
	for _, c := range charges {
		if !slices.ContainsFunc(places, func(s standing) bool { return u.covers(s, c) }) {
			out = append(out, c)
		}
	}
	return out
}

func (u *User) covers(s standing, c exact.Charge) bool {
	generic := u.generic(s)
	if generic && c.Barrier < 0 {
		return true
	}
	if !generic && !u.Holds(s.Place, verbs.Marker) {
		return false
	}
	return slices.ContainsFunc(c.Chain[max(c.Barrier, 0):], func(v verbs.Verb) bool { return u.Holds(s.Place, v.String()) })
}

// barriers are the verbs of every UncoveredPermissionSet that names the resource of the object or the addressed resource. There are none if
// the addressed resource is on the floor.
func (w *world) barriers(own Place, r *Request) schema.VerbSet {
	out := schema.VerbSet{}
	if onFloor(r.Endpoint.Place) {
		return out
	}
	for _, set := range w.sets {
		if set.about(own, r) || set.about(r.Endpoint.Place, r) {
			for _, v := range set.verbs {
				out[v] = schema.Extent{}
			}
		}
	}
	return out
}
