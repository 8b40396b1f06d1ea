//go:build integration

package endpoints

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// place is an endpoint in one version.
type place struct {
	gv                    runtimeschema.GroupVersion
	resource, subresource string
	namespaced            bool
	// kind is the kind of the body.
	kind runtimeschema.GroupVersionKind
	// verbs are the verbs in discovery.
	verbs map[string]bool
}

func (p *place) path(name, subresource string) string {
	path := "/apis/" + p.gv.String()
	if p.gv.Group == "" {
		path = "/api/" + p.gv.Version
	}
	if p.namespaced {
		path += "/namespaces/" + namespace
	}
	path += "/" + p.resource
	if name != "" {
		path += "/" + name
	}
	if subresource != "" {
		path += "/" + subresource
	}
	return path
}

// created is an object in the store.
type created struct {
	name, key string
	answer    *answer
}

// storage is the key without the parts that differ between objects of one storage.
func (c *created) storage(p *place) string {
	out := strings.TrimSuffix(strings.TrimPrefix(c.key, "/registry/"), "/"+c.name)
	if p.namespaced {
		out = strings.TrimSuffix(out, "/"+namespace)
	}
	return out
}

func (r *recorder) name() string {
	r.names++
	return fmt.Sprintf("object-%d", r.names)
}

// create creates a new object through an endpoint. A kind with a fixed name has one object at a time.
func (r *recorder) create(p *place, kind runtimeschema.GroupVersionKind) (*created, error) {
	return r.createWith(p, r.objects.object(kind, p.space(), r.name()), kind)
}

func (p *place) space() string {
	if p.namespaced {
		return namespace
	}
	return ""
}

func (r *recorder) createWith(p *place, body map[string]any, kind runtimeschema.GroupVersionKind) (*created, error) {
	if body == nil {
		return nil, fmt.Errorf("objects.yaml has no %s", kind.GroupKind())
	}
	name, _ := nested(body, "metadata", "name").(string)
	answer, err := r.send(http.MethodPost, p.path("", ""), body)
	if err == nil && answer.code == http.StatusConflict {
		if err = r.remove(p, name); err == nil {
			answer, err = r.send(http.MethodPost, p.path("", ""), body)
		}
	}
	if err != nil {
		return nil, err
	}
	if !answer.ok() {
		return nil, fmt.Errorf("%s", answer.message())
	}
	out := &created{name: name, answer: answer}
	for _, c := range answer.changes {
		if c.Before == nil && strings.HasSuffix(c.Key, "/"+name) {
			out.key = c.Key
		}
	}
	return out, nil
}

