package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// sequence is several writes in a row of one user to one object, followed by an apply of another applier with its unchanged manifest. Each
// write is also judged on its own.
type sequence struct {
	victim   *victim
	user     *User
	endpoint *Endpoint
	theme    *theme
	// written are the places that the user wrote. applied are the places that the user's own manager applies.
	written, applied [][]any
	// lent are the places that the user applied under the name of the other applier.
	lent []string
	sent []*Request
}

// sequenceWrites is the maximum number of writes of a sequence.
const sequenceWrites = 5

// ownManager is the name under which users apply for themselves.
const ownManager = "granular"

// sequence plays one sequence. It returns the number of writes that it sent: none without an applier or a place to write.
func (s *shard) sequence(ctx context.Context, e *Endpoint) (int, error) {
	v, err := s.victim(ctx, e)
	if err != nil || v.applier == nil || !v.applier.serverSide {
		return 0, nil //nolint:nilerr // Ordinary writes report an endpoint without objects.
	}
	q := &sequence{victim: v, endpoint: v.applier.endpoint}
	shown, err := s.read(ctx, q.endpoint, v.name)
	if err != nil {
		return 0, nil //nolint:nilerr // It went by itself.
	}
	for range 16 {
		// Choose among all users, because most users hold no usable verb here. What a gate gives changes with the object.
		if q.user = pick(s.draw, s.users); len(q.user.gates) == 0 && q.user.may(e.Place) && s.choose(q, shown) {
			break
		}
	}
	if q.theme == nil {
		return 0, nil
	}
	if !s.oneIn(3) {
		if err := s.prepare(ctx, q, shown); err != nil {
			return 0, err
		}
	}
	before, err := s.settled(ctx, v)
	if err != nil || before == nil {
		return 0, err
	}
	stored := false
	for tries, least := 0, 1+s.IntN(sequenceWrites); tries < 4*least && len(q.sent) < least; tries++ {
		r, err := s.next(ctx, q)
		if errors.Is(err, errNoPatch) {
			continue
		}
		if err != nil {
			return len(q.sent), err
		}
		q.sent = append(q.sent, r)
		did, err := s.write(ctx, r)
		if err != nil {
			return len(q.sent), err
		}
		if s.victims[e.Place.Main()] != v {
			return len(q.sent), nil // The object was worn out, or the write was not permitted.
		}
		if !did {
			q.sent = q.sent[:len(q.sent)-1]
		}
		stored = stored || did
	}
	if !stored {
		return 1, nil
	}
	last := q.sent[len(q.sent)-1]
	found, err := s.second(ctx, last, v, before)
	if err != nil || found == nil {
		return len(q.sent), err
	}
	last.Earlier = q.sent[:len(q.sent)-1]
	return len(q.sent), s.fail(ctx, last, &Answer{}, found, v)
}

// choose draws the theme of the writes. It draws none if the user can change nothing, and rarely a theme that is not a key of a map: more
// can go wrong in a map whose keys have several owners.
func (s *shard) choose(q *sequence, shown map[string]any) bool {
	if q.theme = s.themeOf(q.user, q.endpoint); q.theme == nil {
		return false
	}
	path, _ := s.placeFor(q, &Request{User: q.user, Endpoint: q.endpoint}, shown, true)
	if path != nil && !s.oneIn(4) {
		m, _ := at(shown, path[:len(path)-1]).(map[string]any)
		for _, value := range m {
			if _, text := value.(string); !text {
				path = nil
			}
		}
	}
	if path == nil {
		q.theme = nil
	}
	return path != nil
}

// may reports whether any write of the user that changes something could pass.
func (u *User) may(p Place) bool {
	return u.generic(standing{p, false}) || u.Holds(p, "granular") && len(u.grants[p]) > 1
}

// next draws the next write.
func (s *shard) next(ctx context.Context, q *sequence) (*Request, error) {
	old, err := s.read(ctx, q.endpoint, q.victim.name)
	if err != nil {
		return nil, err
	}
	r := &Request{User: q.user, Endpoint: q.endpoint, Namespace: s.namespace, Name: q.victim.name}
	switch n := s.IntN(10); {
	case n < 3:
		return r, s.writeOwn(q, r, old)
	case n < 6:
		return r, s.applyAs(q, r, old)
	case n < 9 && len(q.written) > 0:
		return r, s.takeBack(q, r, old)
	case s.oneIn(2):
		if e := s.scaleOf(q.endpoint); e != nil {
			r.Endpoint, r.Method, r.Manager, r.Edits, r.Body = e, MergePatch, ownManager, []string{"scale to the same number"}, []byte(`{}`)
			return r, nil
		}
	}
	return r, s.handOn(q, r, old)
}

