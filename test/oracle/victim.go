package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// victim is an object that an administrator created and that the users write to.
type victim struct {
	name   string
	keys   []string
	writes int
	// applier applies the manifest again after the write of another user. It is nil if the object has no applier.
	applier *applier
	// agreed is the stored object after the last apply of the applier. It is nil if another state is stored.
	agreed []byte
}

// lifetime is the number of writes to an object before it is replaced.
const lifetime = 15

// victim returns an object of the endpoint's main resource, and creates it if there is none.
func (s *shard) victim(ctx context.Context, e *Endpoint) (*victim, error) {
	main := e.Place.Main()
	if v := s.victims[main]; v != nil {
		return v, nil
	}
	maker := s.maker(e)
	if maker == nil {
		return nil, fmt.Errorf("no endpoint creates %s", main)
	}
	object, err := s.object(s.draw, maker, s.namespace, s.name())
	if err != nil {
		return nil, err
	}
	v := &victim{name: metadata(object)["name"].(string)}
	events, err := s.makeVictim(ctx, v, maker, object)
	if err != nil {
		return nil, err
	}
	for _, one := range events {
		if one.Created() {
			v.keys = append(v.keys, one.Key)
		}
	}
	s.victims[main] = v
	return v, s.dressStatus(ctx, maker, v)
}

// leave deletes all objects at the end of an epoch.
func (s *shard) leave(ctx context.Context) error {
	for _, v := range s.victims {
		if err := s.store.Remove(ctx, v.keys...); err != nil {
			return err
		}
	}
	_, err := s.store.Settle(ctx, s.number)
	return err
}

// maker is the endpoint through which an object is created: the same version if possible.
func (s *shard) maker(e *Endpoint) *Endpoint {
	var out *Endpoint
	version := e.Version
	if c := s.customs[e.Place.Main()]; c != nil && !s.oneIn(4) {
		// The stored version has all the fields.
		version = c.storage().name
	}
	if s.customs[e.Place.Main()] == nil && s.oneIn(3) {
		version = "" // Use any version: the last one.
	}
	for _, other := range s.endpoints {
		if other.Place == e.Place.Main() && other.Has("create") && (out == nil || version == "" || other.Version == version) {
			out = other
		}
	}
	return out
}

// makeVictim creates an object as an administrator, in one of the ways in which manifests reach a cluster.
func (s *shard) makeVictim(ctx context.Context, v *victim, e *Endpoint, object map[string]any) ([]*Event, error) {
	if s.oneIn(2) && slices.Contains([]string{"deployments", "statefulsets", "daemonsets", "replicasets"}, e.Resource) {
		child(metadata(object), "annotations")[injectAnnotation] = "yes"
	}
	s.label(object)
	manifest, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	verb, path, contentType := http.MethodPost, e.Path(s.namespace, ""), "application/json"
	switch s.IntN(7) {
	case 0:
		path += "?fieldManager=maker"
	case 1, 2, 3:
		// A controller owns some of the fields and reconciles them.
		path += "?fieldManager=maker"
		part, err := partOf(s.draw, object)
		if err != nil {
			return nil, err
		}
		v.applier = &applier{endpoint: e, manager: "controller", manifest: part, serverSide: true, force: true}
	case 4, 5:
		verb, path, contentType = http.MethodPatch, e.Path(s.namespace, v.name)+"?fieldManager=argo&force=true", "application/apply-patch+yaml"
		v.applier = &applier{endpoint: e, manager: "argo", manifest: manifest, serverSide: true, force: s.oneIn(2)}
	default:
		v.applier = &applier{endpoint: e, manager: clientSideManager, manifest: manifest}
		path += "?fieldManager=" + clientSideManager
		if manifest, err = withLastApplied(object); err != nil {
			return nil, err
		}
	}
	answer, err := s.sender.admin(ctx, verb, path, contentType, manifest)
	if err != nil {
		return nil, err
	}
	if !answer.OK() {
		return nil, fmt.Errorf("an administrator cannot create one: %d: %s", answer.Code, answer.Status.Message)
	}
	events, err := s.store.Settle(ctx, s.number)
	return events, err
}

// label gives an object labels and annotations. An applier may own some of them.
func (s *shard) label(object map[string]any) {
	m := metadata(object)
	for range s.IntN(4) {
		child(m, "labels")[pick(s.draw, labelKeys)] = pick(s.draw, labelValues)
	}
	for range s.IntN(3) {
		child(m, "annotations")[pick(s.draw, []string{"note", "example.com/note", "example.com/owner"})] = "set"
	}
}

// dressStatus writes the status as a controller would.
func (s *shard) dressStatus(ctx context.Context, maker *Endpoint, v *victim) error {
	d := s.dresses[maker.Kind.GroupKind()]
	if d == nil || d.Status == nil || s.oneIn(4) {
		return nil
	}
	for _, e := range s.endpoints {
		if e.Place == (Place{maker.Group, maker.Resource, "status"}) && e.Version == maker.Version {
			patch, err := json.Marshal(map[string]any{"status": d.Status})
			if err != nil {
				return err
			}
			answer, err := s.sender.admin(ctx, http.MethodPatch, e.Path(s.namespace, v.name)+"?fieldManager=controller", contentTypes[MergePatch], patch)
			if err != nil {
				return err
			}
			if !answer.OK() {
				return fmt.Errorf("an administrator cannot write the status: %d: %s", answer.Code, answer.Status.Message)
			}
			_, err = s.store.Settle(ctx, s.number)
			return err
		}
	}
	return nil
}

// partOf is a configuration with some of the fields of an object.
func partOf(d *draw, object map[string]any) ([]byte, error) {
	out := clone(object)
	m := metadata(out)
	for _, name := range []string{"labels", "annotations"} {
		if inner, ok := m[name].(map[string]any); ok {
			thin(d, inner)
		}
		if d.oneIn(2) {
			delete(m, name)
		}
	}
	for _, key := range sortedKeys(out) {
		if inner, ok := out[key].(map[string]any); ok && key != "metadata" {
			thin(d, inner)
		}
	}
	return json.Marshal(out)
}

// thin removes some of the keys of a map.
func thin(d *draw, m map[string]any) {
	for _, name := range sortedKeys(m) {
		if d.oneIn(2) {
			delete(m, name)
		}
	}
}
