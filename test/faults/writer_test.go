//go:build integration

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	// mark is in every value that an attempt writes without the necessary verbs.
	mark = "forbidden-"
	// pause is the time between two attempts of a writer: the test is about faults, not about load.
	pause = 15 * time.Millisecond
	// attemptTimeout limits an attempt. It is longer than the time that kube-apiserver waits for the authorizer and a webhook.
	attemptTimeout = 15 * time.Second
)

// writer is a user that writes in a loop.
type writer struct {
	name     string
	class    class
	user     *rest.Config
	attempts []attempt

	mu sync.Mutex
	// clients are the clients of one user, one for each API server. The attempts use them in turn.
	clients map[string]*rest.RESTClient
	n       int
}

// next returns the next client.
func (w *writer) next() *rest.RESTClient {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	names := slices.Sorted(maps.Keys(w.clients))
	return w.clients[names[w.n%len(names)]]
}

// serve connects the writer to an additional API server; nil removes one.
func (w *writer) serve(server string, client *rest.RESTClient) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if client == nil {
		delete(w.clients, server)
		return
	}
	w.clients[server] = client
}

// attempt is one way to write. Each attempt writes the number n, so that it changes the object.
type attempt struct {
	name string
	may  bool
	// barrier says that only the webhook for barriers refuses the attempt.
	barrier bool
	do      func(ctx context.Context, c *rest.RESTClient, n int) ([]byte, error)
}

// sequence numbers the attempts of all writers, so that a stored value identifies its attempt.
var sequence atomic.Int64

// run makes one attempt after the other until the context ends.
func (w *writer) run(ctx context.Context, j *journal, a *auditor) {
	for ctx.Err() == nil {
		for _, attempt := range w.attempts {
			if attempt.barrier && a.barriersDown.Load() {
				continue
			}
			w.try(ctx, attempt, j, a)
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

func (w *writer) try(ctx context.Context, attempt attempt, j *journal, a *auditor) {
	n := int(sequence.Add(1))
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	e := event{writer: w.name, attempt: attempt.name, class: w.class, may: attempt.may, begin: time.Now()}
	body, err := attempt.do(ctx, w.next(), n)
	e.end, e.err = time.Now(), err
	switch {
	case err == nil:
		e.outcome = allowed
		a.look(w.name+" "+attempt.name, body)
		if !attempt.may {
			a.note(w.name+" "+attempt.name, fill("$X", n))
		}
	case apierrors.IsForbidden(err):
		e.outcome = refused
	}
	if err != nil && len(body) > 0 {
		// Raw answers are not decoded: the error does not say why.
		e.err = fmt.Errorf("%w: %s", err, body)
	}
	if ctx.Err() != nil && err != nil && time.Since(e.begin) < attemptTimeout {
		return // The test has ended.
	}
	j.add(e)
}

// path is the path of an object, or of a collection if name is "", in the namespace of the test.
func path(group, resource, name string) string {
	prefix := "/apis/" + group
	if group == "v1" {
		prefix = "/api/v1"
	}
	return strings.TrimSuffix(prefix+"/namespaces/"+namespace+"/"+resource+"/"+name, "/")
}

// patch changes an object by a merge patch.
func patch(path, body string) func(context.Context, *rest.RESTClient, int) ([]byte, error) {
	return func(ctx context.Context, c *rest.RESTClient, n int) ([]byte, error) {
		return c.Verb(http.MethodPatch).AbsPath(path).SetHeader("Content-Type", "application/merge-patch+json").Body([]byte(fill(body, n))).Do(ctx).Raw()
	}
}

// apply changes an object by server-side apply.
func apply(path, body string) func(context.Context, *rest.RESTClient, int) ([]byte, error) {
	return func(ctx context.Context, c *rest.RESTClient, n int) ([]byte, error) {
		return c.Verb(http.MethodPatch).AbsPath(path).Param("fieldManager", "faults").Param("force", "true").
			SetHeader("Content-Type", "application/apply-patch+yaml").Body([]byte(fill(body, n))).Do(ctx).Raw()
	}
}

// create creates an object; the body has its name.
func create(path, body string) func(context.Context, *rest.RESTClient, int) ([]byte, error) {
	return func(ctx context.Context, c *rest.RESTClient, n int) ([]byte, error) {
		return c.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(fill(body, n))).Do(ctx).Raw()
	}
}

// put reads an object and writes the whole object back, with some fields changed.
func put(path string, change func(object map[string]any, n int)) func(context.Context, *rest.RESTClient, int) ([]byte, error) {
	return func(ctx context.Context, c *rest.RESTClient, n int) ([]byte, error) {
		raw, err := c.Get().AbsPath(path).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, err
		}
		change(object, n)
		if raw, err = json.Marshal(object); err != nil {
			return nil, err
		}
		return c.Put().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).Do(ctx).Raw()
	}
}

// createAndDelete leaves only the events of a watch.
func createAndDelete(path, body, name string) func(context.Context, *rest.RESTClient, int) ([]byte, error) {
	return func(ctx context.Context, c *rest.RESTClient, n int) ([]byte, error) {
		made, err := create(path, body)(ctx, c, n)
		if err != nil && !apierrors.IsAlreadyExists(err) { // An earlier delete failed.
			return nil, err
		}
		_, _ = c.Delete().AbsPath(path + "/" + fill(name, n)).Do(ctx).Raw()
		return made, nil
	}
}

// fill replaces N by n, and X by a forbidden value.
func fill(body string, n int) string {
	return strings.NewReplacer("$X", mark+fmt.Sprint(n), "$N", fmt.Sprint(n)).Replace(body)
}
