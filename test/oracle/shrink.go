package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/fieldperm/fieldperm/test/exact"
)

// shrinkTries limits the number of attempts to repeat a failure.
const shrinkTries = 250

// trial is a failure that can be repeated: the object that is stored before, and the requests.
type trial struct {
	// requests has one request, or the requests of a sequence.
	requests []*Request
	key      string
	// before is the stored object when the first request is sent, nil for none.
	before map[string]any
	// bodies are the bodies of the requests. A JSON patch is under the name "patch".
	bodies []map[string]any
	// victim is set if another applier acts before and after.
	victim *victim
}

// shrink repeats a failure on the object as it was, with less and less of the object and of the bodies, as long as it fails. It returns the
// smallest failure, or nil if the failure does not occur again.
func (s *shard) shrink(ctx context.Context, t *trial, found *Verdict) *Failure {
	tries := 0
	fails := func(t *trial) *Failure {
		if tries >= shrinkTries {
			return nil
		}
		tries++
		f, err := s.play(ctx, t)
		if err != nil {
			if tries == 1 {
				s.table.hinder(t.requests[0].Endpoint, fmt.Errorf("a failure cannot be sent again: %w", err))
			}
			return nil
		}
		// A smaller trial must fail in the same way. The API server gives defaults to an object with fewer fields, which can cause another
		// failure.
		if f == nil || !found.alike(f.Verdict) {
			return nil
		}
		return f
	}
	best := fails(t)
	if best == nil {
		return nil
	}
	// The smallest of all requests is a patch that changes nothing.
	if r := t.requests[0]; len(t.requests) == 1 && r.Endpoint.Has("patch") && r.Method != Create && t.before != nil {
		empty := t.clone()
		empty.bodies[0], empty.requests[0].Method = map[string]any{}, MergePatch
		if f := fails(empty); f != nil {
			t, best = empty, f
		}
	}
	for again := true; again && tries < shrinkTries; {
		again = false
		for less := range t.smaller() {
			if f := fails(less); f != nil {
				t, best, again = less, f, true
				break
			}
		}
	}
	best.Tries = tries
	return best
}

// alike reports whether another verdict has a charge of this one, or the same reason if there are no charges.
func (v *Verdict) alike(other *Verdict) bool {
	if len(v.Charges) == 0 {
		return len(other.Charges) == 0
	}
	return slices.ContainsFunc(v.Charges, func(a exact.Charge) bool {
		return slices.ContainsFunc(other.Charges, func(b exact.Charge) bool { return a.Operation == b.Operation && a.Path == b.Path })
	})
}

// play restores the stored object, sends the requests, and judges the result.
func (s *shard) play(ctx context.Context, t *trial) (*Failure, error) {
	if err := s.restore(ctx, t); err != nil {
		return nil, err
	}
	var before []byte
	var err error
	if t.victim != nil {
		t.victim.agreed = nil
		if before, err = s.settled(ctx, t.victim); err != nil || before == nil {
			return nil, err
		}
	} else if _, err := s.store.Settle(ctx, s.number); err != nil {
		return nil, err
	}
	var sent []*Request
	stored := false
	for i, one := range t.requests {
		r := *one
		r.Earlier = sent
		_, revision, err := s.store.value(ctx, t.key)
		if err != nil {
			return nil, err
		}
		if r.Body, err = t.text(i, strconv.FormatInt(revision, 10)); err != nil {
			return nil, err
		}
		s.ledger.take(s.number, "")
		answer, err := s.sender.send(ctx, &r)
		if err != nil {
			return nil, err
		}
		events, err := s.store.Settle(ctx, s.number)
		if err != nil {
			return nil, err
		}
		if found, _ := s.weigh(&r, answer, events, s.ledger.take(s.number, r.User.Name)); len(found) > 0 {
			return &Failure{Request: &r, Answer: answer, Verdict: found[0]}, nil
		}
		stored = stored || len(events) > 0
		sent = append(sent, &r)
	}
	if t.victim == nil || !stored {
		return nil, nil
	}
	last := sent[len(sent)-1]
	v, err := s.second(ctx, last, t.victim, before)
	if err != nil || v == nil {
		return nil, err
	}
	return &Failure{Request: last, Answer: &Answer{}, Verdict: v}, nil
}

// restore writes the object back.
func (s *shard) restore(ctx context.Context, t *trial) error {
	if t.before == nil {
		return s.store.Remove(ctx, t.key)
	}
	raw, err := json.Marshal(t.before)
	if err != nil {
		return err
	}
	return s.store.Put(ctx, t.key, raw)
}

