package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// wrap writes DIR/bin/NAME, which notes its process number in DIR/pids/NAME for the watchdog and becomes binary.
// envtest does not tell the numbers of its processes. Runs with --help, by which envtest looks for flags of
// long gone versions before each start, end at once instead of costing a start of binary each. The collector of binary runs less
// often than usual: tests start many servers and are short of processor time, not of memory.
func wrap(dir, name, binary string) (string, error) {
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != --help ] || exit 0\necho $$ >%s\nexport GOGC=${GOGC:-300}\nexec %s \"$@\"\n",
		quoteShell(filepath.Join(dir, "pids", name)), quoteShell(binary))
	path := filepath.Join(dir, "bin", name)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		return "", fmt.Errorf("control plane: %w", err)
	}
	return path, nil
}

func quoteShell(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// killNoted kills the processes that are noted in dir/pids, for a start that is given up.
func killNoted(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "pids", "*"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// A number that is cut short while it is being written does not end in a newline.
		text, whole := strings.CutSuffix(string(content), "\n")
		if pid, err := strconv.Atoi(text); err == nil && whole && pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}
