//go:build integration

package oracle

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// shortWrites and shortTime bound the part of the oracle that runs with the other tests, in each topology.
const (
	shortWrites = 2500
	shortTime   = 50 * time.Second
)

// TestOracle_StoredObjectsEqualThePermittedChanges runs the oracle in both topologies. "make test-oracle" runs it for a longer time.
func TestOracle_StoredObjectsEqualThePermittedChanges(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	t.Setenv("GOGC", "300") // It is for the processes that the test starts.
	bin, err := e2e.Build()
	if err != nil {
		t.Fatal(err)
	}
	writes, topologies := shortWrites, map[string]stack.Topology{"static": stack.Static, "objects": stack.REST}
	if testing.Short() {
		writes /= 8
		delete(topologies, "objects")
	}
	for name, topology := range topologies {
		t.Run(name, func(t *testing.T) {
			report, err := Run(t.Context(), Config{Bin: bin, Root: filepath.Dir(bin), Writes: writes, Epoch: writes / 2, Seed: 3617, Topology: topology, For: shortTime})
			if report != nil {
				t.Log(report.Text)
				t.Log(report.Last)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Failures {
				t.Error(f)
			}
			for _, what := range report.Unjudged {
				t.Errorf("not judged: %s", what)
			}
		})
	}
}
