package oracle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// shard sends one write after another to objects of its own, so that every change under its keys has one cause.
type shard struct {
	*world
	*draw
	number    int
	namespace string
	made      int
	victims   map[Place]*victim
	visit     visit
	// learned are the verbs that refusals named. Later users may hold them.
	learned map[Place]map[string]bool
	// stands are the places of every verb of a kind.
	stands map[runtimeschema.GroupVersionKind]map[string][][]string
}

// visit is several writes in a row to one resource by a few users. The objects that were read for one write are reused for the next, and
// the API server has the authorization decisions in its cache.
type visit struct {
	endpoints []*Endpoint
	users     []*User
	left      int
	// shown are the documents that endpoints return for the objects. They are valid until the next change is stored.
	shown map[string][]byte
}

// The length of a visit, and its number of users.
const (
	visitWrites = 12
	visitUsers  = 4
)

// maxTries limits the number of endpoints in a row that cannot be written to.
const maxTries = 100

func newShard(w *world, number int) *shard {
	return &shard{
		world: w, draw: newDraw(w.config.Seed, uint64(w.epoch)<<32+uint64(number)+2), number: number,
		namespace: fmt.Sprintf("s%d", number), victims: map[Place]*victim{}, made: w.epoch * 10_000,
		learned: map[Place]map[string]bool{}, stands: map[runtimeschema.GroupVersionKind]map[string][][]string{},
	}
}

func (s *shard) name() string {
	s.made++
	return fmt.Sprintf("s%d-%d", s.number, s.made)
}

// step draws one write or a sequence, sends it, and judges the stored changes. It returns the number of writes that it sent.
func (s *shard) step(ctx context.Context) (int, error) {
	for range maxTries {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		e := s.drawEndpoint()
		if e.Sub == "" && e.Has("update") && e.Has("patch") && s.oneIn(3) {
			if n, err := s.sequence(ctx, e); n > 0 || err != nil {
				return n, err
			}
		}
		r, err := s.request(ctx, e)
		if errors.Is(err, errNoPatch) {
			continue
		}
		if err != nil {
			s.table.hinder(e, err)
			continue
		}
		if v := s.victims[e.Place.Main()]; r.TwoStep && v != nil && v.applier != nil && r.Name == v.name && !r.DryRun {
			return 1, s.twoStep(ctx, r, v)
		}
		_, err = s.write(ctx, r)
		return 1, err
	}
	return 0, fmt.Errorf("no endpoint can be written to: see the table")
}

// drawEndpoint draws an endpoint of the visited resource for a write.
func (s *shard) drawEndpoint() *Endpoint {
	if s.visit.left == 0 {
		s.begin(s.drawHost().Place.Main())
	}
	s.visit.left--
	return pick(s.draw, s.visit.endpoints)
}

// begin begins to visit a resource.
func (s *shard) begin(main Place) {
	s.visit = visit{left: visitWrites, shown: map[string][]byte{}}
	for _, e := range s.endpoints {
		if e.Place.Main() == main {
			s.visit.endpoints = append(s.visit.endpoints, e)
		}
	}
	for range visitUsers {
		s.visit.users = append(s.visit.users, pick(s.draw, s.users))
	}
}

// drawHost draws an endpoint of the resource to visit.
func (s *shard) drawHost() *Endpoint {
	from := s.endpoints
	switch n := s.IntN(100); {
	case len(s.config.Only) > 0:
	case n < 35 && len(s.drawn) > 0:
		from = s.drawn
	case n < 60 && len(s.barred) > 0:
		from = s.barred
	}
	for {
		e := pick(s.draw, from)
		if len(s.config.Only) == 0 || slices.Contains(s.config.Only, e.Resource) || slices.Contains(s.config.Only, e.Group+"/"+e.Resource) {
			return e
		}
	}
}

// write sends a request and judges its effect. It reports whether a change was stored.
func (s *shard) write(ctx context.Context, r *Request) (bool, error) {
	s.store.drop(s.number)
	s.ledger.take(s.number, "")
	answer, err := s.sender.send(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		s.table.hinder(r.Endpoint, err)
		return false, nil
	}
	events, err := s.store.Settle(ctx, s.number)
	if err != nil {
		return false, err
	}
	s.learn(r, answer)
	if len(events) > 0 {
		s.forget()
	}
	found, fields := s.weigh(r, answer, events, s.ledger.take(s.number, r.User.Name))
	s.table.count(r, answer, events, fields)
	for _, v := range found {
		if err := s.fail(ctx, r, answer, v, nil); err != nil {
			return false, err
		}
	}
	return len(events) > 0, s.after(ctx, r, answer, events)
}

