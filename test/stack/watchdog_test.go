package stack

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// A shell stands for fieldperm here: it has the directory in its command line, as fieldperm has.
func TestWatchdog_KillsFieldpermAndRemovesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a stack")
	if err := os.MkdirAll(filepath.Join(dir, "pids"), 0o700); err != nil {
		t.Fatal(err)
	}
	dog, err := guard(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "echo started; while :; do sleep 60; done", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("shell: %q, %v", line, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pids", "fieldperm-webhook"), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dog.release(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // Its state is looked at.
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("process: %v; want it killed", cmd.ProcessState)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("directory: %v; want it removed", err)
	}
}
