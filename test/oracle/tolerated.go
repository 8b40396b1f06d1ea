package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/test/exact"
)

// toleration is a known case of a change that is not covered, with the reason why it stays. Each case is counted in the table at the end,
// and described in the docs.
type toleration struct {
	reason string
	// fits reports whether a charge of a request belongs to this case.
	fits func(*Request, exact.Charge, *Verdict) bool
}

var tolerations = []toleration{
	{
		reason: "a manager that applies a Scale comes to own the replicas alone, in an entry of the subresource: its next apply is of a Scale and removes nothing else",
		fits: func(r *Request, c exact.Charge, _ *Verdict) bool {
			return r.Endpoint.Sub == "scale" && c.Operation == "ownership" && (r.Method == Apply || r.Method == ForcedApply)
		},
	},
	{
		reason: "the scale handler gives the owner of .spec.replicas another version, and the next apply goes through that: it deletes fields without an owner in a container that is applied empty",
		fits: func(r *Request, c exact.Charge, v *Verdict) bool {
			return r.Endpoint.Sub == "scale" && c.Operation == "removed" && v.custom != nil && v.custom.webhook && comesBetween(r.Endpoint.Kind.Version, v.Event.Old, v.Event.New)
		},
	},
	{
		reason: "no webhook that is an object is asked about objects of admissionregistration.k8s.io (W4): what their kinds have as barriers does not hold",
		fits: func(r *Request, c exact.Charge, _ *Verdict) bool {
			return r.Endpoint.Group == "admissionregistration.k8s.io" && c.Barrier >= 0
		},
	},
	{
		reason: "the API server writes a condition of its own when it evicts or binds a Pod: its content is not the client's",
		fits: func(r *Request, c exact.Charge, _ *Verdict) bool {
			condition := map[string]string{"eviction": "DisruptionTarget", "binding": "PodScheduled", "": "PodScheduled"}[r.Endpoint.Sub]
			return slices.Contains([]string{"Eviction", "Binding"}, r.Endpoint.Kind.Kind) && strings.HasPrefix(c.Path, fmt.Sprintf(".status.conditions[type=%q]", condition))
		},
	},
	{
		reason: "owners of an Event in the version of its other group name fields as that version does; the names of the stored version alone are known here",
		fits: func(r *Request, c exact.Charge, _ *Verdict) bool {
			return r.Endpoint.Kind.Kind == "Event" && c.Operation == "ownership" && strings.HasPrefix(c.Path, "[")
		},
	},
	{
		reason: "the loss of the owner of a field that another version renames is free if a field beside it changes",
		fits:   func(r *Request, c exact.Charge, v *Verdict) bool { return v.custom.ownedOtherwise(r, c, v.Event.Old) },
	},
	{
		reason: "server-side apply stores and owns fields of a custom resource that no reader gets, so that the change is not seen here",
		fits:   func(_ *Request, c exact.Charge, v *Verdict) bool { return v.unseen && c.Operation == "ownership" },
	},
}

// ownedOtherwise reports whether a charge concerns the renamed field and its owner wrote in a version with another name for it than the
// version of the request.
func (c *custom) ownedOtherwise(r *Request, charge exact.Charge, raw []byte) bool {
	if c == nil || c.renamed == "" || charge.Operation != "ownership" {
		return false
	}
	name := c.renamedIn(c.storage().name)
	object, err := parseObject(raw)
	if rest, ok := strings.CutPrefix(charge.Path, ".spec."+name); err != nil || !ok || rest != "" && !strings.ContainsAny(rest[:1], ".[") {
		return false
	}
	asked := c.renamedIn(r.Endpoint.Kind.Version)
	list, _ := metadata(object)["managedFields"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		entry, _ := item.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		spec, _ := fields["f:spec"].(map[string]any)
		return spec["f:"+name] != nil && c.renamedIn(versionOf(entry)) != asked
	})
}

// comesBetween reports whether an object has an entry of a version that it did not have before.
func comesBetween(version string, old, new []byte) bool {
	has := func(raw []byte) bool {
		object, err := parseObject(raw)
		list, _ := metadata(object)["managedFields"].([]any)
		return err != nil || slices.ContainsFunc(list, func(item any) bool {
			entry, _ := item.(map[string]any)
			return versionOf(entry) == version
		})
	}
	return !has(old) && has(new)
}

// tolerate reports whether every charge of a verdict is a known case.
func (w *world) tolerate(r *Request, v *Verdict) bool {
	if len(v.Charges) == 0 {
		return false
	}
	for _, c := range v.Charges {
		i := slices.IndexFunc(tolerations, func(one toleration) bool { return one.fits(r, c, v) })
		if i < 0 {
			return false
		}
		w.table.add(w.table.tolerated, tolerations[i].reason)
	}
	return true
}
