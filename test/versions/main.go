// Command versions runs fieldperm on minor releases of Kubernetes: those of its arguments, or all that test/controlplane/versions has, and the newest. It builds
// what is missing, and prints a table. See make test-versions.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// part is a command that is run on each minor.
type part struct {
	name string
	args []string
	// older are further arguments for minors before the newest.
	older []string
}

var integration = []string{"test", "-vet=off", "-ldflags=-w", "-tags", "integration", "-count=1", "-timeout=10m"}

func goTest(path, run string) []string {
	return append(slices.Clone(integration), "-run", run, path)
}

// update makes -update an argument of the parts that have recordings.
var update = flag.Bool("update", false, "write the differences from the newest minor")

func parts() []part {
	recording := []string{"-args", "-older"}
	if *update {
		recording = append(recording, "-update")
	}
	return []part{
		{name: "install", args: goTest("./test/deploy", "^TestObjects_AreTakenByAnAPIServer$")},
		{name: "demo", args: []string{"run", "./test/demo"}},
		{name: "kinds", args: goTest("./internal/sources", "^TestA2_EveryKindThatTheAPIServerServesIsKnown$")},
		{name: "corpus", args: goTest("./test/corpus", "^TestCluster_Scenarios$")},
		{name: "endpoints", args: goTest("./test/endpoints", "^TestW2_EndpointsAreAsObserved$"), older: recording},
		{name: "written fields", args: goTest("./test/fields", "^TestD13_WritesAreAsRecorded$"), older: recording},
	}
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "versions: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string) error {
	newest, all, err := minors()
	if err != nil {
		return err
	}
	if len(only) == 0 {
		only = all
	}
	table := []string{"| minor | " + strings.Join(names(), " | ") + " | took |", "|---|" + strings.Repeat("---|", len(parts())+1)}
	failed := 0
	for _, minor := range only {
		if !slices.Contains(all, minor) {
			return fmt.Errorf("%q is none of %s: add it with test/controlplane/versions/make.sh", minor, strings.Join(all, ", "))
		}
		assets, err := build(ctx, minor)
		if err != nil {
			return err
		}
		began, row := time.Now(), "| "+minor+" |"
		for _, p := range parts() {
			args := p.args
			if minor != newest {
				args = slices.Concat(p.args, p.older)
			}
			begin := time.Now()
			err := command(ctx, assets, args)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			result := "ok"
			if err != nil {
				result, failed = "FAILED", failed+1
			}
			fmt.Printf("versions: %s: %s: %s, %s\n", minor, p.name, result, time.Since(begin).Round(time.Second))
			row += " " + result + " |"
		}
		table = append(table, row+" "+time.Since(began).Round(time.Second).String()+" |")
	}
	fmt.Println("\n" + strings.Join(table, "\n"))
	if failed > 0 {
		return fmt.Errorf("%d parts failed", failed)
	}
	return nil
}

func names() []string {
	var out []string
	for _, p := range parts() {
		out = append(out, p.name)
	}
	return out
}

// minors returns the newest minor and all, the oldest first.
func minors() (newest string, all []string, err error) {
	dirs, err := filepath.Glob("test/controlplane/versions/1.*")
	if err != nil {
		return "", nil, err
	}
	for _, dir := range dirs {
		all = append(all, filepath.Base(dir))
	}
	mod, err := os.ReadFile("test/controlplane/go.mod")
	if err != nil {
		return "", nil, fmt.Errorf("%w: run it in the root of the checkout", err)
	}
	_, version, _ := strings.Cut(string(mod), "k8s.io/kubernetes v")
	numbers := strings.SplitN(version, ".", 3)
	if len(numbers) != 3 {
		return "", nil, fmt.Errorf("test/controlplane/go.mod has no version of k8s.io/kubernetes")
	}
	newest = numbers[0] + "." + numbers[1]
	return newest, append(all, newest), nil
}

// build builds the control plane of a minor, and returns its directory.
func build(ctx context.Context, minor string) (string, error) {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "build", "controlplane", "K8S="+minor) //nolint:gosec // A minor that there is.
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("control plane of %s: %w", minor, err)
	}
	return filepath.Abs(filepath.Join("bin", "controlplane-"+minor))
}

// command runs go with the control plane of a minor, and prints what it says if it fails.
func command(ctx context.Context, assets string, args []string) error {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // The parts.
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "FIELDPERM_BIN="+bin, "CGO_ENABLED=0", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	// The control planes end by themselves.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		_, _ = os.Stdout.Write(said.Bytes())
		return err
	}
	return nil
}
