package generate

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestHostileNames: the name of a field of a definition of others neither begins a line of the output nor moves the cursor of a terminal.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	in := save(t, dir, "in.yaml", widgets+`          "a\e[31m\n::error::x": {type: string, x-kubernetes-permission-verb: Wrong}`+"\n")
	for name, args := range map[string][]string{
		"crd":     {"crd", "--in", in},
		"refdocs": {"refdocs", "--out", filepath.Join(dir, "out"), "--crd", in},
		"roles":   {"roles", "--crd", in, "--kind", "example.com/v1/Mouse", "--field", ".x"},
		"lint":    {"lint", in},
	} {
		_, stdout, stderr := run(t, "", args...)
		all := stdout + stderr
		if !strings.Contains(all, `\x1b[31m\n::error::x`) {
			t.Errorf("%s: %q does not have the name", name, all)
		}
		if strings.Contains(all, "\x1b") || strings.Contains(all, "\n::error::") {
			t.Errorf("%s: %q", name, all)
		}
	}
}