// scaleOf returns the scale of a resource, nil if it has none.
func (s *shard) scaleOf(e *Endpoint) *Endpoint {
	i := slices.IndexFunc(s.endpoints, func(other *Endpoint) bool {
		return other.Sub == "scale" && other.Place.Main() == e.Place.Main() && other.Version == e.Version
	})
	if i < 0 {
		return nil
	}
	return s.endpoints[i]
}

// placeFor draws a place of the theme that the user may write. It returns the object with the changed place.
func (s *shard) placeFor(q *sequence, r *Request, old map[string]any, change bool) ([]any, map[string]any) {
	for range 10 {
		path := q.theme.path(s.draw, old)
		if len(path) == 0 {
			continue
		}
		value := at(old, path)
		if _, whole := value.(map[string]any); whole && !s.oneIn(4) {
			continue
		}
		new, other := clone(old), s.another(value)
		if change && reflect.DeepEqual(value, other) {
			continue
		}
		plant(new, path, other)
		if s.may(r, old, new) {
			return path, new
		}
	}
	return nil, nil
}

// writeOwn writes under the user's own name.
func (s *shard) writeOwn(q *sequence, r *Request, old map[string]any) error {
	r.Method, r.Manager = pick(s.draw, []Method{Update, MergePatch, JSONPatch, ForcedApply}), ownManager
	path, new := s.placeFor(q, r, old, r.Method != ForcedApply)
	if path == nil {
		return errNoPatch
	}
	q.written = append(q.written, path)
	r.Edits = []string{fmt.Sprintf("write %v", path)}
	if r.Method == ForcedApply {
		q.applied = append(q.applied, path)
		return q.applyOwn(r, new)
	}
	return s.carry(r, withoutOwners(old), withoutOwners(new))
}

// withoutOwners removes the owners from the object: a PUT without owners keeps them as they are at any time.
func withoutOwners(object map[string]any) map[string]any {
	delete(metadata(object), "managedFields")
	return object
}

func (s *shard) carry(r *Request, old, new map[string]any) error {
	var err error
	r.Body, err = body(s.draw, r, old, new)
	return err
}

// applyOwn applies the manifest of the user's own manager.
func (q *sequence) applyOwn(r *Request, from map[string]any) error {
	r.Method, r.Manager = ForcedApply, ownManager
	out := map[string]any{"apiVersion": from["apiVersion"], "kind": from["kind"], "metadata": map[string]any{"name": r.Name}}
	for _, path := range q.applied {
		if value := at(from, path); value != nil {
			plant(out, path, value)
		}
	}
	var err error
	r.Body, err = json.Marshal(out)
	return err
}

// applyAs applies the manifest of the other applier under its name, with an additional field.
func (s *shard) applyAs(q *sequence, r *Request, old map[string]any) error {
	path, new := s.placeFor(q, r, old, false)
	if path == nil {
		return errNoPatch
	}
	if s.oneIn(3) {
		new = old // Use the existing value.
	}
	manifest, err := parseObject(q.victim.applier.manifest)
	if err != nil {
		return err
	}
	value := at(new, path)
	again := fmt.Sprint(path, value)
	if value == nil || reflect.DeepEqual(at(manifest, path), value) || slices.Contains(q.lent, again) {
		return errNoPatch
	}
	q.lent = append(q.lent, again)
	plant(manifest, path, value)
	r.Method, r.Manager, r.Edits = pick(s.draw, []Method{Apply, ForcedApply}), q.victim.applier.manager, []string{fmt.Sprintf("apply the other's manifest with %v", path)}
	r.Body, err = json.Marshal(manifest)
	return err
}

// takeBack removes a field that the user wrote, or no longer applies it.
func (s *shard) takeBack(q *sequence, r *Request, old map[string]any) error {
	if len(q.applied) > 0 && s.oneIn(2) {
		i := s.IntN(len(q.applied))
		r.Edits = []string{fmt.Sprintf("no longer apply %v", q.applied[i])}
		q.applied = slices.Delete(slices.Clone(q.applied), i, i+1)
		return q.applyOwn(r, old)
	}
	path := pick(s.draw, q.written)
	new := clone(old)
	if !uproot(new, path) {
		return errNoPatch
	}
	r.Method, r.Manager, r.Edits = pick(s.draw, []Method{Update, MergePatch, JSONPatch}), ownManager, []string{fmt.Sprintf("take %v back", path)}
	return s.carry(r, withoutOwners(old), withoutOwners(new))
}

// handOn edits managedFields: the owners of the theme, or of any field.
func (s *shard) handOn(q *sequence, r *Request, old map[string]any) error {
	new := clone(old)
	what := ""
	if s.oneIn(4) {
		what = pick(s.draw, []change{editManagedFields, adopt})(s.draw, new)
	} else if path := q.theme.path(s.draw, old); len(path) > 0 {
		what = handOver(s.draw, new, path[:2+s.IntN(len(path)-1)], q.victim.applier.manager)
	}
	if what == "" || reflect.DeepEqual(old, new) {
		return errNoPatch
	}
	r.Method, r.Manager, r.Edits = pick(s.draw, []Method{Update, JSONPatch, MergePatch}), ownManager, []string{what}
	return s.carry(r, old, new)
}

