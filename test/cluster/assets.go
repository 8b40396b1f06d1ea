package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	// assetsVariable is the environment variable with the directory of the binaries. Every project with envtest uses this name.
	assetsVariable = "KUBEBUILDER_ASSETS"

	moduleLine = "module github.com/fieldperm/fieldperm"
)

// Assets returns the directory of kube-apiserver, etcd and kubectl: $KUBEBUILDER_ASSETS if set, otherwise bin/controlplane of the checkout
// around the working directory. It is an error if one of the three is missing.
func Assets() (string, error) {
	dir := os.Getenv(assetsVariable)
	cure := fmt.Sprintf("put them there, or unset $%s and run %q", assetsVariable, "make controlplane")
	if dir == "" {
		root, err := checkout()
		if err != nil {
			return "", err
		}
		dir, cure = filepath.Join(root, "bin", "controlplane"), fmt.Sprintf("run %q", "make controlplane")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("control plane: directory %q: %w", dir, err)
	}

	var missing []string
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("control plane: %w", err)
		}
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			missing = append(missing, fmt.Sprintf("%q", name))
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("control plane: %q lacks %s: %s", dir, strings.Join(missing, ", "), cure)
	}
	return dir, nil
}

// ServerVersion returns the version of the kube-apiserver among the assets.
func ServerVersion(ctx context.Context) (*version.Version, error) {
	said, err := apiServerSays(ctx, "--version")
	if err != nil {
		return nil, err
	}
	return version.ParseSemantic(strings.TrimSpace(strings.TrimPrefix(said, "Kubernetes ")))
}

// Plugins returns those of the names of admission plugins that the kube-apiserver among the assets has.
func Plugins(ctx context.Context, names ...string) ([]string, error) {
	help, err := apiServerSays(ctx, "--help")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(help, name) }), nil
}

// apiServerSays returns what the kube-apiserver among the assets prints with a flag.
func apiServerSays(ctx context.Context, flag string) (string, error) {
	dir, err := Assets()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, APIServer)
	said, err := exec.CommandContext(ctx, program, flag).Output() //nolint:gosec // The program that the tests run.
	if err != nil {
		return "", fmt.Errorf("control plane: %s %s: %w", program, flag, err)
	}
	return string(said), nil
}

// checkout walks up from the working directory to the root of fieldperm's module. The path of this source file cannot be used: a binary may
// be built with -trimpath.
func checkout() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("control plane: working directory: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(mod), "\n"); err == nil && strings.TrimSpace(first) == moduleLine {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("control plane: %q is not inside a checkout of fieldperm: run inside one, or set $%s", wd, assetsVariable)
		}
	}
}
