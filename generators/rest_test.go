package generators

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	webhookaccessor "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// service returns options for the cluster only; another component provides the certificates.
func service() Options {
	return Options{REST: true, Options: webhooks.Options{Service: &webhooks.ServiceReference{Namespace: "fieldperm-system", Name: "fieldperm"}}}
}

func TestClusterManifests(t *testing.T) {
	files, err := ClusterManifests(service())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if bytes.Contains(f.Data, []byte("caBundle:")) || bytes.Contains(f.Data, []byte("url:")) {
			t.Errorf("%s has an empty CA bundle or URL", f.Name)
		}
	}
	if want := []string{"webhooks.yaml", "guard.yaml", "rbac.yaml", "flowschema.yaml"}; !slices.Equal(names, want) {
		t.Errorf("files are %q, want %q", names, want)
	}
	if files, err := ClusterManifests(Options{}); err != nil || len(files) != 3 {
		t.Errorf("static topology: %d files, %v; want guard.yaml, rbac.yaml and flowschema.yaml", len(files), err)
	}
	for want, o := range map[string]Options{
		`service URL ""`:              {REST: true},
		"CA bundle: has text":         {REST: true, Options: webhooks.Options{Service: service().Service, CABundle: []byte("x")}},
		"choose the REST config":      {Options: webhooks.Options{Service: service().Service}},
		`user "a\nb"`:                 {REST: true, Options: webhooks.Options{Service: service().Service, User: "a\nb"}},
		`service "a" in namespace ""`: {REST: true, Options: webhooks.Options{Service: &webhooks.ServiceReference{Name: "a"}}},
	} {
		if _, err := ClusterManifests(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want one with %q", o, err, want)
		}
	}
}

// The generated file must equal GranularConfiguration, which the enforcement proof and the guard use.
func TestA5_GranularConfiguration(t *testing.T) {
	files, err := ClusterManifests(service())
	if err != nil {
		t.Fatal(err)
	}
	var written admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(file(t, files, fileWebhooks), &written); err != nil {
		t.Fatal(err)
	}
	got := webhooks.GranularConfiguration(service().Options)
	if written.Name != got.Name || !slices.Equal(got.Finalizers, []string{webhooks.Finalizer}) || !slices.Equal(written.Finalizers, got.Finalizers) || written.Labels[webhooks.NameLabel] != webhooks.RESTName {
		t.Errorf("metadata is %+v, written %+v", got.ObjectMeta, written.ObjectMeta)
	}
	if len(got.Webhooks) != 2 || got.Webhooks[0].Name != webhooks.GranularWebhook || got.Webhooks[1].Name != webhooks.SchemasWebhook {
		t.Fatalf("webhooks are %v", got.Webhooks)
	}
	granular := got.Webhooks[0]
	if granular.MatchConditions[0].Expression != webhooks.LacksGeneric || *granular.FailurePolicy != admissionregistrationv1.Fail || *granular.ClientConfig.Service.Path != webhooks.GranularPath {
		t.Errorf("granular is %+v", granular)
	}
	if len(webhooks.UncoveredConfiguration(granular.ClientConfig, nil).Webhooks) != 0 {
		t.Error("a webhook without barriers")
	}
}

// fieldperm's own Pods can start while fieldperm is down, whatever barriers exist.
func TestW2_UncoveredLeavesOutItsOwnNamespace(t *testing.T) {
	o := service()
	w := webhooks.UncoveredWebhook(o.ClientConfig(webhooks.UncoveredPath), webhooks.Writes.On([]v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*/*"}}}))
	accessor := webhookaccessor.NewValidatingWebhookAccessor("uid", webhooks.UncoveredName, &w)
	matcher := accessor.GetCompiledMatcher(cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())))
	for _, c := range []struct {
		kind, resource, namespace string
		want                      bool
	}{
		{"Pod", "pods", "fieldperm-system", false},
		{"Pod", "pods", "default", true},
		{"Namespace", "namespaces", "fieldperm-system", true},
		{"Node", "nodes", "", true},
	} {
		gvk := runtimeschema.GroupVersionKind{Version: "v1", Kind: c.kind}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": c.kind, "metadata": map[string]any{"name": "x"}}}
		attributes := admission.NewAttributesRecord(object, nil, gvk, c.namespace, "x", gvk.GroupVersion().WithResource(c.resource), "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "alice"})
		result := matcher.Match(context.Background(), &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk, VersionedObject: admission.NewLazyObject(object)}, nil, nil)
		if result.Error != nil || result.Matches != c.want {
			t.Errorf("%s in %q: called is %t, %v; want %t", c.resource, c.namespace, result.Matches, result.Error, c.want)
		}
	}
}
