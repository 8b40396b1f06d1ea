package tighten

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// hintSource names managedFields in the sources of a Use.
const hintSource = "managedFields (hint)"

// maxShapes is how many sets of fields Hints remembers. Most objects of a kind have the same.
const maxShapes = 4096

// Hints collects the verbs of the fields that managers own in live objects. They are no evidence: a manager may have written a field only
// when it created the object, managers choose their names themselves, and what a manager has removed is not there.
type Hints struct {
	// Managers are the names of the managers.
	Managers []string
	// Kind returns the schema of a kind in an API version.
	Kind func(apiVersion, kind string) (*schema.Kind, error)
	// Found has what was found. Objects is the number of objects that were read. Faults counts entries that could not be read.
	Found   Evidence
	Objects int64
	Faults  int64

	shapes map[shape][]string
}

type shape struct{ apiVersion, kind, fields string }

// Add reads the managedFields of one object. The resource is without a subresource.
func (h *Hints) Add(ctx context.Context, kind string, resource Resource, object metav1.Object) error {
	h.Objects++
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 == nil || !slices.Contains(h.Managers, entry.Manager) {
			continue
		}
		found, err := h.verbs(ctx, kind, &entry)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			h.Faults++
			continue
		}
		written := resource
		if entry.Subresource != "" {
			written.Name += "/" + entry.Subresource
		}
		w := h.Found.written(written)
		if w == nil {
			continue
		}
		at := time.Time{}
		if entry.Time != nil {
			at = entry.Time.Time
		}
		o := Object{object.GetNamespace(), object.GetName()}
		h.Found.add(w, verbs.Marker, hintSource, at, o)
		for _, verb := range found {
			h.Found.add(w, verb, hintSource, at, o)
		}
	}
	return nil
}

// verbs returns the verbs of the fields of an entry: those of a write that gives the fields to the manager (D8).
func (h *Hints) verbs(ctx context.Context, kind string, entry *metav1.ManagedFieldsEntry) ([]string, error) {
	key := shape{entry.APIVersion, kind, entry.FieldsV1.GetRawString()}
	if found, ok := h.shapes[key]; ok {
		return found, nil
	}
	if err := (&fieldpath.Set{}).FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		// Such an entry would need the verb of the whole object.
		return nil, err
	}
	compiled, err := h.Kind(entry.APIVersion, kind)
	if err != nil {
		return nil, err
	}
	// A manager that does not apply owns nothing that a later apply would delete, so only its fields are charged.
	fields := *entry
	fields.Subresource, fields.Operation = "", metav1.ManagedFieldsOperationUpdate
	before, err := owned(entry.APIVersion, kind)
	if err != nil {
		return nil, err
	}
	after, err := owned(entry.APIVersion, kind, fields)
	if err != nil {
		return nil, err
	}
	requirements, err := fieldperm.Diff(ctx, before, after, compiled, schema.VerbSet{})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var found []string
	for i := range requirements {
		chain := requirements[i].Chain
		if len(chain) == 0 {
			return nil, fmt.Errorf("no verb covers %s", requirements[i].Path)
		}
		if verb := chain[len(chain)-1].String(); !seen[verb] {
			seen[verb] = true
			found = append(found, verb)
		}
	}
	if h.shapes == nil || len(h.shapes) >= maxShapes {
		h.shapes = map[shape][]string{}
	}
	h.shapes[key] = found
	return found, nil
}

// owned returns an object that has only owners.
func owned(apiVersion, kind string, entries ...metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "managedFields": entries}})
}
