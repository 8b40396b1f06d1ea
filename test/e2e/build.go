package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Build returns the directory of fieldperm's commands. That is $FIELDPERM_BIN, which the Makefile sets after it built them. Without it,
// Build builds them into bin/ of the checkout, once in each process.
var Build = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("FIELDPERM_BIN"); bin != "" {
		return bin, nil
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("build: go env: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(out)))
	bin := filepath.Join(root, "bin")
	cmd := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./cmd/fieldperm-webhook", "./cmd/fieldperm-gen", "./cmd/kubectl-fieldperm")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, output)
	}
	return bin, nil
})
