package generators

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/manifest"
	webhookaccessor "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/manifest/loader"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// checkAdmission reads the file, and the files that it names, in the way kube-apiserver does.
func checkAdmission(t *testing.T, path string, static bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file apiserverv1.AdmissionConfiguration
	if err := yaml.UnmarshalStrict(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Plugins) != 1 || file.Plugins[0].Name != "ValidatingAdmissionWebhook" {
		t.Fatalf("plugins are %v", file.Plugins)
	}
	plugin, err := config.LoadConfig(strings.NewReader(string(file.Plugins[0].Configuration.Raw)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(plugin.KubeConfigFile); err != nil {
		t.Error(err)
	}
	if !static {
		if plugin.StaticManifestsDir != "" {
			t.Errorf("reads static manifests in %q", plugin.StaticManifestsDir)
		}
		return
	}
	documents, _, err := manifest.LoadFiles(plugin.StaticManifestsDir)
	if err != nil || len(documents) != 1 {
		t.Errorf("%s holds %d documents, want 1; %v", plugin.StaticManifestsDir, len(documents), err)
	}
}

func configuration(t *testing.T, o Options) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	out := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(file(t, manifests(t, o), fileStatic), out); err != nil {
		t.Fatal(err)
	}
	if err := manifest.ValidateManifestName(out.Name, fileStatic, map[string]string{}); err != nil {
		t.Error(err)
	}
	for _, w := range out.Webhooks {
		if err := loader.ValidateWebhookClientConfig(w.Name, out.Name, fileStatic, w.ClientConfig); err != nil {
			t.Error(err)
		}
	}
	return out
}

func TestW1_W2_Webhooks(t *testing.T) {
	webhooks := all(t)
	rules := map[string][]string{}
	for _, w := range webhooks {
		name, _, _ := strings.Cut(w.Name, ".")
		if want := "https://127.0.0.1:9443/admit/" + name; *w.ClientConfig.URL != want {
			t.Errorf("%s: URL is %s, want %s", w.Name, *w.ClientConfig.URL, want)
		}
		policy := admissionregistrationv1.Fail
		if name == "schemas" {
			// W3: no write of a CustomResourceDefinition waits for fieldperm because of this webhook.
			policy = admissionregistrationv1.Ignore
		}
		if *w.FailurePolicy != policy || *w.MatchPolicy != admissionregistrationv1.Equivalent ||
			*w.SideEffects != admissionregistrationv1.SideEffectClassNone || len(w.MatchConditions) == 0 || w.NamespaceSelector != nil || w.ObjectSelector != nil {
			t.Errorf("%s: %+v", w.Name, w)
		}
		operations := []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}
		if name == "granular" {
			operations = append(operations, "DELETE") // A policy may allow it under a condition.
		}
		for _, rule := range w.Rules {
			want := operations
			if slices.Equal(rule.Resources, []string{"pods/attach", "pods/exec", "pods/portforward"}) {
				want = []admissionregistrationv1.OperationType{"CONNECT"}
			}
			if !slices.Equal(rule.Operations, want) || !slices.Equal(rule.APIVersions, []string{"*"}) {
				t.Errorf("%s: rule %+v", w.Name, rule)
			}
			for _, resource := range rule.Resources {
				rules[name] = append(rules[name], rule.APIGroups[0]+"/"+resource)
			}
		}
	}
	for name, want := range map[string][]string{
		"granular":  {"*/*/*", "/pods/attach", "/pods/exec", "/pods/portforward"},
		"uncovered": {"apiextensions.k8s.io/customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions/status", "example.com/widgets"},
		"schemas":   {"apiextensions.k8s.io/customresourcedefinitions", "fieldperm.dev/conditionalpolicies", "fieldperm.dev/permissionschemas", "fieldperm.dev/uncoveredpermissionsets"},
	} {
		if !slices.Equal(rules[name], want) {
			t.Errorf("%s: rules are %v, want %v", name, rules[name], want)
		}
	}
}

// A8: the static manifest has only the webhook granular, so that a new barrier does not require a change of the manifest.
func TestA8_TheStaticManifestHasGranularAlone(t *testing.T) {
	found := configuration(t, options(t)).Webhooks
	if len(found) != 1 || found[0].Name != webhooks.GranularWebhook {
		t.Errorf("webhooks are %v", found)
	}
}

// all returns the webhooks: that of the static manifest, and those that fieldperm keeps beside it.
func all(t *testing.T) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	o := options(t)
	kept := webhooks.UncoveredConfiguration(webhooks.ClientConfigAt(o.ServiceURL, webhooks.UncoveredPath, o.CABundle), webhooks.Writes.On(barriers())).Webhooks
	return slices.Concat(configuration(t, o).Webhooks, kept, []admissionregistrationv1.ValidatingWebhook{webhooks.NewSchemasWebhook(webhooks.ClientConfigAt(o.ServiceURL+"/", webhooks.SchemasPath, o.CABundle))})
}