// fail reports a change without permission, and the smallest request that does the same. The object is not used again.
func (s *shard) fail(ctx context.Context, r *Request, answer *Answer, v *Verdict, other *victim) error {
	f := &Failure{Seed: s.config.Seed, Request: r, Answer: answer, Verdict: v, Guards: s.describe(r.Endpoint)}
	if !s.table.fail(f, s.config.MaxFound) {
		return nil
	}
	if t, err := newTrial(r, v.Event.Key, v.Event.Old, other); err == nil {
		f.Small = s.shrink(ctx, t, v)
	}
	fmt.Fprintf(s.config.Log, "NOT PERMITTED: %s\n", f)
	if s.config.Enough != nil && s.config.Enough(f) {
		s.table.end()
	}
	if own := s.victims[r.Endpoint.Place.Main()]; own != nil && own.name == r.Name {
		delete(s.victims, r.Endpoint.Place.Main())
		if err := s.store.Remove(ctx, own.keys...); err != nil {
			return err
		}
	}
	s.forget()
	_, err := s.store.Settle(ctx, s.number)
	return err
}

// weigh judges every event.
func (s *shard) weigh(r *Request, answer *Answer, events []*Event, said []asked) (found []*Verdict, fields int) {
	answered := answer.revision()
	for _, e := range events {
		if e.Created() && answered != "" && answered == fmt.Sprint(e.Revision) {
			r.creates = true
		}
	}
	r.creates = r.creates || r.Method == Create
	contradiction := contradicts(r, said)
	s.table.asked(said)
	for _, e := range events {
		if by, ok := byServer(e, r); ok {
			s.table.background(by)
			continue
		}
		switch {
		case contradiction != "":
			found = append(found, &Verdict{Event: e, Reason: contradiction})
			continue
		case !answer.OK():
			found = append(found, &Verdict{Event: e, Reason: fmt.Sprintf("something is stored although the answer is %d: %s", answer.Code, answer.Status.Message)})
			continue
		case r.DryRun:
			found = append(found, &Verdict{Event: e, Reason: "a dry run has stored something"})
			continue
		}
		j, err := s.judge(e, r)
		if err != nil {
			s.table.unjudged(e, err)
			f := &Failure{Seed: s.config.Seed, Request: r, Answer: answer, Verdict: &Verdict{Event: e, Reason: err.Error()}, Guards: s.describe(r.Endpoint)}
			fmt.Fprintf(s.config.Log, "NOT JUDGED: %s\n", f)
			continue
		}
		fields += j.fields
		if j.wrong != nil && !s.tolerate(r, j.wrong) {
			found = append(found, j.wrong)
		}
	}
	return found, fields
}

// after removes objects after a write: objects that the request created, and objects that are worn out.
func (s *shard) after(ctx context.Context, r *Request, answer *Answer, events []*Event) error {
	var gone []string
	main := r.Endpoint.Place.Main()
	v := s.victims[main]
	for _, e := range events {
		if e.Created() && !e.Deleted() && (v == nil || !slices.Contains(v.keys, e.Key)) {
			gone = append(gone, e.Key)
		}
	}
	if v != nil && r.Name == v.name {
		if v.writes++; v.writes > lifetime || answer.Code == http.StatusNotFound {
			gone = append(gone, v.keys...)
			delete(s.victims, main)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	s.forget()
	if err := s.store.Remove(ctx, gone...); err != nil {
		return err
	}
	_, err := s.store.Settle(ctx, s.number)
	return err
}

// forget drops the read documents, because another state is stored now.
func (s *shard) forget() {
	clear(s.visit.shown)
	for _, v := range s.victims {
		v.agreed = nil
	}
}

// read gets the document of an endpoint for an object, as an administrator.
func (s *shard) read(ctx context.Context, e *Endpoint, name string) (map[string]any, error) {
	from := *e
	if !e.Has("get") {
		from.Sub = "" // A subresource that cannot be read is a part of the object.
	}
	path := from.Path(s.namespace, name)
	if s.visit.shown[path] == nil {
		answer, err := s.sender.admin(ctx, http.MethodGet, path, "", nil)
		if err != nil {
			return nil, err
		}
		if !answer.OK() {
			if answer.Code == http.StatusNotFound {
				delete(s.victims, e.Place.Main())
				return nil, errNoPatch // The object was deleted in the meantime. Another one will be created.
			}
			return nil, fmt.Errorf("an administrator cannot read it: %d: %s", answer.Code, answer.Status.Message)
		}
		s.visit.shown[path] = answer.Body
	}
	object, err := parseObject(s.visit.shown[path])
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = e.Kind.GroupVersion().String(), e.Kind.Kind
	return object, nil
}

// learn remembers the verbs that a refusal names.
func (s *shard) learn(r *Request, answer *Answer) {
	if !answer.Refused() {
		return
	}
	_, after, ok := strings.Cut(answer.Status.Message, ": needs any one of ")
	if !ok {
		return
	}
	after, _, _ = strings.Cut(after, " (")
	main := r.Endpoint.Place.Main()
	if s.learned[main] == nil {
		s.learned[main] = map[string]bool{}
	}
	for verb := range strings.SplitSeq(after, ", ") {
		if strings.HasPrefix(verb, "granular:") && !strings.ContainsAny(verb, "; ") {
			s.learned[main][verb] = true
		}
	}
}

func clone(object map[string]any) map[string]any { return runtime.DeepCopyJSON(object) }
