package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/admission"
)

// approaches are the ways to process a review. Each returns a function that processes it once, and fails if the result differs from the
// review's expectation.
var approaches = []struct {
	name string
	make func(testing.TB, *desk, review) func(context.Context) error
}{
	{"fieldperm", inProduction},
	{"smd", byStructuredMergeDiff},
	{"tokenscan", byTokens},
}

// inProduction processes a review from the body to the decision, as the server does.
func inProduction(_ testing.TB, d *desk, r review) func(context.Context) error {
	return func(ctx context.Context) error {
		result, err := d.review(ctx, r.body)
		switch {
		case err != nil:
			return err
		case !result.Allowed || len(result.Requirements) != r.changes:
			return fmt.Errorf("allowed is %t with %d changes, want %d: %s", result.Allowed, len(result.Requirements), r.changes, result.Message)
		}
		return nil
	}
}

// review reads the body that a server received, and decides.
func (d *desk) review(ctx context.Context, body []byte) (*admission.Result, error) {
	in, err := admission.Read(body)
	if err != nil {
		return nil, err
	}
	defer in.Release()
	return d.ReviewDecoded(ctx, admission.Granular, in)
}

// byStructuredMergeDiff decodes and compares as server-side apply does, without any decision.
func byStructuredMergeDiff(tb testing.TB, _ *desk, r review) func(context.Context) error {
	known := typeOf(tb, r.kind)
	read := func(raw []byte) (*typed.TypedValue, error) {
		v, err := value.FromJSONFast(raw)
		if err != nil {
			return nil, err
		}
		return typed.AsTyped(v, known.Schema, known.TypeRef)
	}
	return func(context.Context) error {
		var in admissionv1.AdmissionReview
		if err := kjson.UnmarshalCaseSensitivePreserveInts(r.body, &in); err != nil {
			return err
		}
		old, err := read(in.Request.OldObject.Raw)
		if err != nil {
			return err
		}
		object, err := read(in.Request.Object.Raw)
		if err != nil {
			return err
		}
		comparison, err := old.Compare(object)
		if err == nil && comparison.IsSame() != r.same {
			err = fmt.Errorf("same is %t", comparison.IsSame())
		}
		return err
	}
}

// byTokens reads every token and does nothing else: no reader of JSON tokens is faster. It does not detect a duplicate name, because that
// takes longer.
func byTokens(_ testing.TB, _ *desk, r review) func(context.Context) error {
	var decoder jsontext.Decoder
	var source bytes.Buffer
	return func(context.Context) error {
		source = *bytes.NewBuffer(r.body)
		decoder.Reset(&source, jsontext.AllowDuplicateNames(true))
		tokens := 0
		for {
			switch _, err := decoder.ReadToken(); {
			case err == nil:
				tokens++
			case !errors.Is(err, io.EOF):
				return err
			case decoder.InputOffset() < int64(len(r.body)) || tokens < 30:
				return fmt.Errorf("%d tokens of %d bytes", tokens, decoder.InputOffset())
			default:
				return nil
			}
		}
	}
}
