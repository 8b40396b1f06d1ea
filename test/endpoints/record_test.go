//go:build integration

package endpoints

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// places returns the endpoints of discovery that accept writes, in every version.
func places(lists []*metav1.APIResourceList) ([]*place, error) {
	var out []*place
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			p := &place{gv: gv, namespaced: r.Namespaced, verbs: map[string]bool{}}
			p.resource, p.subresource, _ = strings.Cut(r.Name, "/")
			p.kind = gv.WithKind(r.Kind)
			if r.Version != "" {
				p.kind = runtimeschema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
			}
			for _, verb := range r.Verbs {
				p.verbs[verb] = true
			}
			if p.verbs["create"] || p.verbs["update"] || p.verbs["patch"] {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// record exercises every endpoint.
func (r *recorder) record(all []*place) ([]endpoint.Endpoint, error) {
	found := map[string]*endpoint.Endpoint{}
	for _, p := range all {
		e := &endpoint.Endpoint{
			Group: p.gv.Group, Resource: p.resource, Subresource: p.subresource, Versions: []string{p.gv.Version},
			Body: endpoint.Kind{Group: p.kind.Group, Kind: p.kind.Kind},
		}
		if p.verbs["create"] {
			e.Operations = append(e.Operations, "CREATE")
		}
		if p.verbs["update"] || p.verbs["patch"] {
			e.Operations = append(e.Operations, "UPDATE")
		}
		if err := r.exercise(p, e, all); err != nil {
			e.Note = "not exercised: " + tidy(err.Error())
		}
		name := e.Group + "/" + e.Name()
		if found[name] == nil {
			found[name] = e
		} else {
			join(found[name], e)
		}
	}
	out := make([]endpoint.Endpoint, 0, len(found))
	for _, e := range found {
		slices.SortFunc(e.Versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		slices.SortFunc(e.Fields, func(a, b endpoint.Field) int {
			return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
		})
		slices.Sort(e.Refused)
		slices.Sort(e.Sets)
		out = append(out, *e)
	}
	endpoint.Sort(out)
	return out, nil
}

// tidy removes the parts of a message that differ from run to run.
func tidy(message string) string {
	words := strings.Fields(message)
	for i, word := range words {
		if at := strings.Index(word, "object-"); at >= 0 {
			words[i] = word[:at] + "NAME" + strings.TrimLeft(word[at+len("object-"):], "0123456789")
		}
	}
	return strings.Join(words, " ")
}

// join adds the results of another version of an endpoint.
func join(e, other *endpoint.Endpoint) {
	e.Versions = append(e.Versions, other.Versions...)
	e.Whole = e.Whole || other.Whole
	e.Storage = max(e.Storage, other.Storage)
	for _, f := range other.Fields {
		if !slices.Contains(e.Fields, f) {
			e.Fields = append(e.Fields, f)
		}
	}
	for _, path := range other.Refused {
		if !slices.Contains(e.Refused, path) {
			e.Refused = append(e.Refused, path)
		}
	}
	for _, path := range other.Sets {
		if !slices.Contains(e.Sets, path) {
			e.Sets = append(e.Sets, path)
		}
	}
	if e.Note == "" {
		e.Note = other.Note
	}
}

func (r *recorder) exercise(p *place, e *endpoint.Endpoint, all []*place) error {
	switch {
	case p.subresource != "":
		return r.exerciseSubresource(p, e, all)
	case !p.verbs["update"] && !p.verbs["patch"]:
		return r.exerciseCreateOnly(p, e, all)
	}
	object, err := r.create(p, p.kind)
	if err != nil {
		return err
	}
	if object.key == "" {
		return fmt.Errorf("no key of etcd is that of the created object")
	}
	e.Storage, e.Whole = object.storage(p), true
	return r.renames(p, e, object, all)
}

// renames finds fields that have another name in a body than in the stored object, if the object belongs to another group.
func (r *recorder) renames(p *place, e *endpoint.Endpoint, object *created, all []*place) error {
	stored, err := object.answer.created(object.key)
	if err != nil {
		return err
	}
	gv, err := runtimeschema.ParseGroupVersion(stored["apiVersion"].(string))
	if err != nil || gv.Group == p.gv.Group {
		return err
	}
	// The object is written through the group in which it is stored, whose names are the stored ones, and read through this group.
	for _, other := range all {
		if other.gv != gv || other.resource != p.resource || other.subresource != "" {
			continue
		}
		t, err := r.update(other, object)
		if err != nil {
			return err
		}
		read, err := r.send("GET", p.path(object.name, ""), nil)
		if err != nil {
			return err
		}
		here, err := r.send("GET", other.path(object.name, ""), nil)
		if err != nil {
			return err
		}
		// Metadata have the same names in every group. Their revision may be equal to a sent number.
		inMetadata := func(l leaf) bool { return strings.HasPrefix(l.pattern, ".metadata.") }
		seen := outcomes{}
		for _, l := range flatten("", "", read.body) {
			for _, s := range flatten("", "", here.body) {
				if telling(l.value) && same(l.value, s.value) && !inMetadata(l) && !inMetadata(s) {
					seen.at(l.pattern).to[s.pattern] = true
				}
			}
		}
		if t.taken == 0 || len(seen) == 0 {
			return fmt.Errorf("nothing that %s writes is read here: %s", other.gv, t.refusal)
		}
		for _, child := range seen.children("") {
			fields, _ := seen.collapse(child)
			for _, f := range fields {
				if f.To != f.From {
					e.Fields = append(e.Fields, f)
				}
			}
		}
		return nil
	}
	return fmt.Errorf("is stored as %s, which does not serve it", gv)
}

func (r *recorder) exerciseCreateOnly(p *place, e *endpoint.Endpoint, all []*place) error {
	// If the endpoint writes an object, that object has the name in the body: a Pod is the only known case.
	var pods *place
	for _, other := range all {
		if other.gv.String() == "v1" && other.resource == "pods" && other.subresource == "" {
			pods = other
		}
	}
	return r.exercisePost(p, e, pods)
}

func (r *recorder) exerciseSubresource(p *place, e *endpoint.Endpoint, all []*place) error {
	parent := parentOf(p, all)
	if parent == nil {
		return fmt.Errorf("its resource cannot be created")
	}
	if p.verbs["create"] {
		return r.exercisePost(p, e, parent)
	}
	object, err := r.create(parent, parent.kind)
	if err != nil {
		return err
	}
	t, err := r.update(p, object)
	if err != nil {
		return err
	}
	r.conclude(t, e, object.storage(parent), p.kind.Kind == parent.kind.Kind)
	return nil
}

// parentOf returns the resource of a subresource, in its version or in another.
func parentOf(p *place, all []*place) *place {
	var out *place
	for _, other := range all {
		if other.gv.Group == p.gv.Group && other.resource == p.resource && other.subresource == "" && other.verbs["create"] && (out == nil || other.gv == p.gv) {
			out = other
		}
	}
	return out
}

// exerciseConnect sends a request whose body is not interpreted by the API server.
func (r *recorder) exerciseConnect(p *place, e *endpoint.Endpoint, target *place) error {
	object, err := r.create(target, target.kind)
	if err != nil {
		return err
	}
	answer, err := r.send(http.MethodPost, p.path(object.name, p.subresource), nil)
	if err != nil {
		return err
	}
	if before, after, err := answer.stored(object.key); before != nil || after != nil || err != nil {
		return fmt.Errorf("is no API object, and changed one (%w)", err)
	}
	e.Operations, e.Note = []string{"CONNECT"}, fmt.Sprintf("stores nothing: hands the connection on (answered %d here)", answer.code)
	return nil
}

func (r *recorder) exercisePost(p *place, e *endpoint.Endpoint, target *place) error {
	types, err := r.types(p.gv)
	if err != nil {
		return err
	}
	if p.gv.Group == p.kind.Group && types.Kind(p.kind) == nil {
		return r.exerciseConnect(p, e, target)
	}
	var last *created
	t, err := r.post(p, func() (*created, error) {
		var err error
		last, err = r.create(target, target.kind)
		return last, err
	})
	if err != nil {
		return err
	}
	r.conclude(t, e, last.storage(target), false)
	return nil
}

func (r *recorder) conclude(t *trial, e *endpoint.Endpoint, storage string, whole bool) {
	// A body of another kind has fields of its own only: .spec of a Scale is not .spec of a Deployment.
	t.exact = !whole
	for _, child := range t.children("") {
		fields, refused := t.collapse(child)
		e.Fields, e.Refused = append(e.Fields, fields...), append(e.Refused, refused...)
	}
	e.Deletes = t.deletes
	if !whole {
		e.Sets = sets(t.beside, e.Fields)
	}
	switch {
	case len(e.Fields) > 0 || len(e.Sets) > 0 || e.Deletes:
		e.Storage = storage
	case t.taken == 0:
		e.Note = "not exercised: " + tidy(t.refusal)
	default:
		e.Refused = nil
		e.Note = "stores nothing"
	}
	if e.Storage == "" {
		e.Refused = nil
	}
}

// sets returns the fields that are written in addition to those of the body, lists as a whole.
func sets(beside map[string]bool, fields []endpoint.Field) []string {
	out := map[string]bool{}
	for path := range beside {
		if !slices.ContainsFunc(fields, func(f endpoint.Field) bool { return f.Stored() == path }) {
			path, _, _ = strings.Cut(path, "[")
			out[path] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// created returns the stored object for the answer to a create.
func (a *answer) created(key string) (map[string]any, error) {
	_, after, err := a.stored(key)
	if err == nil && after == nil {
		err = fmt.Errorf("%s: was not stored", key)
	}
	return after, err
}

// children are the first steps of the paths.
func (o outcomes) children(path string) []string {
	_, out := o.below(path)
	return out
}
