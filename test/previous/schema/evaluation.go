package schema

import (
	"context"

	"github.com/google/cel-go/interpreter"
)

// variant is a change of the request for which conditions are evaluated. The zero variant is the request itself.
type variant struct {
	// isUpdate is for a request that is CREATE to admission and changes a stored object.
	isUpdate bool
	// subresource is the one to which the same request is made, because a write of the object can also change owners of what the
	// subresource writes.
	subresource string
}

// fields returns the fields of the request that the variant changes.
func (v variant) fields() map[string]any {
	out := map[string]any{}
	if v.isUpdate {
		out["operation"] = "UPDATE"
	}
	if v.subresource != "" {
		out["subResource"], out["requestSubResource"] = v.subresource, v.subresource
	}
	return out
}

// of returns the fields of the variant of a request.
func (v variant) of(request map[string]any) map[string]any {
	if v == (variant{}) && request != nil {
		return request
	}
	out := v.fields()
	for name, value := range request {
		if _, changed := out[name]; !changed {
			out[name] = value
		}
	}
	return out
}

// seenBy returns the variant for an expression: the request itself if the expression reads no field that the variant changes.
func (v variant) seenBy(x *expression) variant {
	for name := range v.fields() {
		if x.readsField(name) {
			return v
		}
	}
	return variant{}
}

// evaluation answers the questions of all sets about one request. It reads each input once, and only if a condition needs it.
type evaluation struct {
	ctx       context.Context
	request   Request
	questions []question
	answers   []answer
	inputs    map[variant]*input
	fields    requestFields
	objects   requestObjects
	errs      []error
}

// answer is the result of a question. The zero answer is not known yet.
type answer struct {
	known, holds bool
	err          error
}

// requestFields are the result of Request.Fields.
type requestFields struct {
	asked, known bool
	values       map[string]any
}

// requestObjects are the result of Request.Objects.
type requestObjects struct {
	asked, known bool
	object, old  any
}

func newEvaluation(ctx context.Context, request Request, questions []question) *evaluation {
	return &evaluation{ctx: ctx, request: request, questions: questions, answers: make([]answer, len(questions)), inputs: make(map[variant]*input, 1)}
}

// answer answers a question. If its input cannot be read, the condition counts as true, and errs has the reason.
func (e *evaluation) answer(i int) (bool, error) {
	a := &e.answers[i]
	if !a.known {
		a.known, a.holds = true, true
		if in := e.input(&e.questions[i]); in != nil {
			a.holds, a.err = e.questions[i].expression.holds(e.ctx, in)
		}
	}
	return a.holds, a.err
}

// input returns the variables that an expression reads, nil if they are not known.
func (e *evaluation) input(q *question) *input {
	if q.expression.readsFields && !e.readFields() || q.expression.reads > readsRequest && !e.readObjects() {
		return nil
	}
	in := e.inputs[q.as]
	if in == nil {
		in = &input{requestObjects: &e.objects}
		e.inputs[q.as] = in
	}
	if q.expression.readsFields && in.request == nil {
		in.request = q.as.of(e.fields.values)
	}
	return in
}

// readFields reports whether the fields of the request are known.
func (e *evaluation) readFields() bool {
	f := &e.fields
	if !f.asked && e.request.Fields != nil {
		values, err := e.request.Fields()
		f.values, f.known = values, e.isRead(err)
	}
	f.asked = true
	return f.known
}

// readObjects reports whether the objects of the request are known.
func (e *evaluation) readObjects() bool {
	o := &e.objects
	if !o.asked && e.request.Objects != nil {
		object, old, err := e.request.Objects()
		o.object, o.old, o.known = object, old, e.isRead(err)
	}
	o.asked = true
	return o.known
}

func (e *evaluation) isRead(err error) bool {
	if err != nil {
		e.errs = append(e.errs, err)
	}
	return err == nil
}

// input are the variables of conditions. It implements interpreter.Activation.
type input struct {
	request map[string]any
	*requestObjects
}

// ResolveName returns a variable. One that was not read does not exist, so that a condition that reads it nevertheless fails and counts as
// true.
func (in *input) ResolveName(name string) (any, bool) {
	switch name {
	case requestVariable:
		return in.request, in.request != nil
	case objectVariable:
		return in.object, in.known
	case oldObjectVariable:
		return in.old, in.known
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (in *input) Parent() interpreter.Activation { return nil }
