package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const earlierPermissions = `---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: GADGETS}
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: GADGETS-2}
`

// TestCRD_PermissionSchemasOfAnEarlierRun win over the annotation, so that its barriers would have no effect. Nothing is written beside them.
func TestCRD_PermissionSchemasOfAnEarlierRun(t *testing.T) {
	for name, c := range map[string]struct {
		file, name string
		args       func(dir string) []string
	}{
		"--in": {"example.com_mice.permissions.yaml", "mice.example.com", func(dir string) []string {
			return []string{"--in", save(t, dir, "in.yaml", widgets), "--out", filepath.Join(dir, "out.yaml")}
		}},
		"paths=": {"example.com_gadgets.permissions.yaml", "gadgets.example.com", func(dir string) []string {
			return []string{"paths=" + apiV1, "output:crd:dir=" + dir}
		}},
		"paths= with artifacts": {"example.com_gadgets.permissions.yaml", "gadgets.example.com", func(dir string) []string {
			return []string{"paths=" + apiV1, "output:artifacts:config=" + dir}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"crd"}, c.args(dir)...)
			save(t, dir, c.file, strings.ReplaceAll(earlierPermissions, "GADGETS", c.name))
			before, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			code, _, stderr := run(t, "", args...)
			if code != 1 || !strings.Contains(stderr, "kubectl delete permissionschemas "+c.name+" "+c.name+"-2\n") {
				t.Errorf("exit %d, %q", code, stderr)
			}
			after, err := os.ReadDir(dir)
			if err != nil || len(after) != len(before) {
				t.Errorf("%d files were written beside it: %v", len(after)-len(before), err)
			}
			if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := run(t, "", args...); code != 0 {
				t.Errorf("without the file: exit %d, %q", code, stderr)
			}
		})
	}
}

// TestCRD_NamesOfFilesStayInTheDirectory, and the file with the permissions is written before the definition without them.
func TestCRD_NamesOfFilesStayInTheDirectory(t *testing.T) {
	for from, want := range map[string]string{
		"group: example.com":     `/spec/group: "../../example.com" is no group`,
		"plural: mice":           `/spec/names/plural: "../../mice" is no name of a resource`,
		"name: mice.example.com": `/metadata/name: "../../mice.example.com" is not the name of the resource and its group: write "mice.example.com"`,
	} {
		dir := t.TempDir()
		key, value, _ := strings.Cut(from, ": ")
		in := save(t, dir, "in.yaml", strings.Replace(widgets, from, key+`: "../../`+value+`"`, 1))
		code, _, stderr := run(t, "", "crd", "--in", in, "--out", filepath.Join(dir, "out.yaml"))
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %q, want %q", code, stderr, want)
		}
	}
}