// called evaluates a webhook's condition as the API server does.
func called(t *testing.T, webhookName string, operation admission.Operation, subresource string, caller user.Info, authz authorizer.AuthorizerFunc) bool {
	t.Helper()
	webhooks := all(t)
	i := slices.IndexFunc(webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == webhookName+".fieldperm.dev" })
	accessor := webhookaccessor.NewValidatingWebhookAccessor("uid", "fieldperm", &webhooks[i])
	matcher := accessor.GetCompiledMatcher(cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())))
	gvk := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}}}
	var old, options runtime.Object = object, &metav1.UpdateOptions{}
	if operation == admission.Create {
		old, options = nil, &metav1.CreateOptions{}
	}
	attributes := admission.NewAttributesRecord(object, old, gvk, "default", "web", gvk.GroupVersion().WithResource("deployments"), subresource, operation, options, false, caller)
	result := matcher.Match(context.Background(), &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: gvk, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old),
	}, nil, authz)
	if result.Error != nil {
		t.Fatalf("%s: %v", webhookName, result.Error)
	}
	return result.Matches
}

func TestW1_GranularSkipsHoldersOfTheGenericVerbOnly(t *testing.T) {
	const rbac, ours = `RBAC: allowed by ClusterRoleBinding "x"`, "granular: alice holds the marker"
	for name, c := range map[string]struct {
		operation admission.Operation
		reasons   map[string]string // verb to the reason of its Allow
		want      bool
	}{
		"create by a holder":              {admission.Create, map[string]string{"create": rbac}, false},
		"create by system:masters":        {admission.Create, map[string]string{"create": ""}, false},
		"create by a holder of update":    {admission.Create, map[string]string{"update": rbac, "patch": rbac}, true},
		"create by the marker":            {admission.Create, map[string]string{"create": ours, "granular": rbac}, true},
		"create without a user":           {admission.Create, nil, true},
		"update by a holder of both":      {admission.Update, map[string]string{"update": rbac, "patch": rbac}, false},
		"update by a holder of update":    {admission.Update, map[string]string{"update": rbac, "patch": ours}, false},
		"update by a holder of patch":     {admission.Update, map[string]string{"update": ours, "patch": rbac}, false},
		"update by a holder of create":    {admission.Update, map[string]string{"create": rbac}, true},
		"update by the marker":            {admission.Update, map[string]string{"update": ours, "patch": ours, "granular": rbac}, true},
		"A6: update, the marker is gone":  {admission.Update, map[string]string{"update": ours}, true},
		"A4: our own Allow is no generic": {admission.Update, map[string]string{"update": "granular:", "patch": "granular: x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, subresource := range []string{"", "status"} {
				authz := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					if a.GetResource() != "deployments" || a.GetSubresource() != subresource || a.GetName() != "web" {
						t.Errorf("asked about %s/%s %s", a.GetResource(), a.GetSubresource(), a.GetName())
					}
					if a.GetVerb() == "granular" {
						t.Error("asked for the marker")
					}
					if reason, ok := c.reasons[a.GetVerb()]; ok {
						return authorizer.DecisionAllow, reason, nil
					}
					return authorizer.DecisionNoOpinion, "", nil
				}
				if got := called(t, "granular", c.operation, subresource, &user.DefaultInfo{Name: "alice"}, authz); got != c.want {
					t.Errorf("webhook is called: %t, want %t", got, c.want)
				}
			}
		})
	}
}

func TestW1_GranularIsCalledWhenTheCheckFails(t *testing.T) {
	failing := func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", context.DeadlineExceeded
	}
	for _, operation := range []admission.Operation{admission.Create, admission.Update} {
		if !called(t, "granular", operation, "", &user.DefaultInfo{Name: "alice"}, failing) {
			t.Errorf("%s: not called", operation)
		}
	}
}

func TestW2_UncoveredSkipsMastersOnly(t *testing.T) {
	never := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		t.Errorf("asked for %s", a.GetVerb())
		return authorizer.DecisionDeny, "", nil
	}
	for _, c := range []struct {
		caller    user.Info
		uncovered bool
		schemas   bool
	}{
		{&user.DefaultInfo{Name: "alice"}, true, true},
		{&user.DefaultInfo{Name: "system:masters", Groups: []string{"system:authenticated"}}, true, true},
		{&user.DefaultInfo{Name: "admin", Groups: []string{"system:authenticated", user.SystemPrivilegedGroup}}, false, true},
		{&user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.AllAuthenticated, user.SystemPrivilegedGroup}}, false, false},
	} {
		if got := called(t, "uncovered", admission.Update, "", c.caller, never); got != c.uncovered {
			t.Errorf("uncovered, %v: called is %t", c.caller, got)
		}
		if got := called(t, "schemas", admission.Update, "", c.caller, never); got != c.schemas {
			t.Errorf("schemas, %v: called is %t", c.caller, got)
		}
	}
}
