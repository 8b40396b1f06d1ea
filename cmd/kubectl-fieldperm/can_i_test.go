package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// canICases are the answers of can-i that are in testdata/can-i/golden/NAME.FORMAT.
var canICases = []struct {
	name, args, formats string
	code                int
}{
	{"granular_verb", "patch deploy/web --field spec.replicas -f deployment.yaml --as alice", "text json", 0},
	{"granular_verb_with_value", "patch deploy/web --field spec.replicas --value 5 -f deployment.yaml --as alice", "text json", 0},
	{"generic_verb", "update deploy/web --field spec -f deployment.yaml --as bob", "text", 0},
	{"other_verb_than_asked", "patch namespaces/shop --field metadata.annotations -f namespace.yaml --as olga", "text", 1},
	{"nothing_is_held", "patch deploy/web --field spec.replicas -f deployment.yaml --as nobody", "text json", 1},
	{"marker_without_verb", "patch deploy/web --field spec.replicas -f deployment.yaml --as mark", "text json", 1},
	{"refused_value", "patch deploy/web --field spec.paused --value true -f deployment.yaml --as alice", "text json", 1},
	{"several_fields", "patch deploy/web --field spec.replicas --field spec.paused --field spec -f deployment.yaml --as alice", "text json yaml", 1},
	{"two_fields", "patch deploy/web --field spec.replicas --field spec.paused -f deployment.yaml --as alice", "text", 1},
	{"each_item", "patch deploy/web --field spec.template.spec.containers.image -f deployment.yaml --as alice", "text", 1},
	{"barrier_of_a_set", `update ns/shop --field metadata.labels["pod-security.kubernetes.io/enforce"] -f namespace.yaml --as olga --permissions uncovered.yaml`, "text json", 1},
	{"barrier_below", "update ns/shop --field metadata.labels -f namespace.yaml --as olga --permissions uncovered.yaml", "text", 1},
	{"barrier_on_values", "update widgetry/gear --field spec.privileged -f widget.yaml --as bob --crd widget-crd.yaml", "text json", 1},
	{"barrier_on_another_value", "update widgetry/gear --field spec.privileged --value false -f widget.yaml --as bob --crd widget-crd.yaml", "text", 0},
	{"policy_that_allows", "patch deploy/web --field spec.replicas -f deployment.yaml --as mark --policies can-i/policies.yaml", "text json", 1},
	{"policy_that_allows_a_value", "patch deploy/web --field spec.replicas --value 10 -f deployment.yaml --as mark --policies can-i/policies.yaml", "text", 0},
	{"policy_that_allows_no_value", "patch deploy/web --field spec.replicas --value 11 -f deployment.yaml --as mark --policies can-i/policies.yaml", "text", 1},
	{"policy_that_denies", "patch deploy/web --field spec.replicas -f deployment.yaml --as alice --policies can-i/policies.yaml", "text", 1},
	{"status", "update deploy/web --field status.replicas --subresource status -f deployment.yaml --as bob", "text", 0},
	{"list", "patch deploy/web --list -f deployment.yaml --as alice", "text json", 0},
	{"list_of_generic_verb", "update deploy/web --list -f deployment.yaml --as bob", "text", 0},
	{"list_with_barrier", "update ns/shop --list -f namespace.yaml --as olga --permissions uncovered.yaml", "text", 0},
	{"list_of_nothing", "patch deploy/web --list -f deployment.yaml --as nobody", "text json", 1},
}

func TestCanIGolden(t *testing.T) {
	t.Chdir("testdata")
	goldens := map[string]bool{}
	for _, test := range canICases {
		for format := range strings.FieldsSeq(test.formats) {
			file := filepath.Join("can-i", "golden", test.name+"."+format)
			goldens[file] = true
			t.Run(test.name+"/"+format, func(t *testing.T) {
				code, stdout, stderr := execute(t, "", append([]string{"can-i", "--grants", "grants.yaml", "-o", format}, strings.Fields(test.args)...)...)
				apart := strings.Replace(test.args, "deploy/web", "deploy web", 1)
				if _, out, _ := execute(t, "", append([]string{"can-i", "--grants", "grants.yaml", "-o", format}, strings.Fields(apart)...)...); out != stdout {
					t.Errorf("KIND NAME has another answer: %s", out)
				}
				// Conditions of files are not checked against types.
				warned := strings.HasPrefix(stderr, "warning: ConditionalPolicy ") && strings.Contains(test.args, "--policies")
				if code != test.code || stderr != "" && !warned {
					t.Errorf("exit code %d, want %d; stderr %q", code, test.code, stderr)
				}
				golden(t, file, stdout)
			})
		}
	}
	files, err := filepath.Glob("can-i/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !goldens[file] {
			t.Errorf("%s belongs to no case: delete it", file)
		}
	}
}

