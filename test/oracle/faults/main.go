// Command faults tests the storage oracle itself: it puts known faults back into fieldperm, one at a time, and reports the number of writes
// after which the oracle finds each. It is "make test-oracle-faults".
package main

import (
	"cmp"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/mutation/edit"
	"github.com/fieldperm/fieldperm/test/oracle"
	"github.com/fieldperm/fieldperm/test/stack"
)

//go:embed faults.yaml
var listYAML []byte

// fault is one way to break fieldperm that lets a forbidden write be stored.
type fault struct {
	// Name says what the broken code does.
	Name string `json:"name"`
	// Edits break it.
	Edits []edit.Edit `json:"edits"`
	// Sign matches the report of a failure that this fault causes, and no other: (?s) is set.
	Sign string `json:"sign"`
	// Only and Definitions restrict the oracle; without them it tests everything.
	Only        []string `json:"only,omitempty"`
	Definitions int      `json:"definitions,omitempty"`
	// Writes is the maximum number of writes.
	Writes int `json:"writes"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	match := flag.String("run", "", "only faults whose names match")
	seed := flag.Uint64("seed", 1, "where chance begins")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	wanted, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	list, err := read()
	if err != nil {
		return err
	}
	fmt.Println("| fault | found after | by |\n|---|---|---|")
	missed := 0
	for i := range list {
		f := &list[i]
		if !wanted.MatchString(f.Name) {
			continue
		}
		found, err := f.look(ctx, root, *seed)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if found == nil {
			missed++
			fmt.Printf("| %s | NOT in %d writes | |\n", f.Name, f.Writes)
			continue
		}
		shown := cmp.Or(found.Small, found)
		fmt.Printf("| %s | %d writes | `%s %s` |\n", f.Name, found.Writes, shown.Request.Method, shown.Request.Endpoint)
	}
	if missed > 0 {
		return fmt.Errorf("%d faults were not found", missed)
	}
	return nil
}

// read returns the list of faults.
func read() ([]fault, error) {
	var list []fault
	if err := yaml.UnmarshalStrict(listYAML, &list); err != nil {
		return nil, fmt.Errorf("faults.yaml: %w", err)
	}
	return list, nil
}

// look builds the broken fieldperm and runs the oracle until it finds the fault.
func (f *fault) look(ctx context.Context, root string, seed uint64) (*oracle.Failure, error) {
	dir, err := os.MkdirTemp("", "fieldperm-fault-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // The rest is in the system's directory for temporary files.
	overlay, err := f.overlay(root, dir)
	if err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", dir+string(filepath.Separator), "./cmd/fieldperm-webhook", "./cmd/fieldperm-gen") //nolint:gosec // Our own code.
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w: %s", err, out)
	}
	sign, err := regexp.Compile("(?s)" + f.Sign)
	if err != nil {
		return nil, err
	}
	var found *oracle.Failure
	_, err = oracle.Run(ctx, oracle.Config{
		Log: os.Stderr, Bin: dir, Root: root, Writes: f.Writes, Epoch: 600, Seed: seed, Topology: stack.REST, Only: f.Only, Definitions: f.Definitions, MaxFound: f.Writes,
		Enough: func(one *oracle.Failure) bool {
			if found == nil && sign.MatchString(one.String()) {
				found = one
			}
			return found != nil
		},
	})
	return found, err
}

// overlay writes the broken files, and the list that makes the go command read them.
func (f *fault) overlay(root, dir string) (string, error) {
	files, err := edit.NewTree(root).Apply(f.Edits...)
	if err != nil {
		return "", err
	}
	return files.Overlay(root, dir)
}
