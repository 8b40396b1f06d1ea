//go:build integration

package deploy

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"
)

// components are the folders of config that put a file into fieldperm's Pods, with the corresponding value of the chart.
var components = map[string]string{"authorization-chain": "authorizationConfig", "authentication": "authenticationConfig"}

// example is the file in a component's folder.
func example(component string) string {
	name, _ := strings.CutSuffix(components[component], "Config")
	return path.Join("config", component, name+".yaml")
}

// withComponents is the overlay self-managed with both components, as kustomize renders it.
func withComponents(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "config"))); err != nil {
		t.Fatal(err)
	}
	own := "resources: [../self-managed]\ncomponents: [../authorization-chain, ../authentication]\n"
	if err := os.MkdirAll(filepath.Join(dir, "own"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "own", "kustomization.yaml"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, "kustomize", "build", filepath.Join(dir, "own"))
}

// byValues are the objects that the chart renders with these arguments.
func byValues(t *testing.T, arguments ...string) map[string]map[string]any {
	t.Helper()
	return objects(t, run(t, "helm", append([]string{"template", "fieldperm", chart, "--namespace", "fieldperm-system"}, arguments...)...))
}

const deployment = "Deployment.apps fieldperm-system/fieldperm"

func TestKEP3221_KEP3331_ComponentsAreTheChartsValues(t *testing.T) {
	var arguments []string
	for component, value := range components {
		arguments = append(arguments, "--set-file", value+"="+filepath.Join(root, filepath.FromSlash(example(component))))
	}
	want, got := objects(t, withComponents(t)), byValues(t, arguments...)
	for _, name := range []string{deployment, "ConfigMap fieldperm-system/fieldperm-authorization", "ConfigMap fieldperm-system/fieldperm-authentication"} {
		if want[name] == nil {
			t.Fatalf("kustomize makes no %s: %v", name, slices.Sorted(maps.Keys(want)))
		}
		if difference := diff.Diff(want[name], got[name]); difference != "" {
			t.Errorf("%s: kustomize (-), Helm (+):\n%s", name, difference)
		}
	}
	plain := objects(t, overlays(t)[0].kustomize(t))
	if len(want) != len(plain)+len(components) {
		t.Errorf("with the components there are %d objects, without %d", len(want), len(plain))
	}
}

// A value as an object has the same effect as the same value as text.
func TestKEP3221_KEP3331_ObjectsAndTextSayTheSame(t *testing.T) {
	for component, value := range components {
		text := read(t, example(component))
		var want map[string]any
		if err := yaml.UnmarshalStrict(text, &want); err != nil {
			t.Fatal(err)
		}
		values, err := yaml.Marshal(map[string]any{value: want})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, values, 0o600); err != nil {
			t.Fatal(err)
		}
		name, _ := strings.CutSuffix(value, "Config")
		data := byValues(t, "--values", file)["ConfigMap fieldperm-system/fieldperm-"+name]["data"].(map[string]any)
		var got map[string]any
		if err := yaml.UnmarshalStrict([]byte(data[name+".yaml"].(string)), &got); err != nil || len(data) != 1 {
			t.Fatalf("%s: %v in %v", value, err, data)
		}
		if difference := diff.Diff(want, got); difference != "" {
			t.Errorf("%s: text (-), object (+):\n%s", value, difference)
		}
	}
}

// A text that YAML would fold or end arrives unchanged.
func TestKEP3221_TextArrivesUnchanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chain.yaml")
	want := "  # begins indented {{ .Values }}\r\n---\nkind: AuthorizationConfiguration\t \n\n\n"
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	data := byValues(t, "--set-file", "authorizationConfig="+file)["ConfigMap fieldperm-system/fieldperm-authorization"]["data"].(map[string]any)
	if data["authorization.yaml"] != want {
		t.Errorf("got %q, want %q", data["authorization.yaml"], want)
	}
}

// A change of a file changes only its ConfigMap: the Pods stay, and read the new file.
func TestKEP3221_KEP3331_AChangeRestartsNoPod(t *testing.T) {
	for _, value := range components {
		before, after := byValues(t, "--set", value+".kind=A"), byValues(t, "--set", value+".kind=B")
		var changed []string
		for name := range before {
			if diff.Diff(before[name], after[name]) != "" {
				changed = append(changed, name)
			}
		}
		name, _ := strings.CutSuffix(value, "Config")
		if !slices.Equal(changed, []string{"ConfigMap fieldperm-system/fieldperm-" + name}) {
			t.Errorf("%s: %v changed", value, changed)
		}
	}
}

// Every file that a flag names is in a folder that is mounted as a whole: a file that is mounted by subPath never changes.
func TestKEP3221_KEP3331_FilesAreMountedAsFolders(t *testing.T) {
	made := objects(t, withComponents(t))
	for name, fields := range map[string]map[string]any{"kustomize": made[deployment], "Helm": byValues(t, "--set", "authorizationConfig.a=b", "--set", "authenticationConfig.a=b")[deployment]} {
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		files := 0
		for _, argument := range pod.Containers[0].Args {
			flag, file, _ := strings.Cut(argument, "=")
			if flag != "--authorization-config" && flag != "--authentication-config" {
				continue
			}
			files++
			if err := mounted(pod, file, made); err != nil {
				t.Errorf("%s: %s: %v", name, argument, err)
			}
		}
		if files != 2 {
			t.Errorf("%s: %d files are named, want 2", name, files)
		}
	}
}

// mounted returns the reason why a file is not in a Pod.
func mounted(pod corev1.PodSpec, file string, made map[string]map[string]any) error {
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.MountPath != path.Dir(file) {
			continue
		}
		if m.SubPath != "" || m.SubPathExpr != "" || !m.ReadOnly {
			return fmt.Errorf("is mounted as %+v", m)
		}
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if at < 0 || pod.Volumes[at].ConfigMap == nil {
			return fmt.Errorf("volume %q is no ConfigMap", m.Name)
		}
		data, _ := made["ConfigMap fieldperm-system/"+pod.Volumes[at].ConfigMap.Name]["data"].(map[string]any)
		if data[path.Base(file)] == nil {
			return fmt.Errorf("ConfigMap %q has no such file", pod.Volumes[at].ConfigMap.Name)
		}
		return nil
	}
	return fmt.Errorf("its folder is not mounted")
}

// The chart refuses a configuration that fieldperm would refuse at its start.
func TestChart_RefusesTokenUsersWithoutIssuers(t *testing.T) {
	for want, arguments := range map[string][]string{
		"webhookTokenUsers: needs authenticationConfig": {"--set", "webhookTokenUsers={a}"},
		"webhookTokenUsers":                             {"--set-json", `webhookTokenUsers=["a,b"]`, "--set", "authenticationConfig.a=b"},
		"authorizationConfig":                           {"--set-json", "authorizationConfig=[]"},
	} {
		command := exec.CommandContext(t.Context(), program(t, "helm"), append([]string{"template", "fieldperm", chart}, arguments...)...)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want an error with %q:\n%s", arguments, err, want, out)
		}
	}
}
