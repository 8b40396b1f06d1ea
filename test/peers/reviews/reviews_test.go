package reviews

import (
	"encoding/json"
	"testing"
)

// A body has the size in its name, and its two objects differ in as many values as its name says, without those that the API server writes.
func TestCases(t *testing.T) {
	changes := map[string]int{
		"2KiB/allowed": 1, "2KiB/denied": 2, "16KiB/allowed": 1, "16KiB/denied": 2, "256KiB/allowed": 1, "256KiB/denied": 2, "ten-fields/allowed": 10, "ten-fields/denied": 11,
	}
	all := Deployments(t)
	if len(all) != len(changes) {
		t.Errorf("%d cases, want %d", len(all), len(changes))
	}
	for _, c := range all {
		var review struct {
			Request struct{ Object, OldObject map[string]any }
		}
		if err := json.Unmarshal(c.Body, &review); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for _, object := range []map[string]any{review.Request.Object, review.Request.OldObject} {
			metadata := object["metadata"].(map[string]any)
			delete(metadata, "managedFields")
			delete(metadata, "generation")
		}
		if got := differences(review.Request.Object, review.Request.OldObject); got != changes[c.Name] {
			t.Errorf("%s: %d changes, want %d", c.Name, got, changes[c.Name])
		}
		t.Logf("%s: %d bytes", c.Name, len(c.Body))
	}
}

func differences(a, b any) int {
	n := 0
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return 1000
		}
		for key := range a {
			n += differences(a[key], b[key])
		}
		return n
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return 1000
		}
		for i := range a {
			n += differences(a[i], b[i])
		}
		return n
	}
	if a != b {
		return 1
	}
	return 0
}
