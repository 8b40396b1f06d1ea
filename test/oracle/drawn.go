package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// managers are drawn as the field managers of requests.
var managers = []string{"granular", "granular", "kubectl", "argo", "controller", ""}

// request draws one write to an endpoint.
func (s *shard) request(ctx context.Context, e *Endpoint) (*Request, error) {
	r := &Request{User: pick(s.draw, s.visit.users), Endpoint: e, Namespace: s.namespace, Manager: pick(s.draw, managers), DryRun: s.oneIn(12)}
	switch {
	case e.Resource == "bindings":
		return r, s.drawBinding(ctx, r)
	case e.Sub == "" && !e.Has("update") && !e.Has("patch"), e.Sub == "" && e.Has("create") && s.oneIn(5):
		return r, s.drawCreate(r)
	case e.Sub == "":
	case slices.Contains(connects, e.Sub):
		return r, s.drawConnect(ctx, r)
	case posted[e.Sub] != nil && (e.Has("create") || s.oneIn(4)):
		return r, s.drawPost(ctx, r)
	}
	if !e.Has("update") && !e.Has("patch") {
		return r, s.drawPost(ctx, r)
	}
	return r, s.drawUpdate(ctx, r)
}

// drawCreate draws a new object: by POST with a name or generateName, or by PUT or apply if the object does not exist.
func (s *shard) drawCreate(r *Request) error {
	name := s.name()
	object, err := s.object(s.draw, r.Endpoint, s.namespace, name)
	if err != nil {
		return err
	}
	name, _ = metadata(object)["name"].(string)
	if s.oneIn(3) {
		// A small object is easier to cover with verbs.
		object = map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": map[string]any{"name": name}}
	}
	r.Edits = edit(s.draw, object, s.changesOf(r.Endpoint.Kind.GroupKind(), true))
	methods := []Method{Create, Create, Create, Create}
	if r.Endpoint.Has("update") {
		methods = append(methods, Update)
	}
	if r.Endpoint.Has("patch") {
		methods = append(methods, Apply, ForcedApply)
	}
	r.Method = pick(s.draw, methods)
	switch r.Method {
	case Create:
		if s.oneIn(4) {
			m := metadata(object)
			delete(m, "name")
			m["generateName"] = s.name() + "-"
		}
	case Update:
		r.Name = name
	default:
		r.Name = name
		if r.Manager == "" {
			r.Manager = "granular"
		}
	}
	r.Edits = append(r.Edits, "new object")
	r.Body, err = body(s.draw, r, map[string]any{}, object)
	return err
}

// drawUpdate edits the document that the endpoint returns for an object.
func (s *shard) drawUpdate(ctx context.Context, r *Request) error {
	v, err := s.victim(ctx, r.Endpoint)
	if err != nil {
		return err
	}
	r.Name = v.name
	old, err := s.read(ctx, r.Endpoint, v.name)
	if err != nil {
		return err
	}
	methods := []Method{JSONPatch, MergePatch, StrategicPatch, Apply, ForcedApply}
	if !r.Endpoint.Has("patch") {
		methods = nil
	}
	if r.Endpoint.Has("update") {
		methods = append(methods, Update, Update)
	}
	r.Method = pick(s.draw, methods)
	if r.Manager == "" && (r.Method == Apply || r.Method == ForcedApply) {
		r.Manager = "granular"
	}
	new := clone(old)
	extra := s.changesOf(r.Endpoint.Kind.GroupKind(), r.Endpoint.Sub == "status")
	if own := subChanges[r.Endpoint.Sub]; own != nil {
		extra = own
	}
	if r.TwoStep = v.applier != nil && s.oneIn(3); r.TwoStep && s.oneIn(2) {
		// A change of owners takes effect in later writes of other managers.
		r.Edits = append(r.Edits, pick(s.draw, []change{editManagedFields, adopt})(s.draw, new))
		r.Method = pick(s.draw, []Method{Update, JSONPatch, MergePatch})
		if !r.Endpoint.Has("patch") {
			r.Method = Update
		}
		r.Body, err = body(s.draw, r, old, new)
		return err
	}
	r.Edits = edit(s.draw, new, extra)
	if r.Method == Update && s.oneIn(3) {
		delete(metadata(new), "resourceVersion")
	}
	r.Body, err = body(s.draw, r, old, new)
	return err
}

