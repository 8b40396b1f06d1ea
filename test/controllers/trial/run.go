//go:build controllers

package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	serviceAccountPrefix = "system:serviceaccount:"
	serviceAccountsGroup = "system:serviceaccounts"
	observations         = "permissionobservations.fieldperm.dev"
)

// Run is one run of a trial: a control plane with fieldperm, and the programs.
type Run struct {
	*World
	Stack *stack.Stack
	// Dir keeps the audit log, the logs of the programs and the end state.
	Dir string

	trial *Trial
	// adds is what the marker adds to what the users held before the proposals, in the second run.
	adds     string
	programs []*process
	ends     []func()
}

// Name is "update" in the first run and "granular" in the second.
func (r *Run) Name() string { return filepath.Base(r.Dir) }

// Open starts a control plane with fieldperm, and prepares it for the programs. dir keeps what the run leaves.
func (x *Trial) Open(t *testing.T, dir string) *Run {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Config{
		Bin:   Root(t, "bin"),
		Audit: true,
		// A granular verb counts a moment after it was granted.
		Arguments:   []string{"--decision-cache-ttl=500ms"},
		ServerFlags: x.ServerFlags,
	})
	Must(t, err)
	r := &Run{World: newWorld(t, s.Admin()), Stack: s, Dir: dir, trial: x}
	Must(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() {
		r.stop()
		Must(t, s.Stop())
	})
	Must(t, s.Apply(t.Context(), Root(t, "config", "crd")))
	if x.Prepare != nil {
		x.Prepare(r)
	}
	return r
}

// OnStop calls f at the end of the run, before the programs are ended.
func (r *Run) OnStop(f func()) { r.ends = append(r.ends, f) }

// stop ends the programs, and keeps the audit log.
func (r *Run) stop() {
	for _, end := range r.ends {
		end()
	}
	for _, p := range r.programs {
		p.stop()
	}
	r.ends, r.programs = nil, nil
	if log, err := os.ReadFile(r.Stack.AuditLog()); err == nil {
		_ = os.WriteFile(filepath.Join(r.Dir, "audit.log"), log, 0o600)
	}
}

// User returns a user of the control plane. A ServiceAccount has its groups.
func (r *Run) User(name string) *cluster.User {
	r.T.Helper()
	user, err := r.Stack.User(name, groupsOf(name)...)
	Must(r.T, err)
	return user
}

func groupsOf(user string) []string {
	account, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return nil
	}
	namespace, _, _ := strings.Cut(account, ":")
	return []string{serviceAccountsGroup, serviceAccountsGroup + ":" + namespace}
}

// Port returns a free port.
func (r *Run) Port() int {
	r.T.Helper()
	port, err := cluster.FreePort()
	Must(r.T, err)
	return port
}

// Program is a program to start.
type Program struct {
	// Name is the name of its log file.
	Name string
	Path string
	Args []string
	// Env has further variables, NAME=VALUE.
	Env []string
	// Health is the address that answers 200 when the program works. "" does not wait.
	Health string
}

// process is a running program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Launch starts a program, and waits until it is healthy. The programs end with the run. An argument of the program must have the directory of
// the stack in it, as a kubeconfig has: the watchdog of the stack ends only such processes.
func (r *Run) Launch(p Program) {
	r.T.Helper()
	log, err := os.Create(filepath.Join(r.Dir, p.Name+".log"))
	Must(r.T, err)
	defer log.Close() //nolint:errcheck // Never written to by this process.
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(append(os.Environ(), "GOGC=300"), p.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	Must(r.T, cmd.Start())
	running := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // Its log has the reason.
		close(running.done)
	}()
	r.programs = append(r.programs, running)
	Must(r.T, os.WriteFile(filepath.Join(r.Stack.Dir(), "pids", p.Name), []byte(fmt.Sprintln(cmd.Process.Pid)), 0o600))
	if p.Health == "" {
		return
	}
	r.Await(p.Name+" is healthy", Patience, func(ctx context.Context) (bool, string) {
		select {
		case <-running.done:
			r.T.Fatalf("%s has ended:\n%s", p.Name, cluster.LogTail(log.Name()))
		default:
		}
		err := healthy(ctx, p.Health)
		return err == nil, fmt.Sprint(err)
	})
}

// observe starts the observation.
func (r *Run) observe() {
	r.T.Helper()
	o := &v1alpha1.PermissionObservation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PermissionObservationKind},
		ObjectMeta: metav1.ObjectMeta{Name: r.trial.Name},
		Spec: v1alpha1.PermissionObservationSpec{
			Subjects:  r.trial.Observe,
			Resources: []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	Must(r.T, err)
	client, name := r.On(observations, r.trial.Name)
	r.Again("create the observation", func() error {
		_, err := client.Create(r.T.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		return err
	})
	r.Until(observations, name, "status.conditions[Observing].status", "True")
}

// observed returns the status of the observation, and fails the test if it is not complete. fieldperm writes the status once more when it ends.
func (r *Run) observed() *v1alpha1.PermissionObservationStatus {
	r.T.Helper()
	Must(r.T, r.Stack.StopWebhook())
	client, name := r.On(observations, r.trial.Name)
	object, err := client.Get(r.T.Context(), name, metav1.GetOptions{})
	Must(r.T, err)
	o := &v1alpha1.PermissionObservation{}
	Must(r.T, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, o))
	s := &o.Status
	if s.Failed > 0 || s.Omitted > 0 || len(s.Gaps) > 0 {
		r.T.Errorf("the observation is not complete: %d failed, %d omitted, gaps %v", s.Failed, s.Omitted, s.Gaps)
	}
	r.T.Logf("the observation has %d writes in %d rows", s.Writes, len(s.Resources))
	return s
}

// await calls f until it returns true, and fails the test with what was awaited otherwise.
func await(t *testing.T, what string, limit time.Duration, f func(ctx context.Context) (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		ok, state := f(t.Context())
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s: %s", limit, what, state)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
