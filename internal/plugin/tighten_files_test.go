package plugin

import "testing"

// TestTighten_CommandsCanBePasted: a path is one word of a shell.
func TestTighten_CommandsCanBePasted(t *testing.T) {
	for path, want := range map[string]string{
		"out/undo.yaml": "out/undo.yaml", "../a b/undo.yaml": "'../a b/undo.yaml'", "$(x)/undo.yaml": "'$(x)/undo.yaml'", "it's/undo.yaml": `'it'\''s/undo.yaml'`,
		"a;b/undo.yaml": "'a;b/undo.yaml'", "~/undo.yaml": "'~/undo.yaml'",
	} {
		if got := shellWord(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}
