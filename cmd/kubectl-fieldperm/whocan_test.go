package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

const whoCanFiles = " --grants whocan/grants.yaml"

// whoCanCases are the answers of who-can that are in testdata/whocan/golden/NAME.FORMAT.
var whoCanCases = []struct{ name, args, formats string }{
	{"image", "update deployments --field spec.template.spec.containers.image -n shop", "table json yaml"},
	{"image_of_one_container", `update deploy/web --field .spec.template.spec.containers[name="proxy"].image -n shop`, "table json"},
	{"image_behind_a_barrier", "update deployments/web --field spec.template.spec.containers.image -n shop --permissions whocan/barrier.yaml", "table json"},
	{"all_namespaces", "patch deployments --field spec.template.spec.containers.image -A", "table"},
	{"policies", "update deployments/web --field spec.replicas -n shop --policies whocan/policies.yaml", "table json"},
	{"scale", "update deployments/web --field spec.replicas --subresource scale -n shop", "table"},
	{"cluster_scoped", "update nodes --field spec.taints", "table"},
	{"written_by_the_server", "update deployments --field metadata.generation -n shop", "table"},
	{"status", "update deployments --field status.replicas -n shop", "table"},
	{"object", "update deployments -n shop", "table json"},
}

func TestWhoCanGolden(t *testing.T) {
	t.Chdir("testdata")
	goldens := map[string]bool{}
	for _, test := range whoCanCases {
		for format := range strings.FieldsSeq(test.formats) {
			file := filepath.Join("whocan", "golden", test.name+"."+format)
			goldens[file] = true
			t.Run(test.name+"/"+format, func(t *testing.T) {
				code, stdout, stderr := execute(t, "", append([]string{"who-can", "-o", format}, strings.Fields(test.args+whoCanFiles)...)...)
				// Without an API server, conditions of policies are not checked, which is a warning for each.
				warnings := strings.Count(stderr, "is not checked against types")
				if code != 0 || strings.Count(stderr, "\n") != warnings || warnings > 0 && test.name != "policies" {
					t.Errorf("exit code %d, stderr %q", code, stderr)
				}
				golden(t, file, stdout)
			})
		}
	}
	files, err := filepath.Glob("whocan/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !goldens[file] {
			t.Errorf("%s belongs to no case: delete it", file)
		}
	}
}

// The page without --field has the tree of the kind, in which each field has its subjects, and how each may change it.
func TestWhoCanHTML(t *testing.T) {
	t.Chdir("testdata")
	code, page, stderr := execute(t, "", strings.Fields("who-can update deployments -n shop -o html"+whoCanFiles)...)
	if code != 0 || stderr != "" || !strings.Contains(page, "<h1>Subjects that may update deployments in shop</h1>") {
		t.Fatalf("exit code %d, stderr %q: %.300s", code, stderr, page)
	}
	_, text, _ := strings.Cut(page, `<script type="application/json" id="data">`)
	var data struct {
		Strings []string
		Access  struct {
			Object   string
			Subjects []struct{ Kind, Name string }
			Lists    [][][]int
			Paths    map[string]int
		}
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&data); err != nil {
		t.Fatal(err)
	}
	of := func(path string) string {
		var out []string
		for _, h := range data.Access.Lists[data.Access.Paths[path]] {
			s := data.Access.Subjects[h[0]]
			out = append(out, s.Kind+" "+s.Name+" "+[]string{"generic", "granular", "wildcard", "conditional"}[h[1]]+": "+data.Strings[h[2]])
		}
		return strings.Join(out, "\n")
	}
	if got, want := of(""), `Group admins wildcard: * by ClusterRoleBinding admins (ClusterRole everything)
Group editors generic: update by RoleBinding shop/editors (ClusterRole editor)
User eve generic: update by RoleBinding shop/editors (ClusterRole editor)`; got != want || data.Access.Object != "all deployments of shop" {
		t.Errorf("%s: %s, want %s", data.Access.Object, got, want)
	}
	for _, want := range []string{
		"ServiceAccount ci/deployer granular: granular by ClusterRoleBinding marker (ClusterRole marker); get by ClusterRoleBinding marker (ClusterRole marker); granular:image by RoleBinding shop/images (Role shop/images)",
		"ServiceAccount mesh/injector conditional: granular by ClusterRoleBinding marker (ClusterRole marker); get by ClusterRoleBinding marker (ClusterRole marker); granular:image(proxy) by RoleBinding shop/sidecar (Role shop/sidecar); only web; only containerName proxy",
	} {
		if got := of(".spec.template.spec.containers[*].image"); !strings.Contains(got, want) {
			t.Errorf("the image has %s, without %s", got, want)
		}
	}
	if at, ok := data.Access.Paths[".status"]; !ok || len(data.Access.Lists[at]) > 0 {
		t.Error("the status has subjects")
	}
	// One field is a table.
	_, page, _ = execute(t, "", strings.Fields("who-can update deployments --field spec.replicas -n shop -o html"+whoCanFiles)...)
	if !strings.Contains(cells(page), "Group|editors|generic|update|") {
		t.Errorf("the page of a field has no table: %s", cells(page))
	}
}

// Nothing can be said: exit code 2, nothing on the output, and the cure at the end of the message.
func TestWhoCanRefuses(t *testing.T) {
	t.Chdir("testdata")
	for args, want := range map[string]string{
		"delete deployments" + whoCanFiles:                             `verb "delete" is no write of fields: use create, update or patch`,
		"update deploymints" + whoCanFiles:                             `use "deployments"`,
		"update deployments --field spec.replica" + whoCanFiles:        `use "replicas"`,
		"update deployments/ --field spec.replicas" + whoCanFiles:      `write KIND/NAME`,
		"update deployments --subresource scal" + whoCanFiles:          `use scale or status`,
		"update deployments -A -n shop" + whoCanFiles:                  `drop one of the two`,
		"update deployments/web -A" + whoCanFiles:                      `object "web" is in one namespace: give --namespace`,
		"update nodes -A" + whoCanFiles:                                `nodes are in no namespace: drop it`,
		"update deployments -o wide" + whoCanFiles:                     `use table, json, yaml or html`,
		"update deployments --permissions whocan/barrier.yaml":         `give --grants too, or drop them`,
		"update deployments --server https://127.0.0.1:1":              `decide from files with --grants`,
		"update deployments --grants whocan/none.yaml":                 `name a file or a directory that can be read`,
		"update deployments.spec.replicas --grants whocan/grants.yaml": `give the path with --field`,
	} {
		code, stdout, stderr := execute(t, "", append([]string{"who-can"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}
