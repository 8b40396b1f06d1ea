package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const module = "github.com/fieldperm/fieldperm"

// commands are the commands that the demo needs in bin/; kubectl-fieldperm is for users that try things afterwards.
var commands = [...]string{"fieldperm-webhook", "fieldperm-gen", "kubectl-fieldperm"}

// checkout returns the root of fieldperm's checkout around the working directory.
func checkout(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("checkout: go list -m: %w: run the demo inside a checkout of fieldperm", err)
	}
	path, dir, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	if path != module {
		return "", fmt.Errorf("checkout: the module here is %q: run the demo inside a checkout of fieldperm", path)
	}
	return dir, nil
}

// build builds missing or old binaries: fieldperm's commands, and the control plane, which takes minutes, once.
func build(ctx context.Context, root string, out *printer) error {
	begin := time.Now()
	args := []string{"build: fieldperm", "-o", filepath.Join(root, "bin") + string(filepath.Separator)}
	for _, command := range commands {
		args = append(args, "./cmd/"+command)
	}
	// Use the settings of the Makefile, so that neither makes the other's binaries outdated.
	if err := runBuild(ctx, root, []string{"CGO_ENABLED=0"}, filepath.Join(root, "hack", "gobuild.sh"), args...); err != nil {
		return err
	}
	if err := runBuild(ctx, root, nil, filepath.Join(root, "test", "controlplane", "build.sh")); err != nil {
		return err
	}
	out.line("build: up to date after %s", time.Since(begin).Round(10*time.Millisecond))
	return nil
}

// runBuild prints the output of a build, because a build may take long.
func runBuild(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build: %s: %w", filepath.Base(name), err)
	}
	return nil
}
