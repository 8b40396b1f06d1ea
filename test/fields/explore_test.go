//go:build integration

package fields

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/openapi"
	"github.com/fieldperm/fieldperm/test/sampleobject"
)

const dryRun = "?dryRun=All&fieldManager=fields"

// maxCandidates and maxRepairs limit the number of attempts for a field.
const (
	maxCandidates = 6
	maxRepairs    = 3
)

// try is the result for one field.
type try struct {
	endpoint *endpoint
	path     string
	// refused is the reason why the API server accepts no write of the field from an administrator, "" if it accepts one.
	refused string
	// method, url, body and verbs are the accepted write, and the most specific verb of each change in it.
	method, url string
	body        map[string]any
	verbs       []string
	// written are changes that were not sent and that the verbs do not cover.
	written []written
	held    *answer
}

// written is a field that the API server wrote, with its most specific verb.
type written struct{ path, verb string }

// explore tries every field of an endpoint as an administrator.
func (r *run) explore(ctx context.Context, e *endpoint) error {
	ref := schema.ResourceRef{Group: e.gvr.Group, Resource: e.gvr.Resource, Subresource: e.subresource}
	kind, err := r.kindOf(e, ref)
	if err != nil {
		return err
	}
	if kind.Lossy() {
		return nil // Only granular:* covers a write through it.
	}
	types := r.types.kind(e.kind)
	if types == nil {
		return fmt.Errorf("kind %s has no schema", e.kind)
	}
	base, sent, err := r.base(ctx, e, nil)
	if err != nil {
		return err
	}
	x := &explorer{run: r, endpoint: e, kind: kind, types: types, base: base, sent: sent}
	x.took = x.note
	groups := map[string][]place{}
	types.walk(nil, types.root, nil, func(p path, m *openapi.Type) bool {
		if skipped(p) {
			return false
		}
		if len(m.Properties) == 0 || p[len(p)-1].any {
			verb := x.verbAt(p)
			groups[verb] = append(groups[verb], place{p, m})
		}
		return true
	})
	random := rand.New(rand.NewPCG(*seed, uint64(len(e.String()))))
	for _, verb := range sorted(groups) {
		fields := groups[verb]
		if !*all {
			random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
			fields = fields[:min(len(fields), mostRefused)]
		}
		for _, f := range fields {
			written, err := x.field(ctx, f.path, f.model)
			if err != nil {
				return fmt.Errorf("%s: %w", f.path, err)
			}
			if written && !*all {
				break
			}
		}
	}
	return nil
}

// place is a field of an endpoint.
type place struct {
	path  path
	model *openapi.Type
}

// mostRefused is the number of fields of one verb that are tried until the API server accepts one, if not all are tried.
const mostRefused = 5

// verbAt is the most specific verb at a path, without parameters.
func (x *explorer) verbAt(p path) string {
	n, verb := x.kind.Root, ""
	for _, s := range p {
		switch {
		case n.List() != nil && s.any:
			n = n.List().Item()
		case n.Map() != nil:
			n = n.Map().Child(s.field)
		default:
			return verb
		}
		if permissions := n.Permissions(); len(permissions) > 0 {
			verb = permissions[len(permissions)-1].Describe()
		}
	}
	return verb
}

// skipped reports whether no client writes a field: the object's identity, and fields with a role.
func skipped(p path) bool {
	text := p.String()
	if text == ".apiVersion" || text == ".kind" || strings.Contains(text, ".managedFields") {
		return true
	}
	rest, ok := strings.CutPrefix(text, ".metadata.")
	if !ok {
		return false
	}
	name, _, _ := strings.Cut(rest, "[")
	name, _, _ = strings.Cut(name, ".")
	return !slices.Contains([]string{"labels", "annotations", "finalizers", "ownerReferences"}, name)
}

