//go:build controllers

package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// event is what a trial reads of an event of the audit log. What a write changed is read by kubectl fieldperm tighten.
type event struct {
	Stage string
	Verb  string
	User  identity
	// ImpersonatedUser is nil without impersonation. With it, it is the user that RBAC and fieldperm see.
	ImpersonatedUser *identity
	ObjectRef        struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct {
		Code    int
		Message string
	}
}

// identity is a user.
type identity struct {
	Username string
	Groups   []string
}

// resource is a group, and a resource with its subresource.
type resource struct{ group, name string }

// String returns the resource in the way of kubectl: deployments/scale.apps.
func (r resource) String() string {
	if r.group == "" {
		return r.name
	}
	return r.name + "." + r.group
}

func (e *event) resource() resource {
	name := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return resource{e.ObjectRef.APIGroup, name}
}

// update reports whether the event is an update or a patch that was stored or, as a dry run, would have been.
func (e *event) update() bool {
	return (e.Verb == "update" || e.Verb == "patch") && e.ResponseStatus.Code == 200
}

// observes reports whether the event is of a user that the trial observes.
func (x *Trial) observes(e *event) bool {
	for _, s := range x.Observe {
		if e.User.Username == username(s) || s.Kind == "Group" && slices.Contains(e.User.Groups, s.Name) {
			return true
		}
	}
	return false
}

// events calls f for each event of an observed user in the audit log.
func (r *Run) events(f func(e *event)) {
	r.T.Helper()
	log, err := os.Open(r.Stack.AuditLog())
	Must(r.T, err)
	defer log.Close() //nolint:errcheck // Only read.
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		// Most events are reads of others.
		if !slices.ContainsFunc(r.trial.Observe, func(s v1alpha1.Subject) bool { return strings.Contains(lines.Text(), s.Name) }) {
			continue
		}
		e := &event{}
		if err := json.Unmarshal(lines.Bytes(), e); err != nil {
			continue // The last line is being written.
		}
		if e.ImpersonatedUser != nil {
			e.User = *e.ImpersonatedUser
		}
		if e.Stage == "ResponseComplete" && r.trial.observes(e) {
			f(e)
		}
	}
	Must(r.T, lines.Err())
}

// settle waits until the programs have written nothing for some seconds.
func (r *Run) settle() {
	r.T.Helper()
	last, since := -1, time.Now()
	r.Await("the programs have come to rest", Patience, func(context.Context) (bool, string) {
		n, latest := 0, ""
		r.events(func(e *event) {
			if e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" && e.ObjectRef.Resource != "events" && e.ObjectRef.Resource != "leases" {
				n++
				latest = fmt.Sprintf("%s %s %s %s/%s %d", e.User.Username, e.Verb, e.resource(), e.ObjectRef.Namespace, e.ObjectRef.Name, e.ResponseStatus.Code)
			}
		})
		if n != last {
			last, since = n, time.Now()
		}
		time.Sleep(time.Second)
		return time.Since(since) > 6*time.Second, latest
	})
}

// updates returns the number of updates of each user.
func (r *Run) updates() map[string]int {
	out := map[string]int{}
	r.events(func(e *event) {
		if e.update() {
			out[e.User.Username]++
		}
	})
	return out
}

// refusals returns the requests of observed users that RBAC or fieldperm refused, and those that fieldperm could not decide. A quota and a
// namespace that is being deleted refuse requests too, with and without fieldperm.
func (r *Run) refusals() map[string][]string {
	r.T.Helper()
	out := map[string][]string{}
	r.events(func(e *event) {
		code, message := e.ResponseStatus.Code, e.ResponseStatus.Message
		if code != 403 && code < 500 || strings.Contains(message, "exceeded quota") || strings.Contains(message, "is being terminated") {
			return
		}
		text := fmt.Sprintf("%d %s %s %s/%s: %s", code, e.Verb, e.resource(), e.ObjectRef.Namespace, e.ObjectRef.Name, message)
		if !slices.Contains(out[e.User.Username], text) {
			out[e.User.Username] = append(out[e.User.Username], text)
		}
	})
	return out
}
