package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo compiles two of three packages, each for as long as SLOW says, and then fails if FAIL says so.
const fakeGo = `#!/bin/sh
case $1 in
list) printf 'a\nb\nc\n' ;;
build)
	echo "$*" >>"$CALLS"
	for package in example.com/a example.com/b; do
		echo "$package" >&2
		sleep "$SLOW"
	done
	if [ -n "$FAIL" ]; then
		echo "# example.com/b" >&2
		echo "b.go:1:2: undefined: x" >&2
		exit 3
	fi
	;;
esac
`

// fakeCheckout returns a folder with hack/gobuild.sh, and the path of a fake go.
func fakeCheckout(t *testing.T) (root, path string) {
	t.Helper()
	root, path = t.TempDir(), t.TempDir()
	script, err := os.ReadFile("../../hack/gobuild.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "hack"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{filepath.Join(root, "hack", "gobuild.sh"): string(script), filepath.Join(path, "go"): fakeGo} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root, path
}

// gobuild runs hack/gobuild.sh with the fake go, and returns what it wrote and its exit code.
func gobuild(t *testing.T, root, path string, environment ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", filepath.Join(root, "hack", "gobuild.sh"), "demo: all", "-ldflags", "-s -w", "-o", "out", "./one", "./two")
	cmd.Env = append(os.Environ(), "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"), "CALLS="+filepath.Join(root, "calls"), "FAIL=", "GOBUILD_EVERY=1")
	cmd.Env = append(cmd.Env, environment...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestBuild_IsQuietIfItTakesAMomentOnly(t *testing.T) {
	root, path := fakeCheckout(t)
	if out, code := gobuild(t, root, path, "SLOW=0", "GOBUILD_FIRST=30"); out != "" || code != 0 {
		t.Errorf("it ends with %d and says %q", code, out)
	}
	calls, err := os.ReadFile(filepath.Join(root, "calls"))
	if err != nil || string(calls) != "build -v -ldflags -s -w -o out ./one ./two\n" {
		t.Errorf("go was called with %q, %v", calls, err)
	}
	if _, err := os.Stat(filepath.Join(root, "bin", "build-times")); !os.IsNotExist(err) {
		t.Errorf("a moment is remembered: %v", err)
	}
}

func TestBuild_ShowsProgressAndTheLastDuration(t *testing.T) {
	root, path := fakeCheckout(t)
	for _, last := range []string{"demo: all: how long it takes is not known", "s last time, for 2 packages\n"} {
		out, code := gobuild(t, root, path, "SLOW=2", "GOBUILD_FIRST=1")
		for _, want := range []string{last, "demo: all: 1 of at most 3 packages compiled, after ", "s, 2 packages compiled\n"} {
			if !strings.Contains(out, want) || code != 0 {
				t.Errorf("it ends with %d and does not say %q: %s", code, want, out)
			}
		}
	}
}

func TestBuild_PassesErrorsOn(t *testing.T) {
	root, path := fakeCheckout(t)
	out, code := gobuild(t, root, path, "SLOW=0", "FAIL=1", "GOBUILD_FIRST=30")
	if want := "# example.com/b\nb.go:1:2: undefined: x\n"; out != want || code != 3 {
		t.Errorf("it ends with %d and says %q, want %q", code, out, want)
	}
}
