//go:build controllers

package controllers

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/stack"
)

var (
	update = flag.Bool("update", false, "write config/roles/kubernetes-1.37 from the first run")
	keep   = flag.String("keep", "", "a directory for the audit logs, the logs of the controllers and the end states")
	reuse  = flag.Bool("reuse", false, "take the evidence and the end state of the first run from the directory of -keep")
)

// patience is how long the test waits for the controllers. A busy machine takes minutes for what takes seconds.
const patience = 6 * time.Minute

// scheduler is the user of kube-scheduler. The controllers of kube-controller-manager are ServiceAccounts of kube-system.
const (
	scheduler        = "system:kube-scheduler"
	controllersGroup = "system:serviceaccounts:kube-system"
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// run is one run of the scenario.
type run struct {
	t     *testing.T
	name  string
	stack *stack.Stack
	world *world
	dir   string
	// controllers are the processes of kube-controller-manager and kube-scheduler.
	controllers []*program
	kubelets    *kubelets
}

// start starts a control plane with fieldperm, without controllers.
func start(t *testing.T, name string) *run {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Config{
		Bin:   binaries,
		Audit: true,
		// A granular verb counts a moment after it was granted.
		Arguments: []string{"--decision-cache-ttl=500ms"},
		ServerFlags: map[string][]string{
			// The plugin ServiceAccount is on here: kube-controller-manager makes what it needs.
			"disable-admission-plugins":              {"AlwaysPullImages"},
			"enable-admission-plugins":               {"OwnerReferencesPermissionEnforcement"},
			"default-unreachable-toleration-seconds": {"2"},
			"default-not-ready-toleration-seconds":   {"2"},
			"service-cluster-ip-range":               {"10.96.0.0/16"},
			"allow-privileged":                       {"true"},
		},
	})
	must(t, err)
	if *keep == "" {
		*keep = t.TempDir()
	}
	r := &run{t: t, name: name, stack: s, dir: filepath.Join(*keep, name)}
	must(t, os.MkdirAll(r.dir, 0o700))
	t.Cleanup(func() {
		r.stop()
		must(t, s.Stop())
	})
	r.world = newWorld(t, s)
	must(t, s.Apply(t.Context(), filepath.Join("..", "..", "config", "crd")))
	return r
}

// stop ends the controllers and the kubelets, and keeps the audit log.
func (r *run) stop() {
	if r.kubelets != nil {
		r.kubelets.stop()
		r.kubelets = nil
	}
	for _, p := range r.controllers {
		p.stop()
	}
	r.controllers = nil
	if log, err := os.ReadFile(r.stack.AuditLog()); err == nil {
		_ = os.WriteFile(filepath.Join(r.dir, "audit.log"), log, 0o600)
	}
}

// TestControllers runs the scenario twice, each time in a new cluster: first with update, as bootstrapped, under an observation; then with the
// granular verbs that the observation recorded, and without update and patch.
func TestControllers(t *testing.T) {
	if !*reuse {
		begin := time.Now()
		r := start(t, "update")
		r.observe()
		r.startControllers()
		r.play()
		r.settle()
		r.keepState()
		for user, what := range r.refusals() {
			t.Logf("refused with update, too: %s: %q", user, what)
		}
		r.stop()
		e := r.evidence()
		r.recorded(e)
		e.keep(t, r.dir)
		must(t, r.stack.Stop())
		t.Logf("with update: %s, %d writes", time.Since(begin).Round(time.Second), e.writes())
	}

	begin := time.Now()
	second := start(t, "granular")
	first := filepath.Join(filepath.Dir(second.dir), "update")
	roles := tighten(t, second.clusterRoles(), kept(t, first), second.served())
	lacking := union(t, roles)
	second.replaceRoles(roles)
	second.startControllers()
	second.play()
	second.settle()
	second.keepState()
	refused := second.refusals()
	again := second.evidence()
	t.Logf("granular: %s, %d writes", time.Since(begin).Round(time.Second), again.writes())

	if diff := compare(state(t, first), state(t, second.dir)); diff != "" {
		t.Errorf("the end states differ: - with update, + granular:\n%s", diff)
	}
	for user := range refused {
		for _, what := range refused[user] {
			t.Errorf("refused: %s: %s", user, what)
		}
	}
	outside := second.writeOutside(roles, again)
	printTable(t, again, roles, refused, outside)
	ship(t, roles, lacking)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// await calls f until it returns true, and reports what was awaited otherwise.
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
