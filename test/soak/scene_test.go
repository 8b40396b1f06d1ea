//go:build integration

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

// scene is a soak that runs.
type scene struct {
	t       *testing.T
	ctx     context.Context
	s       *stack.Stack
	admin   *kubernetes.Clientset
	writer  *kubernetes.Clientset // As a granular user.
	mix     *mix
	fleet   *fleet
	callers *callers
	judge   *judge
	sender  *sender.Sender
	sent    atomic.Int64
}

// start runs the control plane with two replicas, and creates the users.
func (c *scene) start() {
	t := c.t
	bin := *binaries
	if bin == "" {
		var err error
		bin, err = e2e.Build()
		must(t, err)
	}
	schemas := filepath.Join(t.TempDir(), "barriers.yaml")
	must(t, os.WriteFile(schemas, []byte(barriers), 0o600))
	var err error
	c.s, err = stack.Start(t.Context(), stack.Config{Bin: bin, Replicas: 2, Schemas: []string{schemas}, Prepare: c.prepare})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.s.WebhookLogTail())
		}
		must(t, c.s.Stop())
	})
	c.admin, err = kubernetes.NewForConfig(c.s.Admin())
	must(t, err)
	user, err := c.s.User("scaler-0")
	must(t, err)
	c.writer, err = kubernetes.NewForConfig(user.Config)
	must(t, err)
	must(t, c.s.Apply(t.Context(), filepath.Join("..", "..", "config", "crd")))
	must(t, c.kubectl("", "wait", "--for=condition=Established", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/permissionschemas.fieldperm.dev"))
	must(t, c.apply(population()))
	must(t, c.s.AwaitGrants(t.Context()))
	for i := range c.s.Replicas() {
		c.fleet.add(i, strings.TrimPrefix(c.s.ReplicaURL(i), "https://"))
	}
	must(t, c.createDefinition())
	must(t, c.recovered())
	c.sender = c.newSender()
}

// prepare writes the files that change while fieldperm runs, and returns the flags that name them.
func (c *scene) prepare(dir string) ([]string, error) {
	var err error
	if c.callers, err = newCallers(dir); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, authorizationFile)
	return []string{"--client-ca-file", filepath.Join(dir, callersFile), "--authorization-config", file},
		os.WriteFile(file, fmt.Appendf(nil, chainForm, serverEntry()+rbacEntry), 0o600)
}

// recovered returns when each replica answers a request of each path and answer rightly.
func (c *scene) recovered() error {
	picked := map[string]*request{}
	for _, r := range slices.Concat(c.mix.steady, c.mix.questions) {
		picked[r.Path+r.truth.during(time.Now(), time.Now()).String()] = r
	}
	for _, r := range picked {
		if err := c.answered(r, func(e *sender.Exchange) sender.Answer { return r.truth.during(e.Begin, e.End) }); err != nil {
			return err
		}
	}
	return nil
}

// agreed returns when each replica has given the new answer of a truth.
func (c *scene) agreed(of *truth, to sender.Answer) error {
	return c.answered(c.mix.about(of), func(*sender.Exchange) sender.Answer { return to })
}

// answered returns when each replica that is ready gives a right answer.
func (c *scene) answered(r *request, right func(*sender.Exchange) sender.Answer) error {
	return c.eachReplica(r.Name, func(ctx context.Context, using *http.Client, url string) error {
		got := sender.Send(ctx, using, url, &r.Request)
		if got.Answer&right(got) == 0 {
			return fmt.Errorf("the answer is %s, want %s: %w", got.Answer, right(got), got.Err)
		}
		return nil
	})
}

// says returns when each replica says in /permissions that a kind has a verb, or with "!" that it has not; "" is that there is no such kind.
func (c *scene) says(query, verb string) error {
	path := "/permissions?" + query
	return c.eachReplica(path, func(ctx context.Context, using *http.Client, url string) error {
		code, body, err := get(ctx, using, url+path)
		if err != nil {
			return err
		}
		wanted, not := strings.CutPrefix(verb, "!")
		if verb == "" && code == http.StatusNotFound || verb != "" && code == http.StatusOK && strings.Contains(body, wanted) != not {
			return nil
		}
		return fmt.Errorf("%d, want %q: %.300s", code, verb, body)
	})
}

// eachReplica returns when f returns no error for any replica that is ready. Each call has a client of its own.
func (c *scene) eachReplica(what string, f func(ctx context.Context, using *http.Client, url string) error) error {
	return c.await(what, func(ctx context.Context) error {
		for _, one := range c.fleet.all() {
			using := client(nil, c.callers.certified())
			err := f(ctx, using, "https://"+one.address)
			using.CloseIdleConnections()
			if err != nil {
				return fmt.Errorf("%s: %w", one, err)
			}
		}
		return nil
	})
}

// await calls f until it returns no error.
func (c *scene) await(what string, f func(context.Context) error) error {
	const limit = 5 * time.Minute // It is no deadline of fieldperm: a busy machine takes that long.
	var last error
	if err := wait.PollUntilContextTimeout(c.ctx, 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	}); err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(err, context.Cause(c.ctx), last))
	}
	return nil
}

// hold lets a state last for a while, so that requests meet it.
func (c *scene) hold() error { return c.sleep(*hold) }

func (c *scene) sleep(d time.Duration) error {
	select {
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-time.After(d):
		return nil
	}
}

// apply and remove change objects as the administrator.
func (c *scene) apply(manifest string) error {
	return c.kubectl(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

func (c *scene) remove(manifest string) error {
	return c.kubectl(manifest, "delete", "--wait=false", "-f", "-")
}

func (c *scene) kubectl(stdin string, args ...string) error {
	admin, err := c.s.User("admin", "system:masters")
	if err != nil {
		return err
	}
	if _, stderr, err := c.s.Kubectl(admin).Run(c.ctx, stdin, args...); err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args, err, stderr)
	}
	return nil
}

// get returns the status and the body.
func get(ctx context.Context, using *http.Client, url string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := using.Do(request)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	return response.StatusCode, string(body), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
