package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// watchdogScript waits until its standard input closes, which the kernel does when the program that holds the other
// end ends, however it ends. Then it kills the process groups noted in DIR/pids and removes DIR ($1).
//
// The parent-death signal of Linux would not do: envtest sets the attributes of its processes itself, and the signal
// follows the thread that started the process, which the Go runtime may end long before the program.
//
// A noted process may be gone and its number taken over: only one whose command line names DIR is killed. A file
// that a dying process writes may defeat rm, so that it is tried again.
const watchdogScript = `
trap '' HUP INT TERM
while read -r _; do :; done
for file in "$1"/pids/*; do
	[ -f "$file" ] || continue
	pid=$(cat "$file")
	command=$(ps -ww -o args= -p "$pid" 2>/dev/null || tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)
	case $command in *"$1"*) kill -KILL "-$pid" ;; esac
done
tries=0
until rm -rf "$1" || [ "$tries" -ge 20 ]; do
	tries=$((tries + 1))
	sleep 1
done
`

// watchdog is a process that cleans up after this one. See watchdogScript.
type watchdog struct {
	alive io.Closer // this process's end of the pipe
	cmd   *exec.Cmd
}

// guard starts a watchdog over dir, an absolute path.
func guard(dir string) (*watchdog, error) {
	// Both ends are close-on-exec: etcd and kube-apiserver do not inherit them and keep the pipe open.
	input, alive, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	defer input.Close() //nolint:errcheck // The watchdog has its own copy.
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "fieldperm-watchdog", dir)
	cmd.Stdin = input
	// Out of the terminal's foreground group: Ctrl-C must not end it before it has done its work.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = alive.Close()
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	return &watchdog{alive: alive, cmd: cmd}, nil
}

// release lets the watchdog do its work now and waits for the end of it.
func (w *watchdog) release() error {
	if err := w.alive.Close(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	return nil
}

// wrap writes DIR/bin/NAME, which notes its process number in DIR/pids/NAME for the watchdog and becomes binary.
// envtest does not tell the numbers of its processes. Runs with --help, by which envtest looks for flags of
// long gone versions before each start, end at once instead of costing a start of binary each.
func wrap(dir, name, binary string) (string, error) {
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" != --help ] || exit 0\necho $$ >%s\nexec %s \"$@\"\n",
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
