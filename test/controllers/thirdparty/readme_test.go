//go:build controllers

package thirdparty

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
	"github.com/fieldperm/fieldperm/test/stack"
)

// What differs between two runs of a command.
var volatile = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`I\d{4} [\d:.]+ +\d+|E\d{4} [\d:.]+ +\d+`), "E1123 10:00:00.000000 1"},
	{regexp.MustCompile(`reconcileID="[0-9a-f-]+"`), `reconcileID="…"`},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z`), "2026-11-23T10:00:00Z"},
	{regexp.MustCompile(`(?m) \d+m?\d*s$`), " 20s"},
	{regexp.MustCompile(`\[[0-9a-f-]+\.kubeconfig\]`), "[kubeconfig]"},
}

// TestReadme runs the commands of the README.md of examples/operator and compares what they print with what it says. With -update it writes
// what they print.
func TestReadme(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Config{Bin: trial.Root(t, "bin"), Arguments: []string{"--decision-cache-ttl=500ms"}})
	trial.Must(t, err)
	t.Cleanup(func() { trial.Must(t, s.Stop()) })
	trial.Must(t, s.Apply(t.Context(), trial.Root(t, "config", "crd")))
	dir := t.TempDir()
	trial.Must(t, os.CopyFS(dir, os.DirFS(trial.Root(t, "examples", "operator"))))
	admin, err := s.User("admin", "system:masters")
	trial.Must(t, err)
	assets, err := cluster.Assets()
	trial.Must(t, err)
	assets, err = filepath.Abs(assets)
	trial.Must(t, err)
	sh := &shell{t: t, dir: dir, env: append(os.Environ(), "KUBECONFIG="+admin.Kubeconfig, "HOME="+s.Dir(), "KUBERC=off", "LC_ALL=C",
		"GOCACHE="+output(t, "go", "env", "GOCACHE"), "GOMODCACHE="+output(t, "go", "env", "GOMODCACHE"), "CGO_ENABLED=0",
		"PATH="+strings.Join([]string{trial.Root(t, "bin"), assets, os.Getenv("PATH")}, ":"))}

	file := trial.Root(t, "examples", "operator", "README.md")
	content, err := os.ReadFile(file)
	trial.Must(t, err)
	blocks := regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	commands := 0
	written := blocks.ReplaceAllStringFunc(string(content), func(block string) string {
		out := "```console\n"
		for _, command := range strings.Split(strings.TrimPrefix("\n"+blocks.FindStringSubmatch(block)[1], "\n$ "), "\n$ ") {
			commands++
			line, want, _ := strings.Cut(command, "\n")
			got := sh.run(line, strings.TrimSuffix(want, "\n"))
			out += "$ " + line + "\n" + got
		}
		return out + "```"
	})
	if commands < 20 {
		t.Errorf("%d commands were found: the test does not see them", commands)
	}
	if trial.Updating() {
		trial.Must(t, os.WriteFile(file, []byte(written), 0o644))
	}
}

func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, arguments...).Output()
	trial.Must(t, err)
	return strings.TrimSpace(string(out))
}

type shell struct {
	t   *testing.T
	dir string
	env []string
}

// run runs a command until it prints what is wanted, because a permission counts a moment after it was granted, and returns what it prints.
func (s *shell) run(line, want string) string {
	s.t.Helper()
	if command, ok := strings.CutSuffix(line, " &"); ok {
		s.background(command)
		return ""
	}
	limit := 30 * time.Second
	if trial.Updating() {
		time.Sleep(3 * time.Second)
		limit = 0
	}
	for deadline := time.Now().Add(limit); ; time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = s.dir, s.env
		out, _ := cmd.CombinedOutput() // A refusal is what some commands show.
		cancel()
		got := string(bytes.TrimRight(out, "\n"))
		for _, v := range volatile {
			got, want = v.pattern.ReplaceAllString(got, v.same), v.pattern.ReplaceAllString(want, v.same)
		}
		if got == want || !time.Now().Before(deadline) {
			if got != want && !trial.Updating() || strings.Contains(got, "timed out") {
				s.t.Fatalf("$ %s\n%s\nREADME.md says:\n%s", line, got, want)
			}
			if got != "" {
				got += "\n"
			}
			return got
		}
	}
}

func (s *shell) background(command string) {
	s.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	trial.Must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		_ = cmd.Wait()
	})
}
