package sender

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Answer is an answer of fieldperm, or a set of answers. The zero value is none.
type Answer uint8

// The answers. Errored is no decision: the request failed, the status is no 200, or the response of admission is no 403.
const (
	Allowed Answer = 1 << iota
	Denied
	Errored
)

func (a Answer) String() string {
	var out []string
	for i, name := range []string{"allowed", "denied", "an error"} {
		if a&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, " or ")
}

// authorizePath is the path of questions. All others are of reviews.
const authorizePath = "/authorize"

// Request is a request to fieldperm.
type Request struct {
	Name, Path string
	Body       []byte
	// UID is that of a review.
	UID types.UID
	// Want has the right answers, for Result.
	Want Answer
	// Contains replaces the reading of an answer, if it is set: an answer that contains it is Allowed. To decode it would take the processor
	// from the webhook.
	Contains []byte
}

// Exchange is a request that was sent, with its answer.
type Exchange struct {
	*Request
	// Due is the time at which it should have been sent, Begin that at which it was sent, and End that of the answer.
	Due, Begin, End time.Time
	// Answer is one answer.
	Answer Answer
	// Unproven is a question that was Denied because enforcement was not proven: fieldperm, or the API server that it probes, had too little
	// processor time for a proof. Users are refused then, which is right, and no reviews.
	Unproven bool
	// Err is set if the answer is Errored.
	Err error
	// Conn is the connection on which the request was sent, nil if there was none. It is only for comparisons.
	Conn net.Conn
	// Code, RetryAfter and Text are of the HTTP response.
	Code       int
	RetryAfter string
	Text       []byte
}

// read finds the answer in the response.
func (e *Exchange) read() {
	switch {
	case e.Err != nil:
	case e.Code != http.StatusOK:
		e.Err = fmt.Errorf("%d: %s", e.Code, e.Text)
	case e.Contains != nil:
		if e.Answer = Allowed; !bytes.Contains(e.Text, e.Contains) {
			e.Err = fmt.Errorf("lacks %s: %s", e.Contains, e.Text)
		}
	case e.Path == authorizePath:
		e.readQuestion()
	default:
		e.readReview()
	}
	if e.Err != nil {
		e.Answer = Errored
	}
}

func (e *Exchange) readQuestion() {
	var review authorizationv1.SubjectAccessReview
	if e.Err = json.Unmarshal(e.Text, &review); e.Err != nil {
		return
	}
	switch status := review.Status; {
	case status.Denied:
		e.Err = fmt.Errorf("it denies, and other authorizers are not asked: %s", e.Text)
	case status.Allowed && !strings.HasPrefix(status.Reason, "granular:"):
		e.Err = fmt.Errorf("an Allow without the reason granular: %s", e.Text)
	case status.Allowed:
		e.Answer = Allowed
	case status.EvaluationError != "":
		e.Err = fmt.Errorf("NoOpinion because of an error: %s", e.Text)
	default:
		e.Answer, e.Unproven = Denied, strings.Contains(status.Reason, "not proven")
	}
}

func (e *Exchange) readReview() {
	var review admissionv1.AdmissionReview
	if e.Err = json.Unmarshal(e.Text, &review); e.Err != nil {
		return
	}
	switch response := review.Response; {
	case response == nil || response.UID != e.UID:
		e.Err = fmt.Errorf("no response to this request: %s", e.Text)
	case response.Allowed:
		e.Answer = Allowed
	case response.Result == nil || response.Result.Code != http.StatusForbidden:
		e.Err = fmt.Errorf("no denial but an error: %s", e.Text)
	default:
		e.Answer = Denied
	}
}

// Fault returns an error unless the answer is wanted.
func (e *Exchange) Fault() error {
	switch {
	case e.Answer&e.Want != 0:
		return nil
	case e.Err != nil:
		return e.Err
	case e.Unproven:
		return errors.New("enforcement is not proven")
	default:
		return fmt.Errorf("wrong: want %s: %s", e.Want, e.Text)
	}
}