// remove deletes an object and waits until it is gone.
func (r *recorder) remove(p *place, name string) error {
	now, err := r.send(http.MethodGet, p.path(name, ""), nil)
	if err != nil {
		return err
	}
	if metadata, _ := now.body["metadata"].(map[string]any); metadata["finalizers"] != nil {
		delete(metadata, "finalizers")
		if _, err := r.send(http.MethodPut, p.path(name, ""), now.body); err != nil {
			return err
		}
	}
	if _, err := r.send(http.MethodDelete, p.path(name, ""), nil); err != nil {
		return err
	}
	for range 200 {
		answer, err := r.send(http.MethodGet, p.path(name, ""), nil)
		if err != nil || answer.code == http.StatusNotFound {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s: is not gone after it was deleted", p.path(name, ""))
}

// trial is the test of one endpoint, part by part.
type trial struct {
	*recorder
	outcomes
	// exact says that fields are not combined into their common parent.
	exact bool
	// deletes says that a request deleted the object.
	deletes bool
	// write sends the edits and returns the target before and after; ok reports whether the API server accepted them.
	write func(edits []*edit) (before, after map[string]any, ok bool, err error)
	// beside are the changes of the object in addition to the sent ones.
	beside map[string]bool
	// refusal is the API server's last reason for a refusal of an edit.
	refusal string
	taken   int
}

// try sends an edit as a whole and, if that is refused, its parts.
func (t *trial) try(e *edit) error {
	before, after, ok, err := t.write(e.leaves())
	if err != nil {
		return err
	}
	if ok {
		t.taken++
		for _, path := range t.learn(e.leaves(), before, after) {
			t.beside[path] = true
		}
		return nil
	}
	if len(e.parts) == 0 {
		for _, l := range e.sent() {
			t.at(l.pattern).refused = true
		}
		return nil
	}
	for _, part := range e.parts {
		if err := t.try(part); err != nil {
			return err
		}
	}
	return nil
}

// collapse is outcomes.collapse. If exact is set, it goes down to the fields of the body.
func (t *trial) collapse(path string) ([]endpoint.Field, []string) {
	if !t.exact {
		return t.outcomes.collapse(path)
	}
	s, children := t.below(path)
	if len(children) == 0 || len(children) == 1 && children[0] == path+"[*]" || !s.written {
		return t.outcomes.collapse(path)
	}
	var fields []endpoint.Field
	var refused []string
	for _, child := range children {
		f, r := t.collapse(child)
		fields, refused = append(fields, f...), append(refused, r...)
	}
	return fields, refused
}

// conflicts is the number of times that a write is repeated after a conflict.
const conflicts = 10

// update tests an endpoint with bodies that were read and changed.
func (r *recorder) update(p *place, object *created) (*trial, error) {
	t := &trial{recorder: r, outcomes: outcomes{}, beside: map[string]bool{}}
	path, read := p.path(object.name, p.subresource), p.path(object.name, p.subresource)
	if !p.verbs["get"] {
		read = p.path(object.name, "")
	}
	t.write = func(edits []*edit) (map[string]any, map[string]any, bool, error) {
		var last *answer
		for range conflicts {
			now, err := r.send(http.MethodGet, read, nil)
			if err != nil || !now.ok() {
				return nil, nil, false, fmt.Errorf("GET %s: %s (%w)", read, now.message(), err)
			}
			if last, err = r.send(http.MethodPut, path, apply(now.body, edits)); err != nil {
				return nil, nil, false, err
			}
			if last.code != http.StatusConflict {
				break
			}
		}
		if !last.ok() {
			t.refusal = last.message()
			return nil, nil, false, nil
		}
		before, after, err := last.stored(object.key)
		return before, after, true, err
	}
	now, err := r.send(http.MethodGet, read, nil)
	if err != nil {
		return nil, err
	}
	if !now.ok() {
		return nil, fmt.Errorf("GET %s: %s", read, now.message())
	}
	return t, t.all(p, now.body)
}

// post tests an endpoint with bodies that create an object. Each has a new target object.
func (r *recorder) post(p *place, target func() (*created, error)) (*trial, error) {
	t := &trial{recorder: r, outcomes: outcomes{}, beside: map[string]bool{}}
	t.write = func(edits []*edit) (map[string]any, map[string]any, bool, error) {
		object, err := target()
		if err != nil {
			return nil, nil, false, err
		}
		body, path := r.objects.object(p.kind, p.space(), object.name), p.path(object.name, p.subresource)
		if body == nil {
			body = map[string]any{"apiVersion": p.kind.GroupVersion().String(), "kind": p.kind.Kind}
		}
		if p.subresource == "" {
			path = p.path("", "")
		}
		answer, err := r.send(http.MethodPost, path, apply(body, edits))
		if err != nil {
			return nil, nil, false, err
		}
		if !answer.ok() {
			t.refusal = answer.message()
			return nil, nil, false, nil
		}
		for _, c := range answer.changes {
			t.deletes = t.deletes || c.Key == object.key && c.After == nil
		}
		before, after, err := answer.stored(object.key)
		return before, after, true, err
	}
	body := r.objects.object(p.kind, p.space(), "")
	if body == nil {
		body = map[string]any{}
	}
	return t, t.all(p, body)
}

// all tests every field of the body's kind, first each field of the object separately.
func (t *trial) all(p *place, body map[string]any) error {
	types, err := t.types(p.gv)
	if err != nil {
		return err
	}
	m := types.Kind(p.kind)
	if m == nil {
		if types, err = t.types(p.kind.GroupVersion()); err == nil {
			m = types.Kind(p.kind)
		}
	}
	if m == nil {
		return fmt.Errorf("the server publishes no type of %s", p.kind)
	}
	e := &editor{types: types, mark: markPrefix}
	root := e.edits(m, body)
	for _, part := range root.parts {
		if err := t.try(part); err != nil {
			return err
		}
	}
	return nil
}