// Nothing can be said: exit code 2, nothing on the output, and the cure at the end of the message.
func TestCanIRefuses(t *testing.T) {
	t.Chdir("testdata")
	const files = " -f deployment.yaml --grants grants.yaml --as alice"
	for args, want := range map[string]string{
		"patch deploy/web --field spec.replica" + files:                            `".spec" has no field "replica": use "replicas"`,
		"patch deploy --field spec.replicas" + files:                               `"deploy" names no object: write KIND/NAME`,
		"patch deploy/web web --field spec.replicas" + files:                       `are two objects: name one, as KIND NAME or KIND/NAME`,
		"patch deploy/ --field spec.replicas" + files:                              `"deploy/" names no object`,
		"patch deploy.spec/web --field spec.replicas" + files:                      `give the path with --field`,
		"patch deploymints/web --field spec.replicas" + files:                      `use "deployments"`,
		"patch deploy/other --field spec.replicas" + files:                         `give the object in question`,
		"patch pods/web --field spec" + files:                                      `give the object in question`,
		"patch deploy/web" + files:                                                 `--field is missing: name a field, or give --list`,
		"patch deploy/web --list --value 1" + files:                                `drop --field and --value, or drop --list`,
		"patch deploy/web --list --field spec" + files:                             `drop --field and --value, or drop --list`,
		"create deploy/web --field spec" + files:                                   `use kubectl fieldperm review --new FILE`,
		"delete deploy/web --field spec" + files:                                   `use kubectl auth can-i`,
		"get deploy/web --field spec" + files:                                      `verb "get" is not known: use update or patch`,
		"patch deploy/web --field spec.paused --value x" + files:                   `--value "x": is no JSON`,
		"patch deploy/web --field spec.paused --value=" + files:                    `--value "": is no JSON`,
		"patch deploy/web --field spec -o wide" + files:                            `--output "wide" is not known: use text, json, yaml or html`,
		"patch deploy/web --field status.replicas" + files:                         `give --subresource status`,
		"patch deploy/web --field metadata.uid" + files:                            `is written by the API server`,
		"patch deploy/web --field spec.x --subresource scal" + files:               `use scale or status`,
		"patch pods/web --field target --subresource binding" + files:              `does not update an object`,
		`patch deploy/web --field spec.template.spec.containers[name="x"]` + files: `has no such item: use [name="web"]`,
		"patch deploy/web --field spec.template.spec.containers[3]" + files:        `has 1 items: use an index below 1`,
		"patch deploy/web --field spec.template.spec.volumes[*]" + files:           `names no item that is there`,
		`patch deploy/web --field spec.template.spec.volumes[name="x"]` + files:    `has no items`,
		"patch deploy/web --field spec.replicas.x" + files:                         `where no field is known`,
		"patch deploy/web --field spec -f deployment.yaml --grants grants.yaml":    `--as is missing: name the user`,
		"patch deploy/web --field spec --as a --grants grants.yaml":                `-f is missing: give the object`,
		"patch deploy/web --field spec --as-group a":                               `--as-group is given without --as`,
		"patch deploy/web --field spec --crd widget-crd.yaml":                      `give --grants`,
		"patch deploy/web --field spec --max-checks 0" + files:                     `use 1 or more`,
		"patch deploy/web --field spec.paused.x --value 1" + files:                 `where no field is known`,
		"patch deploy/web --field spec --as a --server https://127.0.0.1:1":        `correct --kubeconfig and --context`,
	} {
		code, stdout, stderr := execute(t, "", append([]string{"can-i"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

// The names of others are text on the page.
func TestCanIPage(t *testing.T) {
	t.Chdir("testdata")
	code, stdout, stderr := execute(t, "", "can-i", "patch", "deploy/web", "--field", "spec.replicas", "-o", "html", "-f", "deployment.yaml", "--grants", "grants.yaml", "--as", "<b>eve")
	if code != 1 || stderr != "" || strings.Contains(stdout, "<b>eve") || !strings.Contains(stdout, "&lt;b&gt;eve") || !strings.Contains(stdout, "granular:scale") {
		t.Errorf("exit code %d, stderr %q: %s", code, stderr, stdout)
	}
}
