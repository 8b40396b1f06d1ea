package cluster

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/fieldperm/fieldperm/test/watchdog"
)

// The two processes are shells here, so that this test needs no binaries. One has the cluster's directory in its command line, as etcd and
// kube-apiserver have. The other one represents a foreign process that got the number of an ended process.
func TestWatchdog_KillsItsOwnAndRemovesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's a cluster")
	for _, sub := range []string{dir, filepath.Join(dir, "bin"), filepath.Join(dir, "pids")} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dog, err := watchdog.Guard(dir)
	if err != nil {
		t.Fatal(err)
	}

	own := startWrapped(t, dir)
	other := exec.Command("/bin/sh", "-c", "read -r _; exit 7")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	otherInput, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pids", "kube-apiserver"), strconv.Itoa(other.Process.Pid)+"\n")

	if err := dog.Release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("directory: %v; want it removed", err)
	}
	_ = own.Wait() // The test checks the state of the process, not this error.
	if status := own.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("own process: %v; want it killed", own.ProcessState)
	}
	if err := otherInput.Close(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := other.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the other process: %v; want it left alone", err)
	}
}

// startWrapped runs a shell in place of etcd and returns when the wrapper has executed it.
func startWrapped(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	path, err := wrap(dir, "etcd", "/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", "echo started; while :; do sleep 60; done", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("wrapped process: %q, %v", line, err)
	}
	return cmd
}
