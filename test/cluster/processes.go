package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// wrap writes DIR/bin/NAME, which writes its process number to DIR/pids/NAME for the watchdog and then executes binary. envtest does not
// return the numbers of its processes. envtest runs binary with --help before each start to look for flags of very old versions: the
// wrapper ends such runs at once, because each would cost a start of binary. The garbage collector of binary runs less often than usual:
// tests start many servers and lack processor time, not memory.
func wrap(dir, name, binary string) (string, error) {
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != --help ] || exit 0\necho $$ >%s\nexport GOGC=${GOGC:-300}\nexec %s \"$@\"\n",
		quoteShell(filepath.Join(dir, "pids", name)), quoteShell(binary))
	path := filepath.Join(dir, "bin", name)
	// A process that another goroutine forks meanwhile would hold the file open for writing: "text file busy".
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(script), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return "", fmt.Errorf("control plane: %w", err)
	}
	return path, nil
}

func quoteShell(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// killNoted kills the processes that are noted in dir/pids, after a start was given up.
func killNoted(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "pids", "*"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// A number that is not completely written yet does not end in a newline.
		text, whole := strings.CutSuffix(string(content), "\n")
		if pid, err := strconv.Atoi(text); err == nil && whole && pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
}
