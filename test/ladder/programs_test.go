package ladder

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// programs are the programs that Go code may call by name: the programs that the README requires, and those of every Unix. ps is called if
// there is no /proc. Programs that are built from a pinned module are called by their path.
var programs = []string{"go", "git", "make", "/bin/sh", "ps"}

// The README asks for Go, git, make and bash. So no test may look for another program.
func TestF1_NoOtherProgramIsCalled(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	calls := 0
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if os.IsNotExist(err) {
			continue // Deleted, and not committed yet.
		}
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, at := called(call)
			switch {
			case at < 0:
			case name == "LookPath":
				t.Errorf("%s: looks for a program: build it from a pinned module, or do without", positions.Position(call.Pos()))
			default:
				calls++
				if program, ok := literal(call.Args[at]); ok && !slices.Contains(programs, program) {
					t.Errorf("%s: calls %q: the README promises that Go, git, make and bash are enough", positions.Position(call.Pos()), program)
				}
			}
			return true
		})
	}
	if calls == 0 {
		t.Error("no call of exec.Command was found: this test checks nothing")
	}
}

// called returns the called function of os/exec, and the index of the argument with the program. It is -1 for any other function.
func called(call *ast.CallExpr) (name string, program int) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", -1
	}
	if pkg, ok := selector.X.(*ast.Ident); !ok || pkg.Name != "exec" {
		return "", -1
	}
	switch selector.Sel.Name {
	case "LookPath", "Command":
		return selector.Sel.Name, 0
	case "CommandContext":
		return selector.Sel.Name, 1
	}
	return "", -1
}

func literal(argument ast.Expr) (string, bool) {
	basic, ok := argument.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(basic.Value)
	return value, err == nil
}

// CI runs with the programs that the README requires, and so shows if they are not enough.
func TestF1_CIInstallsNothing(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if command, _, _ := strings.Cut(line, "#"); strings.Contains(command, "install") || strings.Contains(command, "apt") {
			t.Errorf(".ci/run: %q: CI that installs programs hides that make test needs them", strings.TrimSpace(line))
		}
	}
}
