package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// coveringAnnotation has the verbs by which fieldperm allowed a request.
const coveringAnnotation = "granular.fieldperm.dev/verbs"

// audit reads the audit log of the API server, because some commands of kubectl do not print the status code.
type audit struct {
	file string
	read int64
}

// event has the fields of an event of audit.k8s.io/v1 that the demo uses.
type event struct {
	Verb           string `json:"verb"`
	User           struct{ Username string }
	ResponseStatus metav1.Status     `json:"responseStatus"`
	Annotations    map[string]string `json:"annotations"`
}

func (e *event) covering() string { return e.Annotations[coveringAnnotation] }

// last returns the last write of a user since the last call. The API server logs it after it has sent the answer, so that last may have to
// wait.
func (a *audit) last(ctx context.Context, user string) (*event, error) {
	var found *event
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		events, err := a.next()
		for _, e := range events {
			if e.User.Username == user && slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) {
				found = e
			}
		}
		return found != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("audit log: no write by user %q: %w", user, err)
	}
	return found, nil
}

// next returns the complete events that have not been read yet.
func (a *audit) next() ([]*event, error) {
	file, err := os.Open(a.file)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // Only read.
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	a.read += int64(len(content))
	var events []*event
	for line := range bytes.Lines(content) {
		e := &event{}
		if err := json.Unmarshal(line, e); err != nil {
			return nil, fmt.Errorf("%s: %w", a.file, err)
		}
		events = append(events, e)
	}
	return events, nil
}