// base stores an object of the endpoint's resource, in the namespace of this run, or a variant of it. It returns the object as read at the
// endpoint, and the object that was sent to create it.
func (r *run) base(ctx context.Context, e *endpoint, v *variant) (stored, sent map[string]any, err error) {
	parent := *e
	parent.subresource = ""
	for _, other := range r.endpoints {
		if other.gvr == e.gvr && other.subresource == "" {
			parent = *other
		}
	}
	object, err := sampleobject.New(parent.kind, nil)
	if err != nil {
		return nil, nil, err
	}
	if object, err = seeded(parent.kind.GroupKind(), object); err != nil {
		return nil, nil, err
	}
	where := ""
	if e.namespaced {
		where = namespace
	}
	name := "fields-" + strings.ToLower(e.gvr.Version)
	if e.subresource != "" {
		name += "-" + strings.ToLower(e.subresource)
	}
	if v != nil {
		lay(object, normal(v.Object))
		name += "-" + v.Name
	}
	sampleobject.Place(object, name, where)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ = metadata["name"].(string)
	a, err := r.server.write(ctx, http.MethodPost, parent.path()+"?fieldManager=fields", object, nil)
	if err != nil {
		return nil, nil, err
	}
	if !a.ok() && a.code != http.StatusConflict {
		return nil, nil, fmt.Errorf("base object: %s", a.says())
	}
	if v != nil {
		if err := r.develop(ctx, &parent, name, v); err != nil {
			return nil, nil, err
		}
	}
	names := []string{name}
	if e.subresource != "" {
		names = append(names, e.subresource)
	}
	a, err = r.server.write(ctx, http.MethodGet, e.path(names...), nil, nil)
	if err == nil && !a.ok() {
		a, err = r.server.write(ctx, http.MethodGet, e.path(name), nil, nil)
	}
	if err != nil {
		return nil, nil, err
	}
	if !a.ok() {
		return nil, nil, fmt.Errorf("base object: %s", a.says())
	}
	return a.object, object, nil
}

// explorer tries the fields of one endpoint.
type explorer struct {
	*run
	endpoint *endpoint
	kind     *schema.Kind
	types    *schemas
	// base is the stored object, sent is the object that a client sent to create it.
	base, sent map[string]any
	// took is called with each write that the API server accepted.
	took func(context.Context, *try, *write) error
}

// write is a write that the API server accepted.
type write struct {
	*edit
	method, url string
	body        map[string]any
	// before is nil for a new object.
	before, after map[string]any
}

// field tries one field, and reports whether the API server accepts a write of it.
func (x *explorer) field(ctx context.Context, p path, m *openapi.Type) (bool, error) {
	t := &try{endpoint: x.endpoint, path: p.String(), refused: "nothing was tried"}
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.tries = append(x.tries, t)
	}()
	edits := x.types.edits(x.base, p, m)
	if len(edits) > maxCandidates {
		edits = append(edits[:maxCandidates-2:maxCandidates-2], edits[len(edits)-2:]...)
	}
	if x.endpoint.updatable {
		for i := range edits {
			if done, err := x.update(ctx, t, &edits[i]); done || err != nil {
				return done, err
			}
			if strings.HasPrefix(t.refused, "ignored") {
				break
			}
		}
	}
	if x.endpoint.creatable {
		edits = x.types.edits(x.sent, p, m)
		edits = edits[:min(len(edits), maxCandidates)]
		for i := range edits {
			if done, err := x.create(ctx, t, &edits[i]); done || err != nil {
				return done, err
			}
		}
	}
	return false, nil
}

func (x *explorer) update(ctx context.Context, t *try, e *edit) (bool, error) {
	names := []string{x.name()}
	if s := x.endpoint.subresource; s != "" {
		names = append(names, s)
	}
	return x.try(ctx, t, e, http.MethodPut, x.endpoint.path(names...)+dryRun, e.object, x.base)
}

