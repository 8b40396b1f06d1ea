package soak

import (
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
)

// In the window of a change both answers are right, before it the old one and after it the new one. A request that overlaps a boundary has the
// answers of both sides.
func TestTruth(t *testing.T) {
	at := time.Unix(1000, 0)
	second := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	is := &truth{turns: []turn{{right: sender.Allowed}, {second(10), sender.Allowed | sender.Denied}, {second(20), sender.Denied}}}
	for _, test := range []struct {
		begin, end int
		want       sender.Answer
	}{
		{0, 5, sender.Allowed},
		{0, 10, sender.Allowed | sender.Denied},
		{12, 15, sender.Allowed | sender.Denied},
		{12, 25, sender.Allowed | sender.Denied},
		{20, 20, sender.Denied},
		{21, 25, sender.Denied},
		{5, 25, sender.Allowed | sender.Denied},
	} {
		if got := is.during(second(test.begin), second(test.end)); got != test.want {
			t.Errorf("from %d to %d: %s, want %s", test.begin, test.end, got, test.want)
		}
	}
	if got := (&truth{}).during(at, at); got != 0 {
		t.Errorf("an empty truth: %s", got)
	}
}

// A change that fails does not end its window.
func TestChanging(t *testing.T) {
	is := always(sender.Allowed)
	if err := changing(func() error { return nil }, change{is, sender.Denied}); err != nil {
		t.Fatal(err)
	}
	if got := is.during(time.Now(), time.Now()); got != sender.Denied {
		t.Errorf("after a change: %s", got)
	}
	if err := changing(func() error { return errTest }, change{is, sender.Allowed}); err == nil {
		t.Error("no error")
	}
	if got := is.during(time.Now(), time.Now()); got != sender.Allowed|sender.Denied {
		t.Errorf("in a change that failed: %s", got)
	}
}

type testError string

func (e testError) Error() string { return string(e) }

const errTest = testError("test")

// Wrong answers, failures without a reason and failures with one are told apart; the first wrong Allow is fatal.
func TestJudge(t *testing.T) {
	at := time.Unix(1000, 0)
	during := func(o outcome, from, to int) outcome {
		o.begin, o.end = at.Add(time.Duration(from)*time.Second), at.Add(time.Duration(to)*time.Second)
		o.detail = func() string { return "detail" }
		return o
	}
	failed := outcome{answer: sender.Errored, right: sender.Allowed}
	late := failed
	late.late = true
	killed := failed
	killed.killed = true
	refused := outcome{answer: sender.Denied, right: sender.Allowed}
	unproven := refused
	unproven.unproven = true
	deniedUnproven := outcome{answer: sender.Denied, right: sender.Denied, unproven: true}
	for name, test := range map[string]struct {
		outcome
		want counts
	}{
		"right":                                 {during(outcome{answer: sender.Allowed, right: sender.Allowed}, 0, 1), counts{right: 1}},
		"either is right":                       {during(outcome{answer: sender.Denied, right: sender.Allowed | sender.Denied}, 0, 1), counts{right: 1}},
		"a refusal is right, proof or not":      {during(deniedUnproven, 0, 1), counts{right: 1}},
		"a wrong Allow":                         {during(outcome{answer: sender.Allowed, right: sender.Denied}, 0, 1), counts{wrongAllows: 1}},
		"a wrong Allow of a killed process":     {during(outcome{answer: sender.Allowed, right: sender.Denied, killed: true}, 12, 13), counts{wrongAllows: 1}},
		"nothing is right":                      {during(outcome{answer: sender.Allowed}, 0, 1), counts{wrongAllows: 1}},
		"a wrong denial":                        {during(refused, 0, 1), counts{wrongDenials: 1}},
		"a wrong denial while away":             {during(refused, 12, 13), counts{wrongDenials: 1}},
		"no answer is no right one":             {during(outcome{right: sender.Allowed}, 0, 1), counts{failures: 1}},
		"unproven in an event":                  {during(unproven, 12, 13), counts{unproven: 1}},
		"unproven else":                         {during(unproven, 0, 1), counts{unprovenElse: 1}},
		"a failure":                             {during(failed, 0, 1), counts{failures: 1}},
		"a failure in another event":            {during(failed, 30, 31), counts{failures: 1}},
		"a failure that ends before it is away": {during(failed, 8, 9), counts{failures: 1}},
		"a failure while away":                  {during(failed, 9, 11), counts{away: 1}},
		"a failure of a killed process":         {during(killed, 0, 1), counts{killed: 1}},
		"late while it was slow":                {during(late, 41, 42), counts{slow: 1}},
		"late, of a check that began then":      {during(late, 47, 48), counts{slow: 1}},
		"late, after such checks":               {during(late, 54, 55), counts{failures: 1}},
		"late while it was not":                 {during(late, 0, 1), counts{failures: 1}},
		"not late while it was slow":            {during(failed, 41, 42), counts{failures: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var reported, fatal []string
			j := &judge{
				joined: 8 * time.Second,
				events: []event{{away + " restarted", at.Add(10 * time.Second), at.Add(20 * time.Second)}, {"another", at.Add(30 * time.Second), at.Add(35 * time.Second)}},
				report: func(text string) { reported = append(reported, text) }, fatal: func(text string) { fatal = append(fatal, text) },
			}
			j.wasSlow(at.Add(40*time.Second), at.Add(45*time.Second))
			j.note(test.outcome)
			j.settle(at.Add(time.Minute))
			if got := j.soFar(); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if len(reported) != test.want.faults() || len(fatal) != test.want.wrongAllows {
				t.Errorf("reported: %q; fatal: %q", reported, fatal)
			}
			for _, text := range reported {
				if !strings.Contains(text, "detail") {
					t.Errorf("%q lacks the detail", text)
				}
			}
		})
	}
}

// A late outcome is judged when slowness is known until its end.
func TestJudge_SettlesLater(t *testing.T) {
	at := time.Unix(1000, 0)
	j := &judge{report: func(string) {}}
	j.note(outcome{answer: sender.Errored, right: sender.Allowed, late: true, begin: at, end: at.Add(time.Second), detail: func() string { return "" }})
	j.settle(at)
	if got := j.soFar(); got != (counts{}) {
		t.Errorf("too early: %s", got)
	}
	j.wasSlow(at, at.Add(2*time.Second))
	j.settle(at.Add(2 * time.Second))
	if got := j.soFar(); got != (counts{slow: 1}) {
		t.Error(got)
	}
}

func TestIsLate(t *testing.T) {
	for text, want := range map[string]bool{
		`503: authorizer: verb "update": authorizer "rbac": has not answered yet: context deadline exceeded`: true,
		"net/http: request canceled (Client.Timeout exceeded while awaiting headers)":                        true,
		"connection refused": false,
		"EOF":                false,
	} {
		if isLate(text) != want {
			t.Errorf("%s: want %t", text, want)
		}
	}
}
