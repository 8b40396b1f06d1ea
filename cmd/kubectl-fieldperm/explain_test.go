package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const explainFiles = " --crd explain/gadgets.yaml --permissions explain/documents.yaml"

// explainCases are the answers of explain that are in testdata/explain/golden/NAME.FORMAT.
var explainCases = []struct{ name, args, formats string }{
	{"kind", "deployments --offline", "text"},
	{"field", "deploy.spec.template.spec.containers.image --offline", "text json yaml"},
	{"one_level", "deployments.v1.apps.spec.strategy --offline", "text json"},
	{"items_of_a_list", "pods.spec.volumes --offline", "text"},
	{"key_of_a_map", `ns.metadata.labels["pod-security.kubernetes.io/enforce"] --offline`, "text"},
	{"key_with_its_own_verb", `cm.metadata.annotations["applyset.kubernetes.io/x"] --offline`, "text json"},
	{"part_of_an_atomic_value", "cm.metadata.ownerReferences.blockOwnerDeletion --offline", "text json"},
	{"old_version", "horizontalpodautoscalers --api-version autoscaling/v1 --offline", "text"},
	{"type_that_contains_itself", "crd.spec.versions.schema.openAPIV3Schema --offline", "text"},
	{"scale_of_a_built_in_kind", "deployments/scale.spec.replicas --offline", "text json"},
	{"status", "deployments/status --offline", "text"},
	{"binding", "pods/binding.target --offline", "text"},
	{"custom_resource", "gadgets --recursive" + explainFiles, "text json yaml"},
	{"barrier_of_a_PermissionSchema", "gg.spec.colour" + explainFiles, "text json"},
	{"barrier_when", "Gadget.spec.privileged" + explainFiles, "text json"},
	{"barrier_of_a_set_under_a_condition", "gadgets.spec.count" + explainFiles, "text json"},
	{"barrier_of_a_set_for_one_of_all", "gadgets.spec.parts.weight" + explainFiles, "text json"},
	{"barrier_of_a_set_for_one", `gadgets.spec.parts[name="engine"].weight` + explainFiles, "text json"},
	{"barrier_of_a_set_on_the_status", "gadgets.status.count" + explainFiles, "text json"},
	{"scale_of_a_custom_resource", "gadgets/scale.spec.replicas" + explainFiles, "text json"},
}

