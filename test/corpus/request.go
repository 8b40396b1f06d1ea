package corpus

import "maps"

// Request is the request of a step. Exactly one of the bodies is set.
type Request struct {
	// Merge is a JSON merge patch.
	Merge map[string]any `json:"merge,omitempty"`
	// JSON is a JSON patch.
	JSON []any `json:"json,omitempty"`
	// Strategic is a strategic merge patch.
	Strategic map[string]any `json:"strategic,omitempty"`
	// Apply is a server-side apply without the object's apiVersion, kind and name, which are added.
	Apply map[string]any `json:"apply,omitempty"`
	// Put is merged (RFC 7386) into the current object, and the whole object is sent.
	Put map[string]any `json:"put,omitempty"`
	// Create is a new object without its apiVersion and kind, which are added.
	Create map[string]any `json:"create,omitempty"`
	// Delete deletes the object.
	Delete *struct{} `json:"delete,omitempty"`

	// FieldManager is the user's name if empty.
	FieldManager string `json:"fieldManager,omitempty"`
	// Force is the force parameter of server-side apply.
	Force bool `json:"force,omitempty"`
}

func (r *Request) kinds() int {
	n := 0
	for _, set := range []bool{r.Merge != nil, r.JSON != nil, r.Strategic != nil, r.Apply != nil, r.Put != nil, r.Create != nil, r.Delete != nil} {
		if set {
			n++
		}
	}
	return n
}

// mergePatch applies a JSON merge patch (RFC 7386) to decoded values; neither is changed.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if object, ok := target.(map[string]any); ok {
		out = maps.Clone(object)
	}
	for name, change := range changes {
		if change == nil {
			delete(out, name)
			continue
		}
		out[name] = mergePatch(out[name], change)
	}
	return out
}