// subChanges are changes for documents of a subresource.
var subChanges = map[string][]change{
	"scale": {
		func(d *draw, o map[string]any) string {
			child(o, "spec")["replicas"] = int64(d.IntN(5))
			return "scale"
		},
	},
	"ephemeralcontainers": {
		func(d *draw, o map[string]any) string {
			spec := child(o, "spec")
			list, _ := spec["ephemeralContainers"].([]any)
			spec["ephemeralContainers"] = append(slices.Clone(list), map[string]any{"name": fmt.Sprintf("debug%d", len(list)), "image": "debug"})
			return "add an ephemeral container"
		},
	},
	"resize": {
		func(d *draw, o map[string]any) string {
			if list, ok := child(o, "spec")["containers"].([]any); ok && len(list) > 0 {
				if c, ok := list[0].(map[string]any); ok {
					child(child(c, "resources"), "requests")["cpu"] = pick(d, []string{"50m", "120m"})
				}
			}
			return "resize"
		},
	},
	"finalize": {
		func(d *draw, o map[string]any) string {
			child(o, "spec")["finalizers"] = pick(d, []any{[]any{}, []any{"kubernetes"}, []any{"kubernetes", "example.com/a"}})
			return "finalizers of a namespace"
		},
	},
	"approval": {
		func(d *draw, o map[string]any) string {
			child(o, "status")["conditions"] = []any{map[string]any{"type": pick(d, []string{"Approved", "Denied"}), "status": "True", "reason": "x", "message": "y"}}
			return "approve"
		},
	},
}

// posted are the documents that a subresource takes by POST.
var posted = map[string]func(s *shard, e *Endpoint, name string) map[string]any{
	"binding": binding,
	"eviction": func(_ *shard, e *Endpoint, name string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name}}
	},
	"token": func(_ *shard, e *Endpoint, name string) map[string]any {
		return map[string]any{"spec": map[string]any{"audiences": []any{"x"}}}
	},
}

func binding(s *shard, _ *Endpoint, name string) map[string]any {
	m := map[string]any{"name": name}
	// Draw mostly values that are also drawn as barriers.
	if !s.oneIn(4) {
		m["annotations"] = map[string]any{pick(s.draw, []string{"example.com/note", "example.com/note", "note", pick(s.draw, annotationKeys)}): "bound"}
	}
	if !s.oneIn(4) {
		m["labels"] = map[string]any{pick(s.draw, []string{"tier", "tier", "app", "example.com/team"}): "bound"}
	}
	return map[string]any{"metadata": m, "target": map[string]any{"kind": "Node", "name": "n"}}
}

// connects are the subresources that open a connection. They store nothing.
var connects = []string{"proxy", "exec", "attach", "portforward"}

// drawConnect draws a request to such a subresource, for which the API server finds no backend.
func (s *shard) drawConnect(ctx context.Context, r *Request) error {
	v, err := s.victim(ctx, r.Endpoint)
	if err != nil {
		return err
	}
	r.Method, r.Name, r.Body, r.Edits = Create, v.name, []byte("{}"), []string{"connect"}
	if r.Endpoint.Has("update") {
		r.Method = pick(s.draw, []Method{Create, Update, MergePatch})
	}
	return nil
}

// drawBinding draws a Binding for the old endpoint bindings, where the name of the Binding is the name of a Pod.
func (s *shard) drawBinding(ctx context.Context, r *Request) error {
	i := slices.IndexFunc(s.endpoints, func(e *Endpoint) bool { return e.Place == Place{Resource: "pods"} })
	v, err := s.victim(ctx, s.endpoints[i])
	if err != nil {
		return err
	}
	object := binding(s, nil, v.name)
	object["apiVersion"], object["kind"] = "v1", "Binding"
	r.Method, r.Edits = Create, []string{"bind"}
	r.Body, err = json.Marshal(object)
	// A Pod can be bound only once.
	delete(s.victims, Place{Resource: "pods"})
	return err
}

// drawPost draws the document of a POST to a subresource.
func (s *shard) drawPost(ctx context.Context, r *Request) error {
	v, err := s.victim(ctx, r.Endpoint)
	if err != nil {
		return err
	}
	r.Method, r.Name = Create, v.name
	make := posted[r.Endpoint.Sub]
	if make == nil {
		return fmt.Errorf("the body for a POST to %s is not known", r.Endpoint.Sub)
	}
	object := make(s, r.Endpoint, v.name)
	object["apiVersion"], object["kind"] = r.Endpoint.Kind.GroupVersion().String(), r.Endpoint.Kind.Kind
	r.Edits = append(r.Edits, "post "+r.Endpoint.Sub)
	v.writes += lifetime / 3 // Most objects accept such a POST only once.
	r.Body, err = json.Marshal(object)
	return err
}
