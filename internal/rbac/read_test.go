package rbac

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "apiVersion: rbac.authorization.k8s.io/v1\n"

func TestDecodeForms(t *testing.T) {
	const role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
	other := strings.Replace(role, `"name":"a"`, `"name":"b"`, 1)
	for name, test := range map[string]struct {
		manifest string
		roles    int
	}{
		"empty":                 {"", 0},
		"only comments":         {"# nothing\n---\n# here\n", 0},
		"JSON":                  {role, 1},
		"JSON documents":        {role + "\n" + other, 2},
		"JSON in YAML document": {"---\n" + role + "\n---\n" + other, 2},
		"v1 List":               {`{"apiVersion":"v1","kind":"List","items":[` + role + "," + other + `]}`, 2},
		"ClusterRoleList":       {`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`, 2},
		"other kinds pass":      {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}\n---\napiVersion: example.com/v1\nkind: Widget\nwhat: ever\n---\n" + role, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Decode("test.yaml", []byte(test.manifest))
			if err != nil {
				t.Fatal(err)
			}
			if len(g.ClusterRoles) != test.roles {
				t.Errorf("got %d roles, want %d", len(g.ClusterRoles), test.roles)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	const binding = header + "kind: ClusterRoleBinding\nmetadata: {name: b}\n"
	const rule = "{apiGroups: [''], resources: [pods], verbs: [get]}"
	for name, test := range map[string]struct{ manifest, want string }{
		"no YAML":                   {"a: [", "document 1 is no YAML"},
		"no JSON":                   {`{"a":`, "document 1 is no JSON"},
		"second document":           {"kind: A\napiVersion: a/v1\n---\na: [", "document 2 is no YAML"},
		"no object":                 {"- a\n", "is no Kubernetes object"},
		"no kind":                   {"apiVersion: v1\n", "give it an apiVersion and a kind"},
		"duplicate key":             {"kind: Role\nkind: Role\n", `key "kind" already set`},
		"removed version":           {"apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role\n", `kind "Role" of "rbac.authorization.k8s.io/v1beta1" is not known`},
		"misspelt kind":             {header + "kind: Rolebinding\n", `kind "Rolebinding" of`},
		"misspelt field":            {header + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{verb: [get]}]\n", `unknown field "rules[0].verb"`},
		"in a list":                 {"apiVersion: v1\nkind: List\nitems: [{kind: Role}]\n", "items[0]: is no Kubernetes object"},
		"no name":                   {header + "kind: ClusterRole\n", "ClusterRole: has no name"},
		"no namespace":              {header + "kind: Role\nmetadata: {name: r}\n", `Role "r": has no namespace`},
		"binding without namespace": {header + "kind: RoleBinding\nmetadata: {name: r}\n", `RoleBinding "r": has no namespace`},
		"twice":                     {header + "kind: ClusterRole\nmetadata: {name: r}\n---\n" + header + "kind: ClusterRole\nmetadata: {name: r}\n", `ClusterRole "r": is given twice`},
		"no verbs":                  {header + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods]}]\n", "rules[0] has no verbs"},
		"no apiGroups":              {header + "kind: ClusterRole\nmetadata: {name: r}\nrules: [" + rule + ", {resources: [pods], verbs: [get]}]\n", "rules[1] has no apiGroups"},
		"no resources":              {header + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [''], verbs: [get]}]\n", "rules[0] has no resources"},
		"paths in a role":           {header + "kind: Role\nmetadata: {name: r, namespace: shop}\nrules: [{nonResourceURLs: [/x], verbs: [get]}]\n", "move the rule to a ClusterRole"},
		"paths and resources":       {header + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{nonResourceURLs: [/x], resources: [pods], verbs: [get]}]\n", "make it two rules"},
		"empty aggregation":         {header + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {}\n", "no clusterRoleSelectors"},
		"bad selector":              {header + "kind: ClusterRole\nmetadata: {name: r}\naggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: Is}]}]}\n", `"Is" is not a valid label selector operator`},
		"no roleRef":                {binding, `roleRef: kind "" cannot be bound here`},
		"role bound cluster-wide":   {binding + "roleRef: {kind: Role, name: r}\n", `roleRef: kind "Role" cannot be bound here: use one of ["ClusterRole"]`},
		"roleRef without name":      {binding + "roleRef: {kind: ClusterRole}\n", "roleRef: has no name"},
		"roleRef of another group":  {binding + "roleRef: {kind: ClusterRole, name: r, apiGroup: v1}\n", `apiGroup "v1" has no roles`},
		"subject's kind":            {binding + "roleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: user, name: x}]\n", `subjects[0]: kind "user" is no subject`},
		"subject without name":      {binding + "roleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: User}]\n", "subjects[0]: User has no name"},
		"subject's group":           {binding + "roleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: Group, name: x, apiGroup: v1}]\n", `apiGroup "v1" has no Group`},
		"account without namespace": {binding + "roleRef: {kind: ClusterRole, name: r}\nsubjects: [{kind: ServiceAccount, name: x}]\n", `ServiceAccount "x" has no namespace`},
		"deeply nested":             {strings.Repeat(`{"a":`, 100_000), "document 1 is no JSON"},
		"deeply nested YAML":        {strings.Repeat(`[`, 100_000), "document 1 is no YAML"},
		"invalid UTF-8":             {"kind: \xff\xfe\n", "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("test.yaml", []byte(test.manifest))
			if err == nil {
				t.Fatal("got no error")
			}
			if text := err.Error(); !strings.Contains(text, test.want) || !strings.HasPrefix(text, "grants: test.yaml: ") {
				t.Errorf("got %q, want %q in it", text, test.want)
			}
		})
	}
}

func TestFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	role := func(name string) string { return header + "kind: ClusterRole\nmetadata: {name: " + name + "}\n" }
	for file, content := range map[string]string{"a.yaml": role("a"), "b.yml": role("b"), "c.json": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"c"}}`, "README.md": "no grants"} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g, err := Read([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.ClusterRoles) != 3 {
		t.Errorf("got %d roles, want 3", len(g.ClusterRoles))
	}
	if _, err := Files([]string{dir, filepath.Join(dir, "a.yaml")}); err == nil || !strings.Contains(err.Error(), `ClusterRole "a": is given twice`) {
		t.Errorf("the same role twice: got %v", err)
	}
	if _, err := Files([]string{filepath.Join(dir, "missing.yaml")}); err == nil || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("missing file: got %v", err)
	}
}
