package generators

import (
	"strings"
	"testing"
)

// TestCRDFiles_Earlier: objects that are written again are no leftovers.
func TestCRDFiles_Earlier(t *testing.T) {
	object := func(name string) string {
		return "---\napiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata:\n  name: " + name + "\n"
	}
	for name, c := range map[string]struct {
		now, before string
		want        string
	}{
		"none":          {"", "", ""},
		"the same":      {object("a") + object("a-2"), object("a") + object("a-2"), ""},
		"more":          {object("a") + object("a-2"), object("a"), ""},
		"fewer":         {object("a"), object("a") + object("a-2"), "kubectl delete permissionschemas a-2"},
		"no file":       {"", object("a") + object("a-2"), "kubectl delete permissionschemas a a-2"},
		"no YAML":       {object("a"), "a: [", "cannot be read"},
		"without names": {"", "x: y\n", "has PermissionSchemas"},
	} {
		files := CRDFiles{PermissionsName: "example.com_a.permissions.yaml"}
		if c.now != "" {
			files.Permissions = &File{Data: []byte(c.now)}
		}
		var before []byte
		if c.before != "" {
			before = []byte(c.before)
		}
		switch err := files.Earlier(before); {
		case (err == nil) != (c.want == ""):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), files.PermissionsName)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
