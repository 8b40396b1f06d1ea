package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every fault of a schema has file, line and cure, whatever the form of its document.
func TestFaultsOfSchemasHaveLines(t *testing.T) {
	const head = "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: %}\nspec:\n  group: apps\n  kind: Deployment\n  permissions:\n"
	one := func(name string, permissions ...string) string {
		return strings.Replace(head, "%", name, 1) + "  - " + strings.Join(permissions, "\n  - ") + "\n"
	}
	good, bad, worse := "{path: .spec.replicas, verb: example.com/good}", "{path: .spec.nope, verb: example.com/nope}", "{path: .spec.replicas, verb: Bad_Verb}"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one document":      {one("a", good, bad), []string{":9: /spec/permissions/1: path \".spec.nope\" does not exist"}},
		"several documents": {one("a", good) + "---\n# nothing\n---\n" + one("b", bad) + "---\n" + one("c", good, worse), []string{":19: /spec/permissions/0: ", ":29: /spec/permissions/1: "}},
		"a list":            {"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(one("a", worse), "\n"), "\n", "\n  ") + "\n", []string{":11: /items/0/spec/permissions/0: "}},
		"JSON":              {"{\"apiVersion\":\"fieldperm.dev/v1alpha1\",\"kind\":\"PermissionSchema\",\"metadata\":{\"name\":\"a\"},\n\"spec\":{\"group\":\"apps\",\"kind\":\"Deployment\",\"permissions\":[\n{\"path\":\".spec.replicas\",\"verb\":\"Bad_Verb\"}]}}", []string{":3: /spec/permissions/0: "}},
		"no YAML":           {"a: b: c\n", []string{":1: no YAML"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "schema.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			command := NewCommand(Probes{})
			command.SetArgs([]string{"--permission-schemas", file})
			command.SetOut(new(strings.Builder))
			command.SetErr(new(strings.Builder))
			err := command.Execute()
			if err == nil {
				t.Fatal("it is valid")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), "\n"+file+want) {
					t.Errorf("no line that begins with %s%s: %v", file, want, err)
				}
			}
		})
	}
}
