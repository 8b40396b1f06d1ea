//go:build integration

package deploy

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
)

// An installation by Helm has the same objects as an installation by kustomize. Helm creates the namespace by a flag of its own, and runs a
// Job before it deletes, which kustomize does not support.
func TestChart_RendersTheSameObjectsAsKustomize(t *testing.T) {
	for _, o := range overlays(t) {
		t.Run(o.name, func(t *testing.T) {
			want, got := objects(t, o.kustomize(t)), objects(t, o.helm(t))
			delete(want, "Namespace /fieldperm-system")
			for name, fields := range got {
				u := unstructured.Unstructured{Object: fields}
				annotations := u.GetAnnotations()
				if annotations["helm.sh/hook"] != "" {
					delete(got, name)
					continue
				}
				delete(annotations, "helm.sh/resource-policy")
				u.SetAnnotations(annotations)
			}
			if difference := diff.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); difference != "" {
				t.Fatalf("kustomize (-) and Helm (+) render different objects:\n%s", difference)
			}
			if len(want) < 15 {
				t.Errorf("there are %d objects only", len(want))
			}
			for name := range want {
				if difference := diff.Diff(want[name], got[name]); difference != "" {
					t.Errorf("%s: kustomize (-), Helm (+):\n%s", name, difference)
				}
			}
		})
	}
}

func TestChart_PassesLint(t *testing.T) {
	for _, o := range overlays(t) {
		out := run(t, "helm", append([]string{"lint", "--strict", chart}, o.values...)...)
		if !strings.Contains(string(out), " 0 chart(s) failed") {
			t.Errorf("%s: %s", o.name, out)
		}
	}
}

// Every value that is not a default appears in the rendered objects, and the objects decode.
func TestChart_EveryValue(t *testing.T) {
	text := run(t, "helm", "template", "other", chart, "--namespace", "elsewhere",
		"--set", "replicas=1", "--set", "image.tag=v9", "--set", "image.pullSecrets[0].name=pull", "--set", "certificates.secretName=own-tls",
		"--set", "clientCA.configMap=own-ca", "--set", "service.clusterIP=10.96.0.20", "--set", "service.annotations.a=b",
		"--set", "webhook.timeoutSeconds=5", "--set", "webhook.guard=false", "--set", "crds.install=false",
		"--set-string", "schemas.a\\.yaml=kind: PermissionSchema", "--set", "priorityClassName=", "--set", "networkPolicy.apiServerPorts={16443}",
		"--set", "authorizationConfig.kind=AuthorizationConfiguration", "--set-string", "authenticationConfig=kind: AuthenticationConfiguration", "--set", "webhookTokenUsers={a,b}",
		"--set", "extraVolumes[0].name=more", "--set", "extraVolumes[0].secret.secretName=kubeconfigs", "--set", "extraVolumeMounts[0].name=more", "--set", "extraVolumeMounts[0].mountPath=/etc/more",
		"--set", "extraArgs={-v=4}", "--set", "nodeSelector.disk=ssd", "--set", "tolerations[0].operator=Exists", "--set", "release.enabled=false")
	found := objects(t, text)
	for _, name := range []string{
		"Deployment.apps elsewhere/fieldperm", "ConfigMap elsewhere/fieldperm-schemas", "ConfigMap elsewhere/fieldperm-authorization", "ConfigMap elsewhere/fieldperm-authentication", "Role.rbac.authorization.k8s.io elsewhere/fieldperm-certificates",
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io /fieldperm",
	} {
		if found[name] == nil {
			t.Errorf("%s is not there", name)
		}
	}
	for _, want := range []string{
		"fieldperm-webhook:v9", "name: pull", "- --tls-secret=elsewhere/own-tls", "resourceNames: [own-tls]", "name: own-ca", `clusterIP: "10.96.0.20"`, "a: b",
		"timeoutSeconds: 5", "--permission-schemas=/etc/fieldperm/schemas", "--authorization-config=/etc/fieldperm/authorization/", "--authentication-config=/etc/fieldperm/authentication/",
		`- "--webhook-token-users=a,b"`, "kind: AuthorizationConfiguration", "kind: AuthenticationConfiguration", "secretName: kubeconfigs", "mountPath: /etc/more",
		"port: 16443", `- "-v=4"`, "disk: ssd", "operator: Exists",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not there", want)
		}
	}
	for _, unwanted := range []string{"fieldperm-system", "priorityClassName", "PodDisruptionBudget", "kind: ValidatingAdmissionPolicy", "CustomResourceDefinition\n", "kind: Job"} {
		if strings.Contains(string(text), "\n"+unwanted) || unwanted == "fieldperm-system" && strings.Contains(string(text), unwanted) {
			t.Errorf("%q is there", unwanted)
		}
	}
}
