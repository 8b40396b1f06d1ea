//go:build integration

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// explained are the documents of the cluster. kubectl of 1.32 takes a text that begins with a brace for JSON.
const explained = `
---
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: colours}, spec: {group: example.com, kind: Gadget, permissions: [{path: .spec.colour, verb: example.com/colour, excluded: true}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: images}, spec: {uncoveredPermissions: ["granular:image"], resources: [{apiGroups: [apps], resources: [deployments]}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reads-some}, rules: [{apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reads-some}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-some}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: some}]}
`

// explainOf runs the command as a user.
func explainOf(t *testing.T, u *cluster.User, args ...string) (code int, stdout, problems string) {
	t.Helper()
	var out, warnings bytes.Buffer
	cmd := NewExplainCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append(args, "--kubeconfig", u.Kubeconfig, "--cache-dir", t.TempDir()))
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		warnings.WriteString(err.Error())
	}
	return ExitCode(err), out.String(), warnings.String()
}

// TestCluster_ExplainSaysWhereVerbsComeFrom: a built-in kind with a barrier of a set, and a custom resource with an annotation and a
// PermissionSchema, for a user who may read all sources, and for one who may read some.
func TestCluster_ExplainSaysWhereVerbsComeFrom(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	admin, err := c.User("admin", "system:masters")
	must(t, err)
	some, err := c.User("some")
	must(t, err)
	none, err := c.User("none")
	must(t, err)
	p := &plane{t: t, cluster: c, admin: admin}
	definition, err := os.ReadFile("../../cmd/kubectl-fieldperm/testdata/explain/gadgets.yaml")
	must(t, err)
	p.kubectl("", "create", "-f", "../../config/crd")
	p.kubectl(string(definition), "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/permissionschemas.fieldperm.dev", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/gadgets.example.com")
	p.kubectl(explained, "create", "-f", "-")

	for _, test := range []struct {
		args string
		want []string
	}{
		{"deploy.spec.template.spec.containers.image", []string{
			"KIND:       Deployment", "VERSION:    v1\n", "PATH:  .spec.template.spec.containers[*].image",
			"not this field: granular:image is a barrier of UncoveredPermissionSet images\n", "catalogue", "BARRIERS", "granular:image  always  UncoveredPermissionSet images",
		}},
		{"gg.spec", []string{
			"granular:specification  annotation of CustomResourceDefinition gadgets.example.com  .spec\n",
			"PermissionSchema colours", "subresource scale of CustomResourceDefinition gadgets.example.com", "barrier when self == true",
		}},
		{"gadgets.v1.example.com.spec.colour", []string{"not this field: granular:example.com/colour is a barrier\n", "always  PermissionSchema colours"}},
		{"deployments/scale.spec.replicas", []string{"KIND:       Scale", "granular:scale"}},
		{"events", []string{"KIND:       Event\nVERSION:    v1\n"}},
		{"permschema.spec", []string{"GROUP:      fieldperm.dev"}},
	} {
		code, stdout, problems := explainOf(t, admin, strings.Fields(test.args)...)
		if code != 0 || problems != "" {
			t.Errorf("%s: exit code %d, %s", test.args, code, problems)
		}
		for _, want := range test.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s lacks %q:\n%s", test.args, want, stdout)
			}
		}
	}

	code, stdout, problems := explainOf(t, admin, "--all", "-o", "html")
	if code != 0 || problems != "" || len(stdout) > 1<<20 || !strings.Contains(stdout, `"kind":"Gadget"`) || !strings.Contains(stdout, "UncoveredPermissionSet images") {
		t.Errorf("the page of all kinds: exit code %d, %d bytes, %s", code, len(stdout), problems)
	}
	t.Logf("%d bytes of all kinds of the cluster", len(stdout))

	if code, stdout, problems := explainOf(t, admin, "deployments.spec.replicas", "--api-version", "apps/v1beta1"); code != 0 || !strings.Contains(stdout, "granular:scale") ||
		problems != "warning: deployments of apps/v1beta1 are not served by this cluster: nobody can write them there\n" {
		t.Errorf("a version that is not served: exit code %d, %s", code, problems)
	}

	// Who may not list definitions, PermissionSchemas and sets gets the rest, and what is missing. Permissions take a moment.
	p.await("the role of some is in force", func(context.Context) (bool, error) {
		out, _, _ := c.Kubectl(admin).Run(t.Context(), "", "auth", "can-i", "list", "apiservices", "--as=some")
		return strings.HasPrefix(out, "yes"), nil
	})
	code, stdout, problems = explainOf(t, some, "deployments.spec.replicas", "-o", "json")
	var a answer
	must(t, json.Unmarshal([]byte(stdout), &a))
	if code != 2 || a.Kind != "Deployment" || len(a.Missing) != 2 || !strings.Contains(a.Missing[0].Error, "allow list on customresourcedefinitions.apiextensions.k8s.io") ||
		!strings.Contains(a.Missing[1].Error, "allow list on uncoveredpermissionsets.fieldperm.dev") || strings.Count(problems, "warning: the answer lacks ") != 1 || !strings.Contains(problems, "the ClusterRole fieldperm-rules-viewer") {
		t.Errorf("exit code %d, missing %+v, %s", code, a.Missing, problems)
	}
	// Of a custom resource nothing can be said then.
	code, stdout, problems = explainOf(t, none, "gadgets")
	if code != 2 || stdout != "" || !strings.Contains(problems, `kind "gadgets" is not known`) || !strings.Contains(problems, "allow list on customresourcedefinitions.apiextensions.k8s.io") {
		t.Errorf("exit code %d, %q, %s", code, stdout, problems)
	}

	compareShortNames(t, admin)
}

// compareShortNames compares the list of short names with what the API server publishes.
func compareShortNames(t *testing.T, u *cluster.User) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(u.Config)
	must(t, err)
	lists, err := client.ServerPreferredResources()
	must(t, err)
	seen := 0
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(gv.Group, "fieldperm.dev") || gv.Group == "example.com" {
				continue
			}
			seen += len(r.ShortNames)
			if got := shortNames(runtimeschema.GroupResource{Group: gv.Group, Resource: r.Name}); !slices.Equal(got, r.ShortNames) {
				t.Errorf("%s of %s: short names %q, the API server has %q", r.Name, list.GroupVersion, got, r.ShortNames)
			}
		}
	}
	if seen < 20 {
		t.Errorf("the API server publishes %d short names", seen)
	}
}
