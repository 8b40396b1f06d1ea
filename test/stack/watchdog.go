package stack

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// watchdogScript waits until its standard input closes, which the kernel does when the program that holds the other
// end ends, however it ends. Then it kills fieldperm's process group, if the number noted in DIR/pids ($1) is still of a
// process whose command line names DIR, and removes DIR. The cluster in DIR has a watchdog of its own for its
// processes, which writes into DIR till the end, so that rm is tried again.
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
	input, alive, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	defer input.Close() //nolint:errcheck // The watchdog has its own copy.
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "fieldperm-stack-watchdog", dir)
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