// text is the body of one request. A resourceVersion in it is replaced by the current one.
func (t *trial) text(i int, revision string) ([]byte, error) {
	if t.requests[i].Method == JSONPatch {
		return json.Marshal(t.bodies[i]["patch"])
	}
	if m, ok := t.bodies[i]["metadata"].(map[string]any); ok && m["resourceVersion"] != nil {
		m["resourceVersion"] = revision
	}
	return json.Marshal(t.bodies[i])
}

func newTrial(r *Request, key string, before []byte, v *victim) (*trial, error) {
	t := &trial{key: key, victim: v}
	var err error
	if before != nil {
		if t.before, err = parseObject(before); err != nil {
			return nil, err
		}
	}
	for _, one := range append(slices.Clone(r.Earlier), r) {
		text := one.Body
		if one.Method == JSONPatch {
			text = []byte(fmt.Sprintf(`{"patch":%s}`, text))
		}
		body, err := parseObject(text)
		if err != nil {
			return nil, err
		}
		t.requests, t.bodies = append(t.requests, one), append(t.bodies, body)
	}
	return t, nil
}

func (t *trial) clone() *trial {
	out := *t
	out.requests, out.bodies = nil, nil
	for i, r := range t.requests {
		one := *r
		out.requests, out.bodies = append(out.requests, &one), append(out.bodies, clone(t.bodies[i]))
	}
	if t.before != nil {
		out.before = clone(t.before)
	}
	return &out
}

// smaller draws the parts to leave out, the largest first, because a large part makes the trial much smaller.
func (t *trial) smaller() iter.Seq[*trial] {
	return func(yield func(*trial) bool) {
		for i := range t.requests {
			if len(t.requests) > 1 {
				less := t.clone()
				less.requests, less.bodies = slices.Delete(less.requests, i, i+1), slices.Delete(less.bodies, i, i+1)
				if !yield(less) {
					return
				}
			}
		}
		for _, at := range places(append(slices.Clone(t.bodies), t.before)...) {
			for _, of := range [][2]bool{{true, true}, {true, false}, {false, true}} {
				if less := t.without(at, of[0], of[1]); less != nil && !yield(less) {
					return
				}
			}
		}
	}
}

// places lists every path of both documents. Paths with the most values below them come first.
func places(documents ...map[string]any) [][]any {
	var out [][]any
	seen := map[string]bool{}
	level := [][]any{nil}
	for len(level) > 0 {
		var next [][]any
		for _, at := range level {
			for _, document := range documents {
				for _, step := range steps(lookup(document, at)) {
					path := slices.Concat(at, []any{step})
					if key := fmt.Sprintf("%q", path); !seen[key] {
						seen[key] = true
						next = append(next, path)
					}
				}
			}
		}
		out = append(out, next...)
		level = next
	}
	return out
}

func steps(v any) []any {
	var out []any
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if key != "apiVersion" && key != "kind" && key != "name" && key != "namespace" && key != "uid" {
				out = append(out, key)
			}
		}
	case []any:
		for i := range v {
			out = append(out, i)
		}
	}
	return out
}

func lookup(v any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// without drops a path of the bodies, of the stored object, or of both. It returns nil if there is nothing to drop.
func (t *trial) without(at []any, bodies, before bool) *trial {
	out := t.clone()
	dropped := false
	for i := range out.bodies {
		dropped = bodies && drop(out.bodies[i], at) || dropped
	}
	if bodies && !dropped {
		return nil
	}
	// The API server cannot handle a stored value that is no object, or a definition that is not complete.
	sound := out.before != nil && !(len(at) == 1 && at[0] == "metadata") && out.before["kind"] != "CustomResourceDefinition"
	if before && (!sound || !drop(out.before, at)) {
		return nil
	}
	return out
}

func drop(v any, at []any) bool {
	parent := lookup(v, at[:len(at)-1])
	switch step := at[len(at)-1].(type) {
	case string:
		m, ok := parent.(map[string]any)
		if _, there := m[step]; !ok || !there {
			return false
		}
		delete(m, step)
		return true
	case int:
		list, ok := parent.([]any)
		if !ok || step >= len(list) || len(at) < 2 {
			return false
		}
		shorter := append(append([]any{}, list[:step]...), list[step+1:]...)
		switch holder, name := lookup(v, at[:len(at)-2]), at[len(at)-2]; holder := holder.(type) {
		case map[string]any:
			holder[name.(string)] = shorter
		case []any:
			holder[name.(int)] = shorter
		}
		return true
	}
	return false
}