func (x *explorer) name() string {
	metadata, _ := x.base["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

func (x *explorer) create(ctx context.Context, t *try, e *edit) (bool, error) {
	body := runtime.DeepCopyJSON(e.object)
	return x.try(ctx, t, e, http.MethodPost, x.endpoint.path()+dryRun, withName(body, x.name()), nil)
}

// withName gives an object a free name, unless its kind has a fixed one.
func withName(body map[string]any, name string) map[string]any {
	metadata, _ := body["metadata"].(map[string]any)
	if old, _ := metadata["name"].(string); strings.HasPrefix(old, "fields-") {
		metadata["name"] = name + "-new"
	}
	return body
}

// try sends one write as the administrator, and notes it if the API server accepts it and the field has the requested value.
func (x *explorer) try(ctx context.Context, t *try, e *edit, method, url string, body, before map[string]any) (bool, error) {
	for range maxRepairs + 1 {
		a, err := x.server.write(ctx, method, url, body, nil)
		if err != nil {
			return false, err
		}
		if a.code == http.StatusConflict && method == http.MethodPut {
			// The API server's own controllers write some objects too.
			if err := x.reread(ctx, strings.TrimSuffix(url, dryRun), body); err != nil {
				return false, err
			}
			before = x.base
			continue
		}
		if !a.ok() {
			t.refused = a.says()
			repaired, ok := x.types.repair(body, &a.status)
			if a.code != http.StatusUnprocessableEntity || !ok {
				return false, nil
			}
			body = repaired
			continue
		}
		if before != nil && !differs(before, a.object, e.place) || before == nil && !there(a.object, e.place) {
			t.refused = "ignored"
			return false, nil
		}
		return true, x.took(ctx, t, &write{e, method, url, body, before, a.object})
	}
	return false, nil
}

// reread uses the currently stored object as the base, and gives a body its resourceVersion.
func (x *explorer) reread(ctx context.Context, url string, body map[string]any) error {
	a, err := x.server.write(ctx, http.MethodGet, url, nil, nil)
	if err != nil || !a.ok() {
		return err
	}
	x.base = a.object
	is, _ := a.object["metadata"].(map[string]any)
	metadata, _ := body["metadata"].(map[string]any)
	metadata["resourceVersion"] = is["resourceVersion"]
	return nil
}

func there(object map[string]any, place []any) bool {
	_, ok := get(object, place)
	return ok
}

// note computes the verbs that the write needs.
func (x *explorer) note(ctx context.Context, t *try, w *write) error {
	asked, err := x.diff(ctx, w.before, w.body)
	if err != nil {
		return err
	}
	t.refused, t.method, t.url, t.body, t.verbs = "", w.method, w.url, w.body, nil
	sent := map[string]bool{}
	for i := range asked {
		chain := asked[i].Chain
		sent[asked[i].Path.String()] = true
		if verb := chain[len(chain)-1].String(); !slices.Contains(t.verbs, verb) {
			t.verbs = append(t.verbs, verb)
		}
	}
	slices.Sort(t.verbs)
	if t.verbs == nil {
		t.verbs = []string{}
	}
	got, err := x.diff(ctx, w.before, w.after)
	if err != nil {
		return err
	}
	for i := range got {
		if path := got[i].Path.String(); !sent[path] {
			chain := got[i].Chain
			if !slices.ContainsFunc(t.verbs, func(held string) bool {
				for _, v := range chain {
					if v.String() == held {
						return true
					}
				}
				return false
			}) {
				t.written = append(t.written, written{path, chain[len(chain)-1].String()})
			}
		}
	}
	return nil
}

func (x *explorer) diff(ctx context.Context, old, new map[string]any) ([]fieldperm.Requirement, error) {
	var was []byte
	if old != nil {
		var err error
		if was, err = json.Marshal(comparable(old)); err != nil {
			return nil, err
		}
	}
	is, err := json.Marshal(comparable(new))
	if err != nil {
		return nil, err
	}
	return fieldperm.Diff(ctx, was, is, x.kind, nil)
}

// comparable returns an object without owners.
func comparable(object map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(object)
	if metadata, ok := out["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	return out
}
