package oracle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// change edits an object in place and returns a description of the edit, "" if it did nothing.
type change func(d *draw, object map[string]any) string

// changes are drawn by their weights. They need not be valid: a change that the API server refuses only costs a write.
var changes = []struct {
	weight int
	apply  change
}{
	{6, func(*draw, map[string]any) string { return "nothing" }},
	{5, editMap("labels", labelKeys, labelValues)},
	{6, editMap("annotations", annotationKeys, []string{"a", "b", "{}", "1", "true"})},
	{2, editFinalizers},
	{1, editOwners},
	{14, tweakLeaf},
	{5, removeKey},
	{5, duplicateItem},
	{3, removeItem},
	{2, swapItems},
	{2, nullKey},
	{2, emptyValue},
	{5, editManagedFields},
	{1, adopt},
	{1, editIdentity},
}

var (
	labelKeys   = []string{"tier", "app", "example.com/team", "pod-security.kubernetes.io/enforce", "kubernetes.io/hostname"}
	labelValues = []string{"a", "b", "privileged"}
)

var annotationKeys = []string{
	"note", "example.com/note", "kubectl.kubernetes.io/restartedAt", "kubectl.kubernetes.io/last-applied-configuration",
	"deprecated.daemonset.template.generation", "deployment.kubernetes.io/revision", "autoscaling.alpha.kubernetes.io/metrics",
	"autoscaling.alpha.kubernetes.io/behavior", "autoscaling.alpha.kubernetes.io/current-metrics", "control-plane.alpha.kubernetes.io/leader",
	"volume.beta.kubernetes.io/storage-class", "kubernetes.io/config.mirror", stateAnnotation,
}

// edit draws one change or several. extra are changes for this kind only.
func edit(d *draw, object map[string]any, extra []change) []string {
	var did []string
	for range 1 + d.IntN(10)/7 {
		if len(extra) > 0 && d.oneIn(3) {
			did = append(did, pick(d, extra)(d, object))
			continue
		}
		total := 0
		for _, c := range changes {
			total += c.weight
		}
		at := d.IntN(total)
		for _, c := range changes {
			if at -= c.weight; at < 0 {
				did = append(did, c.apply(d, object))
				break
			}
		}
	}
	return slices.DeleteFunc(did, func(s string) bool { return s == "" })
}

func editMap(name string, keys, values []string) change {
	return func(d *draw, object map[string]any) string {
		m, key := child(metadata(object), name), pick(d, keys)
		if len(m) > 0 && d.oneIn(3) {
			key = pick(d, sortedKeys(m))
		}
		if _, there := m[key]; there && d.oneIn(3) {
			delete(m, key)
			return "remove " + name + " " + key
		}
		m[key] = pick(d, values)
		return "set " + name + " " + key
	}
}

func editFinalizers(d *draw, object map[string]any) string {
	m := metadata(object)
	list, _ := m["finalizers"].([]any)
	if len(list) > 0 && d.oneIn(2) {
		m["finalizers"] = slices.Delete(list, 0, 1)
		return "remove a finalizer"
	}
	m["finalizers"] = append(list, pick(d, []any{"example.com/a", "example.com/b", "foregroundDeletion", "orphan"}))
	return "add a finalizer"
}

