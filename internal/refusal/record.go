package refusal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// record is what is read of an event of an audit log, of an AdmissionReview, or of a Status.
type record struct {
	Kind   string     `json:"kind"`
	Stage  string     `json:"stage"`
	Verb   string     `json:"verb"`
	User   identity   `json:"user"`
	As     *identity  `json:"impersonatedUser"`
	Object *reference `json:"objectRef"`
	Answer outcome    `json:"responseStatus"`
	// Request and Response are of an AdmissionReview.
	Request  *asked    `json:"request"`
	Response *answered `json:"response"`
	Items    []record  `json:"items"`
	// Message and Code are of a Status.
	Message string `json:"message"`
	Code    int    `json:"code"`
	// Err and Error are of a line of a controller's log.
	Err   string `json:"err"`
	Error string `json:"error"`
}

type identity struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

type reference struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Group       string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
}

type outcome struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type asked struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	User      identity `json:"userInfo"`
}

type answered struct {
	Allowed bool    `json:"allowed"`
	Status  outcome `json:"status"`
}

// maxLine bounds a line of a log, which an event with both objects may have.
const maxLine = 32 << 20

// Log has the refusals of a log.
type Log struct {
	// Visit is called for each refusal, in the order of the log.
	Visit func(Refusal)
	// Records are the events, reviews and Statuses. Others are requests that were refused or failed for another reason, Broken are lines that
	// are no JSON.
	Records, Others, Broken int
	// Undecided is set if a review without a response was read.
	Undecided bool
}

// Read reads JSON: one document, or one in each line.
func (l *Log) Read(r io.Reader) error {
	in := bufio.NewReaderSize(r, 1<<16)
	if first, _ := in.Peek(2); len(first) == 2 && first[0] == '{' && (first[1] == '\n' || first[1] == '\r') {
		var document record
		if err := json.NewDecoder(in).Decode(&document); err != nil {
			return fmt.Errorf("input is no JSON document: %w: give an event of an audit log, an AdmissionReview or the message", err)
		}
		l.record(&document)
		return nil
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		var one record
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &one) != nil:
			l.Broken++
		default:
			l.record(&one)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("input has a line of more than %d MiB: give the line of the refusal alone", maxLine>>20)
	} else if err != nil {
		return fmt.Errorf("input: %w: give one that can be read", err)
	}
	return nil
}

func (l *Log) record(d *record) {
	for i := range d.Items {
		l.record(&d.Items[i])
	}
	switch {
	case len(d.Items) > 0:
	case d.Request != nil:
		l.review(d)
	case d.Kind == "" && d.Err+d.Error != "":
		l.Records++
		l.logged(d.Err + d.Error)
	case d.Kind == "Status":
		l.Records++
		l.found(d.Message, d.Code, nil)
	case d.Stage == "ResponseComplete" || d.Stage == "Panic" || d.Stage == "":
		l.Records++
		l.found(d.Answer.Message, d.Answer.Code, d.complete)
	default:
		l.Records++ // Another stage of a request.
	}
}

func (l *Log) review(d *record) {
	l.Records++
	switch {
	case d.Response == nil:
		l.Undecided = true
	case !d.Response.Allowed:
		l.found(d.Response.Status.Message, max(d.Response.Status.Code, 400), func(r *Refusal) {
			namespaced := d.Request.Namespace != ""
			r.User, r.Groups, r.Namespace, r.Namespaced, r.Name = d.Request.User.Username, d.Request.User.Groups, d.Request.Namespace, &namespaced, d.Request.Name
		})
	}
}

// logged reads the error of a line of a log, which may have other words.
func (l *Log) logged(message string) {
	all := Parse(message)
	if len(all) == 0 {
		l.Others++
		return
	}
	l.Visit(all[0])
}

// found reads a message of a refused request. Its record knows more, and its facts count.
func (l *Log) found(message string, code int, complete func(*Refusal)) {
	if code < 400 {
		return
	}
	r, ok := parseAnswer(message)
	if !ok {
		l.Others++
		return
	}
	if complete != nil {
		complete(&r)
	}
	l.Visit(r)
}

// complete adds what an event says.
func (d *record) complete(r *Refusal) {
	by := d.User
	if d.As != nil {
		by = *d.As // The write is authorized for it.
	}
	if by.Username != "" {
		r.User, r.Groups = by.Username, by.Groups
	}
	// The message of a missing permission says all of it. It may be of another request: impersonation is authorized on users and groups.
	if ref := d.Object; ref != nil && ref.Resource != "" && r.Origin != FromAuthorization {
		resource := ref.Resource
		if ref.Subresource != "" {
			resource += "/" + ref.Subresource
		}
		namespaced := ref.Namespace != ""
		r.Resource, r.Namespace, r.Namespaced = joined(resource, ref.Group), ref.Namespace, &namespaced
		if ref.Name != "" {
			r.Name = ref.Name
		}
	}
	if r.Verb == "" {
		r.Verb = d.Verb
	}
}
