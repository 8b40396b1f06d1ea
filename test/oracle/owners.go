package oracle

import (
	"slices"
	"strings"
)

// editManagedFields edits entries of managedFields as a request may.
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
		if entry["time"] = pick(d, []any{"2020-01-01T00:00:00Z", "1960-01-01T00:00:00Z", nil}); d.oneIn(2) {
			// The API server changes the generation with every change, whichever manager owns it.
			plant(entry, []any{"fieldsV1", "f:metadata", "f:generation"}, map[string]any{})
		}
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

// dropOwned removes one path from an entry.
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

// adopt makes a manager own an item or a field that has no owner.
func adopt(d *draw, object map[string]any) string {
	list, _ := metadata(object)["managedFields"].([]any)
	if len(list) == 0 {
		return ""
	}
	entry, ok := pick(d, list).(map[string]any)
	if !ok || !give(d, object, entry, d.oneIn(4), true) {
		return ""
	}
	return "adopt a field without an owner"
}

// giveShell makes a manager own an existing item with its key, or an existing field.
func giveShell(d *draw, object map[string]any, entry map[string]any, fields bool) bool {
	return give(d, object, entry, fields, false)
}

// ownable is a path of managedFields, and the value at this path.
type ownable struct {
	path []string
	leaf map[string]any
}

func give(d *draw, object map[string]any, entry map[string]any, fields, unowned bool) bool {
	into, ok := entry["fieldsV1"].(map[string]any)
	if !ok {
		return false
	}
	all := ownables(nil, nil, object, fields)
	if unowned {
		all = slices.DeleteFunc(all, func(o ownable) bool { return owned(object, o.path) })
	}
	if len(all) == 0 {
		return false
	}
	t := pick(d, all)
	at := into
	for _, step := range t.path {
		at = child(at, step)
	}
	for k, v := range t.leaf {
		at[k] = v
	}
	return true
}

// ownables lists the items with a name in an object, and also its fields if fields is true.
func ownables(out []ownable, path []string, v any, fields bool) []ownable {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if len(path) == 0 && (key == "apiVersion" || key == "kind") || len(path) == 1 && path[0] == "f:metadata" && key != "labels" && key != "annotations" && key != "finalizers" {
				continue
			}
			next := append(slices.Clone(path), "f:"+key)
			if fields {
				out = append(out, ownable{next, map[string]any{}})
			}
			out = ownables(out, next, v[key], fields)
		}
	case []any:
		for _, item := range v {
			m, ok := item.(map[string]any)
			if !ok {
				continue
			}
			if name, ok := m["name"].(string); ok && !strings.ContainsAny(name, `"\`) {
				next := append(slices.Clone(path), `k:{"name":"`+name+`"}`)
				out = append(out, ownable{next, map[string]any{".": map[string]any{}, "f:name": map[string]any{}}})
				out = ownables(out, next, m, fields)
			}
		}
	}
	return out
}

// owned reports whether any manager owns a path.
func owned(object map[string]any, path []string) bool {
	list, _ := metadata(object)["managedFields"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		entry, _ := item.(map[string]any)
		at, ok := entry["fieldsV1"].(map[string]any)
		for _, step := range path {
			if ok {
				at, ok = at[step].(map[string]any)
			}
		}
		return ok
	})
}
