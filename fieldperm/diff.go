package fieldperm

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/fieldperm/internal/owners"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// Requirement is one changed node and the verbs that cover the change; see change.Requirement.
type Requirement = change.Requirement

// Operation is the kind of change of a node.
type Operation = change.Operation

// These are the operations; see package change.
const (
	Created   = change.Created
	Modified  = change.Modified
	Added     = change.Added
	Removed   = change.Removed
	Reordered = change.Reordered
	Ownership = change.Ownership
)

// InvalidObjectError is the error for an object that is not JSON or does not fit its schema. It is not a denial.
type InvalidObjectError = change.InvalidObjectError

// Diff returns the changes from old to new and the verbs that cover each. Both are JSON objects of the kind. old is nil on CREATE; then
// every field that is present counts as changed, and before them the existence of the object (C5). uncovered are the verbs that are barriers for this request, besides the barriers of
// the schema.
//
// Fail-closed law (D10): if Diff returns no requirement, the objects are equal as JSON values, except for the changes that D7 and D8
// leave free.
//
// Errors: *InvalidObjectError if an object is not JSON or a changed part does not fit the schema; the context's error if the context ends
// before the comparison.
func Diff(ctx context.Context, old, new []byte, kind *schema.Kind, uncovered schema.VerbSet) ([]Requirement, error) {
	return diffTexts(ctx, old, new, kind, uncovered, false)
}

// DiffParts is Diff for conditions on changes. Besides a value that is charged as a whole, it returns each changed scalar in it, with the verbs of the
// whole.
func DiffParts(ctx context.Context, old, new []byte, kind *schema.Kind, uncovered schema.VerbSet) ([]Requirement, error) {
	return diffTexts(ctx, old, new, kind, uncovered, true)
}

func diffTexts(ctx context.Context, old, new []byte, kind *schema.Kind, uncovered schema.VerbSet, parts bool) ([]Requirement, error) {
	var was rawjson.Value
	if old != nil {
		doc, err := scan(old)
		if err != nil {
			return nil, err
		}
		defer doc.Release()
		was = doc.Root()
	}
	doc, err := scan(new)
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	return diffValues(ctx, was, doc.Root(), kind, uncovered, parts)
}

func scan(raw []byte) (*rawjson.Document, error) {
	doc, err := rawjson.Scan(raw)
	switch {
	case errors.Is(err, rawjson.ErrMore):
		return nil, &InvalidObjectError{Message: "is followed by more JSON: send one object"}
	case err != nil:
		return nil, &InvalidObjectError{Message: fmt.Sprintf("is no JSON: %v: send the object as an API server does", err)}
	}
	return doc, nil
}

// DiffValues is Diff for objects that are already scanned; old is absent on CREATE. The result refers to the bytes of the text, so the
// caller may release the documents but must not change the text.
func DiffValues(ctx context.Context, old, new rawjson.Value, kind *schema.Kind, uncovered schema.VerbSet) ([]Requirement, error) {
	return diffValues(ctx, old, new, kind, uncovered, false)
}

func diffValues(ctx context.Context, old, new rawjson.Value, kind *schema.Kind, uncovered schema.VerbSet, parts bool) ([]Requirement, error) {
	if !old.IsAbsent() && !old.IsObject() || !new.IsObject() {
		return nil, &InvalidObjectError{Message: "is no JSON object: send the object as an API server does"}
	}
	if err := ctx.Err(); err != nil {
		return nil, change.Stopped(err)
	}
	apart := diff.SetApart(old, new)
	if apart.Old != nil {
		doc, err := scan(apart.Old)
		if err != nil {
			return nil, err
		}
		defer doc.Release()
		old = doc.Root()
	}
	if apart.New != nil {
		doc, err := scan(apart.New)
		if err != nil {
			return nil, err
		}
		defer doc.Release()
		new = doc.Root()
	}
	c := charge.New(ctx, kind, uncovered, old, new)
	defer c.Release()
	c.Planted, c.Parts = apart.Planted, parts
	if !c.ChargeIrregular() {
		c.Compare()
		owners.Charge(c)
	}
	return c.Finish()
}

// Unattributed reports whether no manager in the new object's managedFields owns the changed path, although managers own other paths.
// Then a default of the API server, a mutating webhook or a policy made the change after the request was merged, and the message tells the
// user so (D12). Use it for messages only, because a user can write managedFields. It returns false for removed values, which have no owner
// in the new object, and where managedFields do not say enough.
func Unattributed(new []byte, r *Requirement) bool { return owners.Unattributed(new, r) }
