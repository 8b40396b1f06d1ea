package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/jsonpath"

	"github.com/fieldperm/fieldperm/test/stack"
)

// stepTimeout limits one command.
const stepTimeout = 60 * time.Second

// fieldpermRefuses is the text that the API server writes before fieldperm's message.
const fieldpermRefuses = `.fieldperm.dev" denied the request: `

// result is the result of a step.
type result struct {
	// allowed says whether the command succeeded.
	allowed bool
	// message is the first line of its output, or of an error if it failed.
	message string
	// covering are the verbs by which fieldperm allowed the request, "" if it was not asked or refused.
	covering string
	// faults are the differences from the expectation.
	faults []string
}

func (r *result) asExpected() bool { return len(r.faults) == 0 }

func (r *result) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// manifest is the file that makes kube-apiserver ask fieldperm about writes.
const manifest = "admission/fieldperm.yaml"

// act stops or starts fieldperm, or removes the enforcement, and returns when the change has taken effect.
func (st *stage) act(ctx context.Context, action string) error {
	switch action {
	case actionStop:
		return st.stack.StopWebhook()
	case actionStart:
		if err := st.stack.StartWebhook(ctx); err != nil {
			return err
		}
		return st.stack.AwaitBarriers(ctx)
	case actionUnenforce:
		if err := st.takeAway(ctx); err != nil {
			return err
		}
		return st.awaitNotProven(ctx)
	case actionEnforce:
		if err := st.putBack(ctx); err != nil {
			return err
		}
		return st.stack.AwaitReplica(ctx, 0)
	}
	return fmt.Errorf("action %q is not known", action)
}

// takeAway takes away what makes kube-apiserver ask fieldperm about writes: the file, or the object, which the guard protects.
func (st *stage) takeAway(ctx context.Context) error {
	if st.stack.Topology() == stack.Static {
		return os.Rename(st.stack.File(manifest), filepath.Join(st.stack.Dir(), "away.yaml"))
	}
	if err := st.kubectl(ctx, "delete", "validatingadmissionpolicybinding", "fieldperm-guard"); err != nil {
		return err
	}
	// The API server takes a moment to see that the guard is gone.
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		return st.kubectl(ctx, "patch", "validatingwebhookconfiguration", stack.Configuration, "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/rules","value":[]}]`) == nil, nil
	})
}

// putBack undoes takeAway.
func (st *stage) putBack(ctx context.Context) error {
	if st.stack.Topology() == stack.Static {
		return os.Rename(filepath.Join(st.stack.Dir(), "away.yaml"), st.stack.File(manifest))
	}
	for _, name := range []string{"webhooks.yaml", "guard.yaml"} {
		if err := st.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", st.stack.File(name)); err != nil {
			return err
		}
	}
	return nil
}

// awaitNotProven returns when fieldperm has noticed that enforcement is not proven.
func (st *stage) awaitNotProven(ctx context.Context) error {
	client, err := st.stack.WebhookClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, st.stack.WebhookURL()+"/readyz/enforcement", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, err
		}
		return response.StatusCode != http.StatusOK, response.Body.Close()
	})
}

// play plays one step and compares. The error is an error of the demo, not a wrong result.
func (st *stage) play(ctx context.Context, story *Story, step *Step) (*result, error) {
	before, err := st.get(ctx, story, step.Object)
	if err != nil {
		return nil, err
	}
	stdout, stderr, err := st.shell(ctx, story, step)
	if err != nil {
		var exit *exec.ExitError
		if ctx.Err() != nil || !errors.As(err, &exit) {
			return nil, err
		}
	}
	after, getErr := st.get(ctx, story, step.Object)
	if getErr != nil {
		return nil, getErr
	}
	r := &result{allowed: err == nil}
	if r.allowed {
		r.message = firstLine(stdout)
	} else {
		r.message = firstLine(stderr)
	}
	if len(step.Allowed) > 0 {
		r.judgeAllowed(step, before, after)
	} else {
		r.judgeRefused(step, stderr, before, after)
	}
	event, err := st.audit.last(ctx, st.players[step.User].Name)
	if err != nil {
		return nil, err
	}
	r.covering = event.covering()
	if want := step.Code; want != 0 && event.ResponseStatus.Code != want {
		r.fault("the server's code is %d, want %d", event.ResponseStatus.Code, want)
	}
	return r, nil
}

// judgeAllowed checks that the object has the requested values, and did not have all of them before.
func (r *result) judgeAllowed(step *Step, before, after *unstructured.Unstructured) {
	if !r.allowed {
		r.fault("is refused")
		return
	}
	changed := false
	for _, path := range slices.Sorted(maps.Keys(step.Allowed)) {
		was, err1 := look(before, path)
		is, err2 := look(after, path)
		if err := errors.Join(err1, err2); err != nil {
			r.fault("%s: %v", path, err)
			continue
		}
		if want := step.Allowed[path]; is != want {
			r.fault("%s is %q, want %q", path, is, want)
		}
		changed = changed || was != is || before == nil
	}
	if !changed {
		r.fault("%s is as before: the step shows nothing", step.Object)
	}
}

// judgeRefused checks which component refused and why, and that the object has not changed.
func (r *result) judgeRefused(step *Step, stderr string, before, after *unstructured.Unstructured) {
	if r.allowed {
		r.fault("is allowed")
	}
	if strings.Contains(stderr, fieldpermRefuses) != (step.By == byFieldperm) {
		r.fault("the refusal is not by %s", step.By)
	}
	for _, part := range step.Refused {
		if !strings.Contains(stderr, part) {
			r.fault("the message lacks %q", part)
		}
	}
	if version(before) != version(after) {
		r.fault("%s has changed", step.Object)
	}
}

func version(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// get reads resource/name as the administrator; nil if the object does not exist.
func (st *stage) get(ctx context.Context, story *Story, object string) (*unstructured.Unstructured, error) {
	kind, name, _ := strings.Cut(object, "/")
	resource, err := st.mapper.ResourceFor(schema.GroupVersionResource{Resource: kind})
	if err != nil {
		return nil, err
	}
	gvk, err := st.mapper.KindFor(resource)
	if err != nil {
		return nil, err
	}
	mapping, err := st.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	client := dynamic.ResourceInterface(st.objects.Resource(resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = st.objects.Resource(resource).Namespace(story.Name)
	}
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	return found, err
}

// look returns the value at a JSON path; "" if there is none.
func look(object *unstructured.Unstructured, path string) (string, error) {
	if object == nil {
		return "", nil
	}
	compiled := jsonpath.New("step").AllowMissingKeys(true)
	if err := compiled.Parse("{" + path + "}"); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err := compiled.Execute(&out, object.Object)
	return out.String(), err
}

// shell runs a step's command as its user would type it.
func (st *stage) shell(ctx context.Context, story *Story, step *Step) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", step.Run) //nolint:gosec // The stories are compiled in.
	cmd.Dir = st.dir(story)
	home := filepath.Join(st.stack.Dir(), "home")
	cmd.Env = append(os.Environ(),
		"PATH="+st.path()+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+st.players[step.User].Kubeconfig,
		// kubectl's caches and preferences are in the demo's directory, not in that of the user that runs it.
		"HOME="+home, "KUBECACHEDIR="+filepath.Join(home, "cache"), "KUBERC=off")
	// The shell has a process group of its own, so that all its processes end with ctx.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), errs.String(), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
