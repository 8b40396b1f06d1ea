//go:build controllers

package trial

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

var (
	update  = flag.Bool("update", false, "write the shipped roles, and the table of their README.md")
	keep    = flag.String("keep", "", "a directory for the audit logs, the logs of the programs, the proposals and the end states")
	shuffle = flag.Uint64("shuffle", 0, "play the parts of a scenario in another order, which this number chooses")
	reuse   = flag.Bool("reuse", false, "take the proposals and the end state of the first run from the directory of -keep")
)

// Patience is how long a trial waits for the programs. A busy machine takes minutes for what takes seconds.
const Patience = 6 * time.Minute

// Trial is the moving of the users of some programs from update to granular verbs. Name, Observe and Play are required.
type Trial struct {
	// Name is the name of the PermissionObservation, and of a directory.
	Name string
	// Observe are the subjects of the PermissionObservation. Each user of them that updates something is tightened. A user or a
	// ServiceAccount that is named and that updates nothing fails the test.
	Observe []v1alpha1.Subject
	// Flags returns further flags of kubectl fieldperm tighten for a user, for example --generalize. Nil: none.
	Flags func(user string) []string
	// ServerFlags are further flags of kube-apiserver.
	ServerFlags map[string][]string
	// Prepare makes what the programs need: kinds, namespaces, roles with update. It is called before the programs start, in both runs.
	Prepare func(r *Run)
	// Start starts the programs.
	Start func(r *Run)
	// Play acts as the people and waits for what the programs make of it.
	Play func(r *Run)
	// Ignored are resources that are no part of the end state, "events" or "leases.coordination.k8s.io", besides those that no trial has.
	Ignored []string
	// Volatile removes from an object what differs from run to run. Nil: nothing.
	Volatile func(o *unstructured.Unstructured)
	// Differing are texts that differ from run to run in any object.
	Differing []Differing
	// Foreign are JSON merge patches of fields that no program writes, tried before those of all trials.
	Foreign []string
	// Proposed is called with the rules that the proposal for a user adds. Nil: nothing.
	Proposed func(t *testing.T, user string, rules []rbacv1.PolicyRule)
	// Roles is the directory of the shipped roles, relative to the root of the repository. "" for none.
	Roles string
}

// Prove makes the trial. It fails the test if anything is refused in the second run, if an end state differs, or if a write outside the
// fields of a user is not refused.
func (x *Trial) Prove(t *testing.T) {
	if *keep == "" {
		*keep = t.TempDir()
	}
	dir, err := filepath.Abs(filepath.Join(*keep, x.Name))
	Must(t, err)
	first := filepath.Join(dir, "update")
	if !*reuse {
		x.withUpdate(t, first)
	}
	proposals := keptProposals(t, first)
	if len(proposals) == 0 {
		t.Fatalf("no user of the trial %q updated anything", x.Name)
	}
	x.named(t, proposals)
	x.proposed(t, proposals)
	r := x.withProposals(t, filepath.Join(dir, "granular"), proposals)
	rows := r.rows(proposals)
	text := table(rows)
	t.Logf("with granular verbs only:\n%s", text)
	for i := range rows {
		for _, what := range rows[i].refused {
			t.Errorf("refused: %s: %s", rows[i].user, what)
		}
	}
	if diff := compare(state(t, first, proposals), state(t, r.Dir, proposals)); diff != "" {
		t.Errorf("the end states differ: - with update, + granular:\n%s", diff)
	}
	x.ship(t, proposals, text, r.adds)
}

// withUpdate is the first run, with update and patch, and the proposals for it. All of it is kept in a directory.
func (x *Trial) withUpdate(t *testing.T, dir string) {
	begin := time.Now()
	r := x.Open(t, dir)
	r.observe()
	x.play(r)
	for user, what := range r.refusals() {
		t.Logf("refused with update, too: %s: %q", user, what)
	}
	r.stop()
	x.applyShipped(r)
	r.propose(r.observed())
	Must(t, r.Stack.Stop())
	t.Logf("with update: %s", time.Since(begin).Round(time.Second))
}

// withProposals is the second run, with the proposals applied.
func (x *Trial) withProposals(t *testing.T, dir string, proposals []*proposal) *Run {
	begin := time.Now()
	r := x.Open(t, dir)
	r.adds = r.markerAdds(proposals)
	t.Logf("what the marker adds:\n%s", r.adds)
	r.apply(proposals)
	x.play(r)
	t.Logf("with granular verbs: %s", time.Since(begin).Round(time.Second))
	return r
}

func (x *Trial) play(r *Run) {
	if x.Start != nil {
		x.Start(r)
	}
	x.Play(r)
	r.settle()
	r.keepState()
}

func (x *Trial) proposed(t *testing.T, proposals []*proposal) {
	t.Helper()
	if x.Proposed == nil {
		return
	}
	for _, p := range proposals {
		var all []rbacv1.PolicyRule
		add, _ := p.split()
		for _, o := range add {
			all = append(all, rules(t, o)...)
		}
		x.Proposed(t, p.user, all)
	}
}

// named fails the test for users that the trial names and that have no proposal.
func (x *Trial) named(t *testing.T, proposals []*proposal) {
	t.Helper()
	for _, s := range x.Observe {
		user := username(s)
		if user != "" && !slices.ContainsFunc(proposals, func(p *proposal) bool { return p.user == user }) {
			t.Errorf("%s updated nothing", user)
		}
	}
}

// username returns the name of a user or a ServiceAccount, "" for a group.
func username(s v1alpha1.Subject) string {
	switch s.Kind {
	case "User":
		return s.Name
	case "ServiceAccount":
		return serviceAccountPrefix + s.Namespace + ":" + s.Name
	}
	return ""
}

// Root returns a path in the repository.
func Root(t *testing.T, path ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	Must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "config", "crd")); err == nil {
			return filepath.Join(append([]string{dir}, path...)...)
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run in the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// Shuffle changes the order of parts of a scenario that do not depend on each other, if the flag -shuffle says so.
func Shuffle[T any](parts []T) {
	if *shuffle == 0 {
		return
	}
	rand.New(rand.NewPCG(*shuffle, 0)).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] }) //nolint:gosec // The order is no secret.
}

// Must fails the test for an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Updating reports whether the test writes what it otherwise compares.
func Updating() bool { return *update }
