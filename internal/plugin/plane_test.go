//go:build integration

package plugin

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/server"
	"github.com/fieldperm/fieldperm/test/cluster"
)

// plane is a control plane with a fieldperm-webhook in this process.
type plane struct {
	// webhooks means that webhooks return conditions. /admit/uncovered asks them for the verbs of barriers only.
	webhooks bool
	t        *testing.T
	cluster  *cluster.Cluster
	admin    *cluster.User
	// asker is the user of the command. It may read the sources, and ask about others.
	asker *cluster.User
	flags *options
	// webhook is the address of fieldperm-webhook. client presents a certificate to it.
	webhook string
	client  *http.Client
	// undecided is the last error with which the command decided nothing.
	undecided error
}

// draws is a number of draws: all, or a quarter with -short.
func draws(all int) int {
	if testing.Short() {
		return (all + 3) / 4
	}
	return all
}

// newPlane runs a control plane and fieldperm-webhook, with more options for it.
func newPlane(t *testing.T, more ...func(*server.Options)) *plane {
	t.Helper()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	p := &plane{t: t, cluster: c}
	p.admin, err = c.User("admin", "system:masters")
	must(t, err)
	p.asker, err = c.User("asker")
	must(t, err)
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &p.asker.Kubeconfig
	p.flags = &options{cluster: flags, maxChecks: fieldperm.DefaultMaxChecks}

	p.kubectl("", "create", "-f", "../../config/crd")
	p.kubectl(definitions, "create", "-f", "-")
	p.kubectl(readers, "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/permissionschemas.fieldperm.dev", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/conditionalpolicies.fieldperm.dev", "crd/gadgets.example.com", "crd/gauges.example.com", "crd/broken.example.com", "crd/thieves.networking.k8s.io")
	p.kubectl("", "wait", "--for=condition=NamesAccepted=false", "--timeout=90s", "crd/contenders.example.com")
	p.aggregate()
	p.serve(more)
	return p
}

func (p *plane) kubectl(stdin string, args ...string) string {
	p.t.Helper()
	stdout, stderr, err := p.cluster.Kubectl(p.admin).Run(p.t.Context(), stdin, args...)
	if err != nil {
		p.t.Fatalf("kubectl %v: %v: %s", args, err, stderr)
	}
	return stdout
}

// aggregate adds an aggregated API server for a group, with permissions in its OpenAPI.
func (p *plane) aggregate() {
	p.t.Helper()
	document, err := os.ReadFile("../../schema/load/testdata/fischers.openapi.json")
	must(p.t, err)
	answers := map[string]string{
		"/apis":                               `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/apis/sea.example.com/v1":            `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"sea.example.com/v1","resources":[{"name":"fischers","singularName":"fischer","namespaced":true,"kind":"Fischer","verbs":["get","update"]}]}`,
		"/openapi/v3":                         `{"paths":{"apis/sea.example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/sea.example.com/v1?hash=1"}}}`,
		"/openapi/v3/apis/sea.example.com/v1": string(document),
	}
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	p.t.Cleanup(other.Close)
	at, err := url.Parse(other.URL)
	must(p.t, err)
	p.kubectl(fmt.Sprintf(`
{apiVersion: v1, kind: Service, metadata: {name: sea, namespace: default}, spec: {type: ExternalName, externalName: localhost, ports: [{port: %[1]s}]}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.sea.example.com}, spec: {group: sea.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 15, insecureSkipTLSVerify: true, service: {name: sea, namespace: default, port: %[1]s}}}
`, at.Port()), "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Available", "--timeout=90s", "apiservice/v1.sea.example.com")
	p.await("the API server publishes the documents of the other server", func(context.Context) (bool, error) {
		return strings.Contains(p.kubectl("", "get", "--raw", "/openapi/v3"), "apis/sea.example.com/v1"), nil
	})
}

// serve runs fieldperm-webhook until the test ends.
func (p *plane) serve(more []func(*server.Options)) {
	p.t.Helper()
	dir := p.t.TempDir()
	authority, err := cluster.NewAuthority("fieldperm")
	must(p.t, err)
	bundle, err := authority.Bundle()
	must(p.t, err)
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		must(p.t, os.WriteFile(file, content, 0o600))
		return file
	}
	certificate, key, err := authority.Issue(cluster.Leaf{Name: "fieldperm", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"127.0.0.1"}})
	must(p.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(p.t, err)
	o := server.NewOptions()
	o.Kubeconfig = p.admin.Kubeconfig
	o.SecureServing.Listener = listener
	o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile = write("tls.crt", certificate), write("tls.key", key)
	o.ClientCAFile = write("ca.crt", bundle)
	o.ShutdownDelay = 0
	o.APIServers = "own"
	for _, f := range more {
		f(o)
	}
	s, err := o.Complete(p.t.Context())
	must(p.t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(p.t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	p.t.Cleanup(func() {
		stop()
		must(p.t, <-done)
	})
	p.webhook = "https://" + listener.Addr().String()
	certificate, key, err = authority.Issue(cluster.Leaf{Name: "asker", Usage: x509.ExtKeyUsageClientAuth})
	must(p.t, err)
	p.client, err = clientOf(certificate, key, bundle)
	must(p.t, err)
	for _, check := range []string{"schemas", "policies", "authorization"} {
		p.await("fieldperm-webhook has read the "+check, func(context.Context) (bool, error) {
			answer, err := p.client.Get(p.webhook + "/readyz/" + check)
			if err != nil {
				return false, err
			}
			return answer.StatusCode == http.StatusOK, answer.Body.Close()
		})
	}
}

// grant gives each user verbs on all resources.
func (p *plane) grant(verbs map[string][]string) {
	p.t.Helper()
	var all strings.Builder
	for user, held := range verbs {
		quoted := make([]string, len(held))
		for i, verb := range held {
			quoted[i] = fmt.Sprintf("%q", verb)
		}
		fmt.Fprintf(&all, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[1]s}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: [%[2]s]}]}\n---\n"+
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, "+
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]}\n---\n", user, strings.Join(quoted, ", "))
	}
	p.kubectl(all.String(), "create", "-f", "-")
	// The API server's authorizer follows stored objects in order, so this last one marks the end.
	p.kubectl("", "create", "clusterrolebinding", "last", "--clusterrole=nobody", "--user=last")
	p.await("the grants are in force", func(context.Context) (bool, error) {
		out, _, _ := p.cluster.Kubectl(p.admin).Run(p.t.Context(), "", "auth", "can-i", "get", "pods", "--as=last")
		return strings.HasPrefix(out, "yes"), nil
	})
}

// draw puts PermissionSchemas and UncoveredPermissionSets in force. Their names are new in each round: if an object becomes faulty,
// fieldperm-webhook keeps its last valid form, which the command cannot know.
func (p *plane) draw(random *rand.Rand, round int) {
	p.t.Helper()
	p.kubectl("", "delete", "permissionschemas,uncoveredpermissionsets,conditionalpolicies", "--all")
	var all strings.Builder
	names := map[string][]string{}
	add := func(kind, resource, spec string) {
		name := fmt.Sprintf("round%d-%d", round, len(names[resource]))
		names[resource] = append(names[resource], name)
		fmt.Fprintf(&all, "{apiVersion: fieldperm.dev/v1alpha1, kind: %s, metadata: {name: %s}, spec: %s}\n---\n", kind, name, spec)
	}
	for _, spec := range permissionSchemas {
		if random.IntN(2) == 0 {
			add(v1alpha1.PermissionSchemaKind, v1alpha1.PermissionSchemaResource, spec)
		}
	}
	for _, spec := range sets {
		if random.IntN(2) == 0 {
			add(v1alpha1.UncoveredPermissionSetKind, v1alpha1.UncoveredPermissionSetResource, spec)
		}
	}
	for _, spec := range conditionalPolicies {
		if random.IntN(2) == 0 {
			add(v1alpha1.ConditionalPolicyKind, v1alpha1.ConditionalPolicyResource, spec)
		}
	}
	add(v1alpha1.ConditionalPolicyKind, v1alpha1.ConditionalPolicyResource, "{subjects: [{kind: User, name: nobody}], verbs: [create], resources: [{apiGroups: [example.com], resources: ['*']}], effect: Allow, condition: 'true'}")
	add(v1alpha1.PermissionSchemaKind, v1alpha1.PermissionSchemaResource, "{group: batch, kind: Job, permissions: [{path: .spec.suspend, verb: example.com/rest}]}")
	add(v1alpha1.UncoveredPermissionSetKind, v1alpha1.UncoveredPermissionSetResource, "{uncoveredPermissions: ['granular:suspension'], resources: [{apiGroups: [batch], resources: [cronjobs]}]}")
	p.kubectl(all.String(), "create", "-f", "-")
	p.t.Logf("round %d:\n%s", round, all.String())

	// Wait until every object has the status that fieldperm-webhook writes after a compile, and no other object remains.
	client, err := dynamic.NewForConfig(rest.CopyConfig(p.admin.Config))
	must(p.t, err)
	for resource := range names {
		p.await("fieldperm-webhook has compiled "+resource, func(ctx context.Context) (bool, error) {
			list, err := client.Resource(v1alpha1.GroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				seen, _, err := unstructured.NestedInt64(list.Items[i].Object, "status", "observedGeneration")
				if err != nil || seen != list.Items[i].GetGeneration() {
					return false, err
				}
			}
			return len(list.Items) == len(names[resource]), nil
		})
	}
}
