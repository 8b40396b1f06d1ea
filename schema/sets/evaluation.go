package sets

import (
	"context"

	"github.com/fieldperm/fieldperm/internal/cel"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/internal/dialect"
)

// variant is a change of the request for which conditions are evaluated. The zero variant is the request itself.
type variant struct {
	// isUpdate is for a request that is CREATE to admission and changes a stored object.
	isUpdate bool
	// subresource is the one to which the same request is made, because a write of the object can also change owners of what the
	// subresource writes.
	subresource string
}

// of returns the fields of the variant of a request.
func (v variant) of(request map[string]any) map[string]any {
	if v == (variant{}) {
		return request
	}
	out := map[string]any{}
	for name, value := range request {
		out[name] = value
	}
	if v.isUpdate {
		out["operation"] = "UPDATE"
	}
	if v.subresource != "" {
		out["subResource"], out["requestSubResource"] = v.subresource, v.subresource
	}
	return out
}

// evaluation answers the questions of all sets about one request. It reads the request once, and only if there is a question.
type evaluation struct {
	ctx       context.Context
	request   schema.Request
	questions []question
	answers   []answer
	// asked says whether fields is known, nil if it cannot be read.
	asked  bool
	fields map[string]any
	// inputs are the variables of conditions, by variant.
	inputs map[variant]map[string]any
	budget cel.Budget
	errs   []error
}

// answer is the result of a question. The zero answer is not known yet.
type answer struct {
	known, holds bool
	err          error
}

func newEvaluation(ctx context.Context, request schema.Request, questions []question) *evaluation {
	return &evaluation{ctx: ctx, request: request, questions: questions, answers: make([]answer, len(questions)), inputs: make(map[variant]map[string]any, 1)}
}

// answer answers a question. If the request cannot be read, the condition counts as true, and errs has the reason.
func (e *evaluation) answer(i int) (bool, error) {
	a := &e.answers[i]
	if !a.known {
		a.known, a.holds = true, true
		if in := e.input(e.questions[i].as); in != nil {
			a.holds, a.err = cel.Bool(e.ctx, e.questions[i].condition.program, in, &e.budget)
		}
	}
	return a.holds, a.err
}

// input returns the variables of conditions, nil if they are not known.
func (e *evaluation) input(as variant) map[string]any {
	if !e.asked && e.request != nil {
		fields, err := e.request()
		if err != nil {
			e.errs = append(e.errs, err)
		} else {
			e.fields = fields
		}
	}
	e.asked = true
	if e.fields == nil {
		return nil
	}
	in := e.inputs[as]
	if in == nil {
		in = map[string]any{dialect.RequestVariable: as.of(e.fields)}
		e.inputs[as] = in
	}
	return in
}
