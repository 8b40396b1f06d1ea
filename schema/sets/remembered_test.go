package sets

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// TestP8_EndpointsWithLongNamesAreNotRemembered: a client that is not authenticated may choose the names.
func TestP8_EndpointsWithLongNamesAreNotRemembered(t *testing.T) {
	var a applicable
	finds := 0
	find := func(schema.ResourceRef) map[v1alpha1.ValidationAction]*applications {
		finds++
		return map[v1alpha1.ValidationAction]*applications{}
	}
	for _, length := range []int{10, 2 * longestEndpoint} {
		ref := schema.ResourceRef{Resource: strings.Repeat("x", length)}
		for range 2 {
			if a.of(ref, find) == nil {
				t.Errorf("a name of %d bytes: nothing was found", length)
			}
		}
	}
	if finds != 3 || len(a.known) != 1 {
		t.Errorf("%d searches and %d endpoints, want 3 and 1", finds, len(a.known))
	}
}
