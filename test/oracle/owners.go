package oracle

import (
	"slices"
	"strings"
)

// editManagedFields edits who owns what, as a request may.
func editManagedFields(d *draw, object map[string]any) string {
	m := metadata(object)
	list, _ := m["managedFields"].([]any)
	if len(list) == 0 || d.oneIn(8) {
		m["managedFields"] = []any{map[string]any{}}
		return "reset managedFields"
	}
	i := d.IntN(len(list))
	entry, ok := list[i].(map[string]any)
	if !ok {
		return ""
	}
	switch d.IntN(6) {
	case 0:
		m["managedFields"] = slices.Delete(slices.Clone(list), i, i+1)
		return "drop an entry of managedFields"
	case 1:
		entry["time"] = "2020-01-01T00:00:00Z"
		return "age an entry of managedFields"
	case 2:
		entry["manager"] = pick(d, []string{"argo", "controller", "granular", "ancient-changes", "before-first-apply"})
		return "rename a manager"
	case 3:
		entry["operation"] = pick(d, []string{"Apply", "Update"})
		return "change the operation of an entry"
	case 4:
		if dropOwned(d, entry) {
			return "take a field from a manager"
		}
		return ""
	default:
		if giveShell(d, object, entry, d.oneIn(2)) {
			return "give an item to a manager"
		}
		return ""
	}
}

// dropOwned takes one path out of an entry.
func dropOwned(d *draw, entry map[string]any) bool {
	at, ok := entry["fieldsV1"].(map[string]any)
	for ok && len(at) > 0 {
		key := pick(d, sortedKeys(at))
		inner, deeper := at[key].(map[string]any)
		if !deeper || len(inner) == 0 || d.oneIn(5) {
			delete(at, key)
			return true
		}
		at = inner
	}
	return false
}

// giveShell makes a manager own something that is there: an item with its key, or a field.
func giveShell(d *draw, object map[string]any, entry map[string]any, keyed bool) bool {
	fields, ok := entry["fieldsV1"].(map[string]any)
	if !ok {
		return false
	}
	type target struct {
		path []string
		leaf map[string]any
	}
	var all []target
	var walk func(path []string, v any)
	walk = func(path []string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				if len(path) == 0 && (key == "apiVersion" || key == "kind") || len(path) == 1 && path[0] == "f:metadata" && key != "labels" && key != "annotations" && key != "finalizers" {
					continue
				}
				next := append(slices.Clone(path), "f:"+key)
				if !keyed {
					all = append(all, target{next, map[string]any{}})
				}
				walk(next, v[key])
			}
		case []any:
			for _, item := range v {
				if m, ok := item.(map[string]any); ok {
					if name, ok := m["name"].(string); ok && !strings.ContainsAny(name, `"\`) {
						next := append(slices.Clone(path), `k:{"name":"`+name+`"}`)
						all = append(all, target{next, map[string]any{".": map[string]any{}, "f:name": map[string]any{}}})
						walk(next, m)
					}
				}
			}
		}
	}
	walk(nil, object)
	if len(all) == 0 {
		return false
	}
	t := pick(d, all)
	at := fields
	for i, step := range t.path {
		inner, ok := at[step].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[step] = inner
		}
		if at = inner; i == len(t.path)-1 {
			for k, v := range t.leaf {
				at[k] = v
			}
		}
	}
	return true
}