func TestExplainGolden(t *testing.T) {
	t.Chdir("testdata")
	goldens := map[string]bool{}
	for _, test := range explainCases {
		for format := range strings.FieldsSeq(test.formats) {
			file := filepath.Join("explain", "golden", test.name+"."+format)
			goldens[file] = true
			t.Run(test.name+"/"+format, func(t *testing.T) {
				code, stdout, stderr := execute(t, "", append([]string{"explain", "-o", format}, strings.Fields(test.args)...)...)
				if code != 0 || stderr != "" {
					t.Errorf("exit code %d, stderr %q", code, stderr)
				}
				golden(t, file, stdout)
			})
		}
	}
	files, err := filepath.Glob("explain/golden/*")
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
func TestExplainRefuses(t *testing.T) {
	t.Chdir("testdata")
	for args, want := range map[string]string{
		"deploymints --offline":                         `kind "deploymints" is not known: use "deployments", or give its CustomResourceDefinition with --crd`,
		"gizmos --offline":                              `kind "gizmos" is not known: name one that kubectl api-resources lists`,
		"deploy.spec.replica --offline":                 `".spec" has no field "replica": use "replicas"`,
		"deploy.spec.zzz --offline":                     `use one of minReadySeconds, paused`,
		"deploy.spec.replicas.x --offline":              `has a step below ".spec.replicas", where no field is known: leave it out`,
		"deploy.spec[*] --offline":                      `".spec" is no list or map: name one of its fields: minReadySeconds`,
		"deploy.spec[ --offline":                        `a path is made of .field`,
		"deploy/scal --offline":                         `"deployments" has no subresource "scal" with fields: use scale or status`,
		"pods/eviction --offline":                       `use binding or`,
		"configmaps/status --offline":                   `"configmaps" has no subresource with fields: leave "status" out`,
		"deploy --api-version apps/v3 --offline":        `--api-version "apps/v3": has no "deploy": use apps/v1`,
		"deploy -o wide --offline":                      `--output "wide" is not known: use text, json, yaml or html`,
		"deploy --all -o html --offline":                `--all is every kind, and "deploy" is one: drop one of the two`,
		"--all --offline":                               `--all makes a page: add -o html, or name a kind`,
		"--all --api-version v1 -o html":                `drop one of the two`,
		"--offline":                                     `KIND is missing: name a kind`,
		"deploy --crd explain/none.yaml":                `explain/none.yaml`,
		"deploy --server https://127.0.0.1:1":           `or give --offline`,
		"scales --offline":                              `kind "scales" is not known`,
		"replicationcontrollers/scale.spec.x --offline": `has no field "x": use one of replicas`,
		"gadgets.spec.parts.name.x" + explainFiles:      `where no field is known`,
		"gadgets/scal" + explainFiles:                   `use scale or status`,
		`ns.metadata.labels["a" --offline`:              `is not closed`,
		"deploy.spec.template.spec.container --offline": `use "containers"`,
		"deployments.v9.apps.spec --offline":            `"v9"`,
	} {
		code, stdout, stderr := execute(t, "", append([]string{"explain"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.HasPrefix(stderr, "error: ") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

func TestExplainPage(t *testing.T) {
	t.Chdir("testdata")
	code, all, stderr := execute(t, "", "explain", "--all", "-o", "html", "--offline")
	if code != 0 || stderr != "" || len(all) > 1<<20 || !strings.HasPrefix(all, "<!DOCTYPE html>") {
		t.Errorf("exit code %d, %d bytes, stderr %q", code, len(all), stderr)
	}
	t.Logf("%d bytes of all kinds", len(all))
	code, one, stderr := execute(t, "", append([]string{"explain", "gadgets", "-o", "html"}, strings.Fields(explainFiles)...)...)
	if code != 0 || stderr != "" || len(one) >= len(all) || strings.Count(one, `"kind":"`) != 1 || !strings.Contains(one, "example.com/weight") {
		t.Errorf("exit code %d, %d bytes, stderr %q", code, len(one), stderr)
	}
}

// Without a terminal there are no colours and no marks.
func TestExplainIsPlainWithoutATerminal(t *testing.T) {
	t.Chdir("testdata")
	_, stdout, _ := execute(t, "", append([]string{"explain", "gadgets", "--recursive"}, strings.Fields(explainFiles)...)...)
	if strings.ContainsAny(stdout, "\x1b■◆") {
		t.Errorf("the output has colours or marks: %q", stdout)
	}
}

// closedPipe is the output of a command whose reader has ended.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

func TestExplainEndsQuietlyWithItsReader(t *testing.T) {
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"explain", "deployments", "--offline"}, genericiooptions.IOStreams{In: strings.NewReader(""), Out: closedPipe{}, ErrOut: &stderr})
	if code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

// Documents may have names with characters that move the cursor or reorder text.
func TestExplainPrintsWhatOthersNamed(t *testing.T) {
	raw, err := os.ReadFile("testdata/explain/gadgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "gadgets.yaml")
	hostile := regexp.MustCompile(`colour: \{type: string\}`).ReplaceAllString(string(raw), `"co\u202elour\u001b[31m": {type: string}`)
	if err := os.WriteFile(file, []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "json"} {
		code, stdout, stderr := execute(t, "", "explain", "gadgets.spec", "-o", format, "--crd", file)
		if code != 0 || strings.ContainsAny(stdout, "\x1b\u202e") || !strings.Contains(stdout, `\u202e`) {
			t.Errorf("%s: exit code %d, stderr %q, stdout %q", format, code, stderr, stdout)
		}
	}
}
