package oracle

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// errNoPatch is returned if the change cannot be written with a method.
var errNoPatch = errors.New("the method cannot carry it")

// body writes the change from old to new for a method.
func body(d *draw, r *Request, old, new map[string]any) ([]byte, error) {
	after, err := json.Marshal(new)
	if err != nil {
		return nil, err
	}
	switch r.Method {
	case Create, Update:
		return after, nil
	case JSONPatch:
		operations := operations(nil, "", old, new)
		if operations == nil {
			operations = []any{}
		}
		return json.Marshal(operations)
	default:
		// The bodies of the other methods are computed from both texts.
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	switch r.Method {
	case MergePatch:
		return jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	case StrategicPatch:
		typed, err := scheme.Scheme.New(r.Endpoint.Kind)
		if err != nil {
			return nil, errNoPatch
		}
		return strategicpatch.CreateTwoWayMergePatch(before, after, typed)
	default:
		return applied(d, r, before, after, new)
	}
}

// operations are those of a JSON patch. Lists are replaced as a whole.
func operations(out []any, path string, old, new map[string]any) []any {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, key := range slices.Compact(slices.Sorted(slices.Values(append(sortedKeys(old), sortedKeys(new)...)))) {
		was, had := old[key]
		is, has := new[key]
		at := path + "/" + escape.Replace(key)
		wasMap, m1 := was.(map[string]any)
		isMap, m2 := is.(map[string]any)
		switch {
		case had && has && reflect.DeepEqual(was, is):
		case m1 && m2:
			out = operations(out, at, wasMap, isMap)
		case !has:
			out = append(out, map[string]any{"op": "remove", "path": at})
		case !had:
			out = append(out, map[string]any{"op": "add", "path": at, "value": is})
		default:
			out = append(out, map[string]any{"op": "replace", "path": at, "value": is})
		}
	}
	return out
}

// applied is a configuration for server-side apply: the whole object, or only the changed fields.
func applied(d *draw, r *Request, before, after []byte, new map[string]any) ([]byte, error) {
	var out map[string]any
	if d.oneIn(2) {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
		if err != nil {
			return nil, err
		}
		if out, err = parseObject(patch); err != nil {
			return nil, err
		}
	} else {
		raw, err := json.Marshal(new)
		if err != nil {
			return nil, err
		}
		if out, err = parseObject(raw); err != nil {
			return nil, err
		}
		if r.Endpoint.Sub == "" {
			delete(out, "status")
		}
	}
	asManifest(out)
	out["apiVersion"], out["kind"] = new["apiVersion"], new["kind"]
	if r.Name != "" {
		metadata(out)["name"] = r.Name
	}
	return json.Marshal(out)
}

// asManifest removes the fields that the API server refuses in a configuration, and the fields that only the API server writes.
func asManifest(object map[string]any) {
	m := metadata(object)
	for _, name := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(m, name)
	}
}
