package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoles(t *testing.T) {
	dir := t.TempDir()
	crd := save(t, dir, "mice.yaml", widgets)
	before := save(t, dir, "before.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}")
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  []string
	}{
		"fields":               {[]string{"--kind", "apps/v1/Deployment", "--field", ".spec.replicas", "--namespace", "shop", "--role-name", "scaler"}, "", []string{"kind: Role\n", "  name: scaler\n  namespace: shop\n", "  - granular:scale\n"}},
		"objects and verbs":    {[]string{"--kind", "v1/ConfigMap", "--field", `.data["a"]`, "--resource-name", "c", "--verbs", "get,update"}, "", []string{"  resourceNames:\n  - c\n", "  - get\n  - granular\n  - granular:datum(a)\n"}},
		"a definition":         {[]string{"--kind", "example.com/v1/Mouse", "--field", ".size", "--crd", crd}, "", []string{"  - granular:example.com/size\n", "a barrier: update and create do not cover it"}},
		"no namespace":         {[]string{"--kind", "v1/Node", "--field", ".spec.taints"}, "", []string{"kind: ClusterRole\n"}},
		"a change":             {[]string{"--old", before, "--new", "-"}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: c}}", []string{"  namespace: shop\n", "  - granular:datum(a)\n", "  resourceNames:\n  - c\n"}},
		"a new object":         {[]string{"--new", before}, "", []string{"resources:\n  - configmaps\n  verbs:\n  - granular\n", "  - granular:datum(a)\n"}},
		"a change, everywhere": {[]string{"--new", before, "--cluster"}, "", []string{"kind: ClusterRole\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, c.stdin, append([]string{"roles"}, c.args...)...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit %d, %q", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %q in\n%s", want, stdout)
				}
			}
		})
	}
}

func TestRoles_Packages(t *testing.T) {
	dir := t.TempDir()
	crd := save(t, dir, "crd.yaml", `# A definition.
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"example.com/size"}]}'}}, spec: {
  group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
    spec: {type: object, properties: {size: {type: integer}, tags: {type: object, additionalProperties: {type: string}}}}, status: {type: object, properties: {size: {type: integer}}}}}}}]}}`)
	header := save(t, dir, "header.txt", "# Copyright YEAR.\n")
	code, stdout, stderr := run(t, "", "roles", "paths=../rolemarkers/testdata/controller", "--out", filepath.Join(dir, "rbac"), "--crd", crd, "--header-file", header, "--year", "2026")
	if code != 0 || stdout != "" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	plain, granular := content(t, filepath.Join(dir, "rbac"), "role.yaml"), content(t, filepath.Join(dir, "rbac"), "role-fieldperm.yaml")
	for _, want := range []string{"# Copyright 2026.\n---\n", "  name: manager-role\n"} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, plain)
		}
	}
	for _, want := range []string{"# Copyright 2026.\n# Made by fieldperm-gen roles.", "  - granular:label(super.safe.com)\n", "  - granular:specification\n"} {
		if !strings.Contains(granular, want) {
			t.Errorf("no %q in\n%s", want, granular)
		}
	}
	if strings.Contains(plain, "granular") {
		t.Errorf("granular verbs in\n%s", plain)
	}
}

func TestRoles_Errors(t *testing.T) {
	dir := t.TempDir()
	two := save(t, dir, "two.yaml", "{apiVersion: v1, kind: ConfigMap}\n---\n{apiVersion: v1, kind: ConfigMap}\n")
	one := save(t, dir, "one.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	if err := os.MkdirAll(filepath.Join(dir, "plain"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                   {nil, "fields are missing: give --kind and --field, or --old and --new, or paths=PACKAGES"},
		"no field":                  {[]string{"--kind", "v1/Pod"}, "--field is missing"},
		"no kind":                   {[]string{"--field", ".spec"}, "--kind is missing"},
		"fields and a change":       {[]string{"--field", ".spec", "--new", one}, "drop one of the two"},
		"a deletion":                {[]string{"--old", one}, "no granular verb covers a deletion"},
		"standard input twice":      {[]string{"--old", "-", "--new", "-"}, "name a file for one of them"},
		"two documents":             {[]string{"--new", two}, "has 2 documents: give one"},
		"no file":                   {[]string{"--new", filepath.Join(dir, "none")}, "--new: cannot be read"},
		"no object":                 {[]string{"--new", save(t, dir, "no.yaml", "a: b")}, "is no Kubernetes object"},
		"all verbs":                 {[]string{"--kind", "v1/Pod", "--field", ".spec", "--verbs", "*"}, "would grant more than the fields"},
		"granular verbs":            {[]string{"--kind", "v1/Pod", "--field", ".spec", "--verbs", "granular:*"}, "would grant more than the fields"},
		"only subresources of none": {[]string{"--kind", "v1/Pod", "--field", ".spec", "--only-subresources"}, "add --subresource"},
		"cluster and namespace":     {[]string{"--kind", "v1/Pod", "--field", ".spec", "--cluster", "--namespace", "a"}, "leave out one of"},
		"a namespace of a node":     {[]string{"--kind", "v1/Node", "--field", ".spec.taints", "--namespace", "a"}, "objects of Node have no namespace"},
		"unknown field":             {[]string{"--kind", "v1/Pod", "--field", ".spec.nodeNam"}, `--field: path ".spec.nodeNam" of Pod: ".spec" has no field "nodeNam": use "nodeName"`},
		"out without packages":      {[]string{"--kind", "v1/Pod", "--field", ".spec", "--out", dir}, "are about packages"},
		"packages without out":      {[]string{"paths=./..."}, "--out is missing"},
		"packages and a kind":       {[]string{"paths=./...", "--kind", "v1/Pod", "--out", dir}, "--kind is not about packages"},
		"another argument":          {[]string{"x", "--out", dir}, `argument "x": is not of the form paths=PACKAGES`},
		"no markers":                {[]string{"paths=.", "--out", dir}, "have no marker +kubebuilder:rbac"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, "", append([]string{"roles"}, c.args...)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("exit %d, %q, %q, want %q", code, stdout, stderr, c.want)
			}
		})
	}
}
