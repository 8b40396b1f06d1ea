package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/internal/livefield"
)

// ErrRefused means that a change is refused, or is for some values; the answer has been written.
var ErrRefused error = negative("a change is refused, or depends on its value")

// permission is one call of the can-i command.
type permission struct {
	inquirer
	verb   string
	fields []string
	value  string
	list   bool
	// changed reports whether a flag is given.
	changed func(flag string) bool
}

func (o *permission) run(ctx context.Context, verb, target string) error {
	o.verb = verb
	value, err := o.validate()
	if err != nil {
		return err
	}
	c, err := o.caller(ctx)
	if err != nil {
		return err
	}
	s, err := o.situation(ctx, c, target)
	if err != nil {
		return o.withMissing(c.traced, err)
	}
	s.value, s.hasValue = value, o.changed("value")
	var rows []anyvalue.Row
	if o.list {
		rows, err = o.listed(ctx, s)
	} else {
		rows, err = o.answered(ctx, s)
	}
	interrupted := o.list && ctx.Err() != nil && len(rows) > 0
	if interrupted {
		o.warn("the list is not complete, because the command was interrupted: what is not listed is not known")
	} else if err != nil {
		return o.withMissing(c.traced, err)
	}
	if failure := s.judge.Holdings.Failure(); failure != nil && (o.list || !allYes(rows)) {
		return failure
	}
	s.doubt(rows)
	if err := o.print(s, rows); err != nil {
		return err
	}
	if err := o.incomplete(c.traced); err != nil {
		return err
	}
	if interrupted {
		return ErrUnread
	}
	if !allYes(rows) && !o.list || len(rows) == 0 {
		return ErrRefused
	}
	return nil
}

func allYes(rows []anyvalue.Row) bool {
	return !slices.ContainsFunc(rows, func(r anyvalue.Row) bool { return r.Answer.Outcome != anyvalue.Yes })
}

// validate checks the flags. It returns the value of --value.
func (o *permission) validate() (any, error) {
	hasValue := o.changed("value")
	if err := o.outputIs(outputText, outputJSON, outputYAML, outputHTML); err != nil {
		return nil, err
	}
	switch {
	case o.verb == "create":
		return nil, errors.New(`verb "create": there is no object to change: use kubectl fieldperm review --new FILE`)
	case o.verb == "delete":
		return nil, errors.New(`verb "delete": is about no field: use kubectl auth can-i, or kubectl fieldperm review --old FILE`)
	case o.verb != "update" && o.verb != "patch":
		return nil, fmt.Errorf("verb %q is not known: use update or patch", o.verb)
	case o.list && (len(o.fields) > 0 || hasValue):
		return nil, errors.New("--list is about all fields and values: drop --field and --value, or drop --list")
	case !o.list && len(o.fields) == 0:
		return nil, errors.New("--field is missing: name a field, or give --list")
	case o.as == "" && len(o.asGroups) > 0:
		return nil, errors.New("--as-group is given without --as: name the user")
	case o.maxChecks < 1:
		return nil, fmt.Errorf("--max-checks %d allows no check: use 1 or more", o.maxChecks)
	case !o.offline() && len(o.files()) > 0:
		return nil, errors.New("--crd and --permissions are given without --grants: give --grants, so that files decide in place of a cluster")
	case o.offline() && o.file == "":
		return nil, errors.New("-f is missing: give the object, because --grants asks no cluster")
	}
	if !hasValue {
		return nil, nil
	}
	var value any
	if err := utiljson.Unmarshal([]byte(o.value), &value); err != nil {
		return nil, fmt.Errorf("--value %q: is no JSON: %w: quote a text twice, as in '\"text\"'", o.value, err)
	}
	return value, nil
}

// answered returns the answers about the fields of --field.
func (o *permission) answered(ctx context.Context, s *situation) ([]anyvalue.Row, error) {
	var rows []anyvalue.Row
	for _, path := range o.fields {
		fields, err := livefield.Resolve(s.kind, s.object, path)
		if err != nil {
			return nil, err
		}
		for i := range fields {
			f := &fields[i]
			if err := s.changeable(f); err != nil {
				return nil, err
			}
			var answer anyvalue.Answer
			if s.hasValue {
				answer, err = s.decide(ctx, f)
			} else {
				answer, err = s.judge.Field(ctx, f.Charged)
			}
			if err != nil {
				return nil, err
			}
			rows = append(rows, anyvalue.Row{Path: f.Text(), Answer: answer})
		}
	}
	return rows, nil
}

// listed returns the fields that the user may change.
func (o *permission) listed(ctx context.Context, s *situation) ([]anyvalue.Row, error) {
	// How many verbs are left is not known, because one verb may answer for many fields.
	asking := o.newProgress("verbs", 1)
	s.judge.Holdings.Asked = func(string) { asking.step("verbs asked for", 1) }
	defer asking.clear()
	l := &anyvalue.Lister{
		Judge: s.judge, Skips: s.ignores,
		Items: func(of anyvalue.Located) []anyvalue.Located {
			// An error means that the object has no such list.
			fields, _ := livefield.Resolve(s.kind, s.object, of.Path+"[*]")
			out := make([]anyvalue.Located, len(fields))
			for i := range fields {
				out[i] = anyvalue.Located{Path: fields[i].Text(), Place: fields[i].Place}
			}
			return out
		},
	}
	return l.List(ctx, s.kind.Tree)
}

// decide decides on the change of a field to the value.
func (s *situation) decide(ctx context.Context, f *livefield.Field) (anyvalue.Answer, error) {
	in, err := s.judge.Entry(ctx)
	if err != nil || in.Outcome == anyvalue.No {
		return in, err
	}
	request, err := s.request(f)
	if err != nil {
		return anyvalue.Answer{}, err
	}
	decided, err := s.caller.decide(ctx, request)
	if err != nil {
		return anyvalue.Answer{}, fmt.Errorf("%s: %w", f.Path, err)
	}
	if !decided.Allowed {
		return anyvalue.Answer{Why: []string{decided.Message}}, nil
	}
	out := anyvalue.Answer{Outcome: anyvalue.Yes}
	for _, change := range decided.Changes {
		if out.By == "" {
			out.By = change.CoveredBy
		}
		if why := s.judge.OfOwners(change.Chain, change.CoveredBy); why != "" {
			return anyvalue.Answer{Outcome: anyvalue.Depends, By: change.CoveredBy, Why: []string{why}}, nil
		}
	}
	if len(decided.Changes) == 0 {
		out.Why = []string{"the value is the same"}
	}
	return out, nil
}

// doubt turns yes into depends, if barriers or conditions could not be read.
func (s *situation) doubt(rows []anyvalue.Row) {
	missing := s.caller.undecided()
	if missing == "" {
		return
	}
	for i := range rows {
		if a := &rows[i].Answer; a.Outcome == anyvalue.Yes {
			a.Outcome, a.Why = anyvalue.Depends, []string{a.By + " covers the field, unless " + missing + ", which could not be read, refuse the change"}
		}
	}
}

// onFloor reports whether the object may be on the floor, where no barrier holds.
func (s *situation) onFloor() bool {
	request := *s.base
	request.Object = request.OldObject
	return admission.BeyondBarriers(&request)
}
