package owners

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

const boxTypes = `types:
- name: box
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: metadata, type: {map: {fields: [{name: managedFields, type: {list: {elementRelationship: atomic, elementType: {namedType: unknown}}}}]}}}
    - {name: spec, type: {map: {fields: [{name: parts, type: {list: {elementRelationship: associative, keys: [name], elementType: {namedType: part}}}}]}}}
- name: part
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: image, type: {scalar: string}}
- name: unknown
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: unknown}}
  map: {elementRelationship: separable, elementType: {namedType: unknown}}
`

// compileBox returns a kind with one keyed list.
func compileBox(t *testing.T) *schema.Kind {
	return schematest.Kind(t, boxTypes, "box", "Box", compile.Entry{FieldPermission: v1alpha1.FieldPermission{Path: ".metadata.managedFields"}, Role: schema.RoleOwnership})
}

// boxOf returns a box of n parts that one manager owns.
func boxOf(t *testing.T, n int, manager, operation string) rawjson.Value {
	t.Helper()
	var parts, fields []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`{"name":"n%d","image":"i"}`, i))
		fields = append(fields, fmt.Sprintf(`"k:{\"name\":\"n%d\"}":{".":{},"f:name":{},"f:image":{}}`, i))
	}
	doc, err := rawjson.Scan(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","metadata":{"managedFields":[{"manager":%q,"operation":%q,"apiVersion":"example.com/v1",`+
		`"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:parts":{%s}}}}]},"spec":{"parts":[%s]}}`,
		manager, operation, strings.Join(fields, ","), strings.Join(parts, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

// TestD8_D1_OwnersOfManyPathsWaitForMemory proves that heavy comparisons wait for their share of memory and end with their deadline, and
// that light ones do not wait.
func TestD8_D1_OwnersOfManyPathsWaitForMemory(t *testing.T) {
	k := compileBox(t)
	renamed := func(ctx context.Context, n int) ([]change.Requirement, error) {
		d := charge.New(ctx, k, nil, boxOf(t, n, "a", "Update"), boxOf(t, n, "b", "Apply"))
		defer d.Release()
		d.Compare()
		Charge(d)
		return d.Finish()
	}
	if err := memory.Acquire(t.Context(), mostMemory); err != nil {
		t.Fatal(err)
	}
	ends, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if got, err := renamed(t.Context(), 2); err != nil || len(got) == 0 {
		t.Errorf("few paths: %d requirements, %v", len(got), err)
	}
	if got, err := renamed(ends, 600); !errors.Is(err, context.DeadlineExceeded) || got != nil {
		t.Errorf("many paths without memory: %d requirements, %v", len(got), err)
	}
	waited := make(chan error)
	go func() {
		got, err := renamed(t.Context(), 600)
		if len(got) == 0 {
			err = errors.Join(err, errors.New("no requirements"))
		}
		waited <- err
	}()
	memory.Release(mostMemory)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if !memory.TryAcquire(mostMemory) {
		t.Error("the share of memory is not given back")
	} else {
		memory.Release(mostMemory)
	}
}
