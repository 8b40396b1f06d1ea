package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/fieldperm/fieldperm/test/exact"
)

// shrinkTries bounds how often a failure is sent again.
const shrinkTries = 250

// trial is a failure that can be played again: what is stored before, and what is sent.
type trial struct {
	request *Request
	key     string
	// before is what is stored when the request is sent; nil for nothing.
	before map[string]any
	// body is the request's; a JSON patch is under the name "patch".
	body map[string]any
	// victim is set where another applier acts before and after.
	victim *victim
}

// shrink plays a failure again on the object as it was, with less and less of both, for as long as it fails. It returns
// the smallest that does, or nil if it does not fail again.
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
				s.table.hinder(t.request.Endpoint, fmt.Errorf("a failure cannot be sent again: %w", err))
			}
			return nil
		}
		// What is smaller must fail in the same way: an object with less in it is given defaults.
		if f == nil || !found.alike(f.Verdict) {
			return nil
		}
		return f
	}
	best := fails(t)
	if best == nil {
		return nil
	}
	// The smallest of all requests changes nothing.
	if t.request.Endpoint.Has("patch") && t.request.Method != Create && t.before != nil {
		empty := t.with(t.before, map[string]any{})
		empty.request.Method = MergePatch
		if f := fails(empty); f != nil {
			t, best = empty, f
		}
	}
	for again := true; again && tries < shrinkTries; {
		again = false
		// The largest parts first: with them goes most.
		for _, at := range places(t.body, t.before) {
			for _, less := range []*trial{t.without(at, true, true), t.without(at, true, false), t.without(at, false, true)} {
				if less == nil {
					continue
				}
				if f := fails(less); f != nil {
					t, best, again = less, f, true
					break
				}
			}
		}
	}
	best.Tries = tries
	return best
}

// alike reports whether another verdict has a charge of this one, or the same reason where there are no charges.
func (v *Verdict) alike(other *Verdict) bool {
	if len(v.Charges) == 0 {
		return len(other.Charges) == 0
	}
	return slices.ContainsFunc(v.Charges, func(a exact.Charge) bool {
		return slices.ContainsFunc(other.Charges, func(b exact.Charge) bool { return a.Operation == b.Operation && a.Path == b.Path })
	})
}

// play restores what was stored, sends the request, and judges.
func (s *shard) play(ctx context.Context, t *trial) (*Failure, error) {
	r := *t.request
	if err := s.restore(ctx, t); err != nil {
		return nil, err
	}
	var before []byte
	var err error
	if t.victim != nil {
		if before, err = s.settled(ctx, t.victim); err != nil || before == nil {
			return nil, err
		}
	} else if _, err := s.store.Settle(ctx, s.number); err != nil {
		return nil, err
	}
	_, revision, err := s.store.value(ctx, t.key)
	if err != nil {
		return nil, err
	}
	if r.Body, err = t.text(strconv.FormatInt(revision, 10)); err != nil {
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
	found, _ := s.weigh(&r, answer, events, s.ledger.take(s.number, r.User.Name))
	if t.victim != nil && len(found) == 0 && len(events) > 0 {
		v, err := s.second(ctx, &r, t.victim, before)
		if err != nil {
			return nil, err
		}
		if v != nil {
			found = append(found, v)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &Failure{Request: &r, Answer: answer, Verdict: found[0]}, nil
}

// restore puts the object back.
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

// text is the body; a resourceVersion in it is the present one.
func (t *trial) text(revision string) ([]byte, error) {
	if t.request.Method == JSONPatch {
		return json.Marshal(t.body["patch"])
	}
	if m, ok := t.body["metadata"].(map[string]any); ok && m["resourceVersion"] != nil {
		m["resourceVersion"] = revision
	}
	return json.Marshal(t.body)
}

func newTrial(r *Request, key string, before []byte, v *victim) (*trial, error) {
	t := &trial{request: r, key: key, victim: v}
	var err error
	if before != nil {
		if t.before, err = parseObject(before); err != nil {
			return nil, err
		}
	}
	if r.Method != JSONPatch {
		t.body, err = parseObject(r.Body)
		return t, err
	}
	t.body, err = parseObject([]byte(fmt.Sprintf(`{"patch":%s}`, r.Body)))
	return t, err
}

func (t *trial) with(before, body map[string]any) *trial {
	out, r := *t, *t.request
	out.request, out.before, out.body = &r, nil, clone(body)
	if before != nil {
		out.before = clone(before)
	}
	return &out
}

// places lists every path of both documents, those with most below them first.
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

// without drops a path of the body, of what is stored, or of both. It is nil where there is nothing to drop.
func (t *trial) without(at []any, body, before bool) *trial {
	out := t.with(t.before, t.body)
	if body && !drop(out.body, at) {
		return nil
	}
	// What is no object any more, or no definition, the API server itself cannot bear.
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