// prepare creates fields without an owner where the user will write, before the user's first write: policies, other clients and edits of
// managedFields leave such fields. It may remove existing fields from the other applier's manifest.
func (s *shard) prepare(ctx context.Context, q *sequence, shown map[string]any) error {
	path := q.theme.path(s.draw, shown)
	if len(path) < 2 {
		return nil
	}
	if len(path) > 2 && !s.oneIn(4) {
		path = path[:len(path)-1] // Use the container of the place.
	}
	if s.oneIn(2) {
		less, err := parseObject(q.victim.applier.manifest)
		if err != nil {
			return err
		}
		if uproot(less, path) {
			if q.victim.applier.manifest, err = json.Marshal(less); err != nil {
				return err
			}
			s.forget()
			if _, err := s.settled(ctx, q.victim); err != nil {
				return err
			}
		}
	}
	more := clone(shown)
	if m, ok := at(more, path).(map[string]any); ok || len(path) == 2 && path[0] == "metadata" && q.theme.place[0] == "metadata" {
		for range 2 {
			key := pick(s.draw, append([]string{q.theme.place[len(q.theme.place)-1]}, labelKeys...))
			if _, there := m[key]; !there && key != "" && !strings.HasSuffix(key, "/") && (path[1] == "labels" || path[1] == "annotations") {
				plant(more, append(slices.Clone(path), key), "privileged")
			}
		}
		if err := s.prepared(ctx, q, shown, more); err != nil {
			return err
		}
	}
	shown, err := s.read(ctx, q.endpoint, q.victim.name)
	if err != nil {
		return nil //nolint:nilerr // It went by itself.
	}
	disowned := clone(shown)
	list, _ := metadata(disowned)["managedFields"].([]any)
	for _, entry := range list {
		disown(entry, path)
	}
	s.table.add(s.table.steps, "fields left without an owner before")
	return s.prepared(ctx, q, shown, disowned)
}

// prepared writes a change as an administrator.
func (s *shard) prepared(ctx context.Context, q *sequence, old, new map[string]any) error {
	patch, err := json.Marshal(operations([]any{}, "", old, new))
	if err != nil {
		return err
	}
	s.forget()
	// A refused change leaves the object as it is, which is good enough.
	if _, err = s.sender.admin(ctx, http.MethodPatch, q.endpoint.Path(s.namespace, q.victim.name)+"?fieldManager=maker", contentTypes[JSONPatch], patch); err != nil {
		return err
	}
	_, err = s.store.Settle(ctx, s.number)
	return err
}

// fieldsPath is a path in the notation of managedFields.
func fieldsPath(path []any) []string {
	var out []string
	for _, step := range path {
		switch step := step.(type) {
		case string:
			out = append(out, "f:"+step)
		case named:
			out = append(out, `k:{"name":"`+string(step)+`"}`)
		}
	}
	return out
}

// disown removes a path, and the paths below it, from an entry of managedFields. It returns the removed part of the entry.
func disown(entry any, path []any) (had map[string]any) {
	m, _ := entry.(map[string]any)
	in, _ := m["fieldsV1"].(map[string]any)
	steps := fieldsPath(path)
	for _, step := range steps[:len(steps)-1] {
		in, _ = in[step].(map[string]any)
	}
	had, _ = in[steps[len(steps)-1]].(map[string]any)
	delete(in, steps[len(steps)-1])
	return had
}

// handOver gives a place, with the paths below it, to a manager that applies, and removes it from all other managers or from none.
func handOver(d *draw, object map[string]any, path []any, manager string) string {
	list, _ := metadata(object)["managedFields"].([]any)
	if slices.ContainsFunc(path, func(step any) bool { text, _ := step.(string); return strings.HasPrefix(text, "managedFields") }) || at(object, path) == nil {
		return ""
	}
	var into map[string]any
	all := map[string]any{}
	leave := d.oneIn(3)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if entry["manager"] == manager && entry["operation"] == "Apply" && entry["subresource"] == nil {
			into, _ = entry["fieldsV1"].(map[string]any)
		} else if !leave {
			merge(all, disown(entry, path))
		}
	}
	if into == nil {
		return ""
	}
	if d.oneIn(3) {
		all = map[string]any{} // The entry of the container itself.
	}
	for _, step := range fieldsPath(path) {
		into = child(into, step)
	}
	merge(into, all)
	return fmt.Sprintf("hand %v over", path)
}
