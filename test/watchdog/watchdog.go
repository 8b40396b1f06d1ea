// Package watchdog ends the processes that a program started if the program ends without doing so itself: by a panic, a timeout of go test,
// or SIGKILL. Start at [Guard].
package watchdog

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// script waits until its standard input closes. The kernel closes it when the program with the other end ends, for any reason. Then it
// kills the process groups noted in DIR/pids and removes DIR ($1).
//
// The parent-death signal of Linux cannot be used: envtest sets the attributes of its processes itself, and the signal follows the thread
// that started the process, which the Go runtime may end long before the program.
//
// A noted process may have ended and its number may belong to another process: the script kills only a process whose command line contains
// DIR. A file that a dying process writes may make rm fail, so the script tries again.
const script = `
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

// Watchdog is a process that cleans up after this one. See script.
type Watchdog struct {
	alive io.Closer // this process's end of the pipe
	cmd   *exec.Cmd
}

// Guard starts a watchdog over dir, an absolute path.
func Guard(dir string) (*Watchdog, error) {
	// Both ends are close-on-exec: etcd and kube-apiserver do not inherit them and keep the pipe open.
	input, alive, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	defer input.Close() //nolint:errcheck // The watchdog has its own copy.
	cmd := exec.Command("/bin/sh", "-c", script, "fieldperm-watchdog", dir)
	cmd.Stdin = input
	// The process is not in the terminal's foreground group: Ctrl-C must not end it before it has done its work.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = alive.Close()
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	return &Watchdog{alive: alive, cmd: cmd}, nil
}

// Release makes the watchdog do its work now and waits until it has ended.
func (w *Watchdog) Release() error {
	if err := w.alive.Close(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("watchdog: %w", err)
	}
	return nil
}