func editOwners(d *draw, object map[string]any) string {
	m := metadata(object)
	list, _ := m["ownerReferences"].([]any)
	m["ownerReferences"] = append(list, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": fmt.Sprintf("0000-%d", d.IntN(9)), "controller": d.oneIn(2)})
	return "add an owner"
}

// spot is a place in an object that can be written.
type spot struct {
	path  string
	value any
	// put replaces the value; drop takes it away.
	put  func(any)
	drop func()
}

// spots lists every place in an object, without its identity and the fields that only the server writes.
func spots(object map[string]any) []spot {
	var out []spot
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				at := path + "." + key
				if slices.Contains([]string{".apiVersion", ".kind", ".metadata.managedFields", ".metadata.uid", ".metadata.name", ".metadata.namespace", ".metadata.resourceVersion", ".metadata.creationTimestamp", ".metadata.generation"}, at) {
					continue
				}
				out = append(out, spot{at, v[key], func(to any) { v[key] = to }, func() { delete(v, key) }})
				walk(at, v[key])
			}
		case []any:
			for i := range v {
				at := fmt.Sprintf("%s[%d]", path, i)
				out = append(out, spot{at, v[i], func(to any) { v[i] = to }, nil})
				walk(at, v[i])
			}
		}
	}
	walk("", object)
	return out
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func anywhere(d *draw, object map[string]any, fits func(spot) bool) (spot, bool) {
	all := slices.DeleteFunc(spots(object), func(s spot) bool { return !fits(s) })
	if len(all) == 0 {
		return spot{}, false
	}
	return pick(d, all), true
}

func tweakLeaf(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool {
		switch s.value.(type) {
		case string, int64, float64, bool:
			return true
		}
		return false
	})
	if !ok {
		return ""
	}
	switch v := s.value.(type) {
	case bool:
		s.put(!v)
	case int64:
		s.put(v + pick(d, []int64{1, 1, 2, -1}))
	case float64:
		s.put(v + 1)
	case string:
		s.put(pick(d, []string{v + "x", v + "1", "a", "b", "2", ""}))
	}
	return "tweak " + s.path
}

func removeKey(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool { return s.drop != nil })
	if !ok {
		return ""
	}
	s.drop()
	return "remove " + s.path
}

func nullKey(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool { return s.drop != nil })
	if !ok {
		return ""
	}
	s.put(nil)
	return "null " + s.path
}

func emptyValue(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool { _, m := s.value.(map[string]any); _, l := s.value.([]any); return m || l })
	if !ok {
		return ""
	}
	if _, m := s.value.(map[string]any); m {
		s.put(map[string]any{})
	} else {
		s.put([]any{})
	}
	return "empty " + s.path
}

func listOf(s spot, least int) ([]any, bool) {
	list, ok := s.value.([]any)
	return list, ok && len(list) >= least
}

func duplicateItem(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool { _, ok := listOf(s, 1); return ok })
	if !ok {
		return ""
	}
	list, _ := listOf(s, 1)
	item := runtime.DeepCopyJSONValue(pick(d, list))
	switch v := item.(type) {
	case string:
		item = v + "x"
	case int64:
		item = v + 1
	case map[string]any:
		for _, key := range []string{"name", "type", "key", "ip", "containerPort", "port", "mountPath", "topologyKey", "uid", "path"} {
			switch old := v[key].(type) {
			case string:
				if !d.oneIn(4) {
					v[key] = old + pick(d, []string{"x", "2"})
				}
			case int64:
				v[key] = old + 1
			}
		}
	}
	s.put(slices.Insert(slices.Clone(list), d.IntN(len(list)+1), item))
	return "add an item to " + s.path
}

func removeItem(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool { _, ok := listOf(s, 1); return ok })
	if !ok {
		return ""
	}
	list, _ := listOf(s, 1)
	i := d.IntN(len(list))
	s.put(slices.Delete(slices.Clone(list), i, i+1))
	return fmt.Sprintf("remove %s[%d]", s.path, i)
}

func swapItems(d *draw, object map[string]any) string {
	s, ok := anywhere(d, object, func(s spot) bool { _, ok := listOf(s, 2); return ok })
	if !ok {
		return ""
	}
	list, _ := listOf(s, 2)
	list[0], list[len(list)-1] = list[len(list)-1], list[0]
	return "swap items of " + s.path
}

func editIdentity(d *draw, object map[string]any) string {
	key := pick(d, []string{"generateName", "selfLink", "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})
	value := any("x")
	switch key {
	case "generation", "deletionGracePeriodSeconds":
		value = int64(7)
	case "creationTimestamp", "deletionTimestamp":
		value = "2020-01-01T00:00:00Z"
	}
	metadata(object)[key] = value
	return "set metadata." + key
}
