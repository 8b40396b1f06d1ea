package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The static Pod needs nothing from the cluster, because the cluster is not running when the kubelet starts the Pod. It listens on an
// address that only the host can reach.
func TestStatic_PodNeedsNoCluster(t *testing.T) {
	object, err := strictly(read(t, "config/static/fieldperm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod := object.(*corev1.Pod)
	for _, v := range pod.Spec.Volumes {
		if v.HostPath == nil {
			t.Errorf("volume %q is none of the host", v.Name)
		}
	}
	if pod.Spec.ServiceAccountName != "" || !pod.Spec.HostNetwork {
		t.Errorf("service account %q, host network %t", pod.Spec.ServiceAccountName, pod.Spec.HostNetwork)
	}
	container := pod.Spec.Containers[0]
	for _, want := range []string{"--bind-address=127.0.0.1", "--api-servers=own", "--uncovered-configuration=fieldperm-uncovered", "--webhook-url=https://127.0.0.1:9443",
		"--static-manifests=/etc/kubernetes/fieldperm/admission", "--kube-apiserver-authorization-config=/etc/kubernetes/fieldperm/authorization-configuration.yaml",
	} {
		if !slices.Contains(container.Args, want) {
			t.Errorf("the Pod lacks %s", want)
		}
	}
	// A file that is mounted on its own does not change in the Pod when it is replaced.
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil && (v.HostPath.Type == nil || *v.HostPath.Type != corev1.HostPathDirectory) {
			t.Errorf("volume %q is no directory", v.Name)
		}
	}
	for _, argument := range container.Args {
		if _, path, isFile := strings.Cut(argument, "=/"); isFile && !strings.HasPrefix("/"+path, container.VolumeMounts[0].MountPath) {
			t.Errorf("%s is not in a mounted directory", argument)
		}
	}
}

// The configurations of kubeadm, kind and k3s name the same two files.
func TestStatic_FilesNameTheSame(t *testing.T) {
	for _, name := range []string{"kubeadm/cluster-configuration.yaml", "kubeadm/kube-apiserver.yaml", "kind.yaml", "k3s.yaml"} {
		text := read(t, "config/static/"+name)
		var fields map[string]any
		if err := yaml.UnmarshalStrict(text, &fields); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for flag, file := range map[string]string{
			"admission-control-config-file": "/etc/kubernetes/fieldperm/admission-configuration.yaml",
			"authorization-config":          "/etc/kubernetes/fieldperm/authorization-configuration.yaml",
		} {
			if !bytes.Contains(text, []byte(flag)) || !bytes.Contains(text, []byte(file)) {
				t.Errorf("%s does not give %s as --%s", name, file, flag)
			}
		}
	}
}

// The files from which the image is built are visible for the builder.
func TestImage_BuilderSeesEveryPackage(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/fieldperm-webhook")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	ignore := string(read(t, ".dockerignore"))
	for _, path := range strings.Fields(string(out)) {
		folder, ours := strings.CutPrefix(path, "github.com/fieldperm/fieldperm/")
		if !ours {
			continue
		}
		if top, _, _ := strings.Cut(folder, "/"); top != "cmd" {
			folder = top
		}
		if !strings.Contains(ignore, "\n!"+folder+"\n") {
			t.Errorf(".dockerignore keeps %s from the builder: add !%s", path, folder)
		}
	}
}
