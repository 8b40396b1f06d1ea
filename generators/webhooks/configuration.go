package webhooks

import (
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// LacksGeneric is the condition of W1, as a CEL expression for webhook match conditions: the API server calls the webhook if the marker,
// and not the generic permission, allowed the request. If a check fails, the webhook decides. The condition never asks for the marker,
// because the API server may still cache an Allow of fieldperm's authorizer after the grant of the marker is gone. An Allow of that
// authorizer does not count as the generic permission (A4); the condition recognizes it by its reason.
//
// The condition tells update from patch as little as admission can. It tells delete from deletecollection by the name of the object, which is
// absent in the second. A connection to a Pod needs create.
//
// It is one expression, because the API server evaluates all conditions even after a false one. Each check costs 350,000 of the 1,000,000
// that an expression may cost, and && stops after the first false operand.
const LacksGeneric = `request.operation in ['CREATE', 'CONNECT']
  ? ![authorizer.requestResource.check('create')].exists(d, d.allowed() && !d.reason().startsWith('granular:'))
  : request.operation == 'DELETE'
  ? ![authorizer.requestResource.check(has(request.name) && request.name != '' ? 'delete' : 'deletecollection')].exists(d, d.allowed() && !d.reason().startsWith('granular:'))
  : (![authorizer.requestResource.check('update')].exists(d, d.allowed() && !d.reason().startsWith('granular:'))
    && ![authorizer.requestResource.check('patch')].exists(d, d.allowed() && !d.reason().startsWith('granular:')))`

const (
	// skipMasters is the condition of W2. The API server itself is a member of system:masters.
	skipMasters = `!has(request.userInfo.groups) || !('system:masters' in request.userInfo.groups)`

	// skipAPIServer excludes the API server's own writes, so that they never wait for fieldperm.
	skipAPIServer = `request.userInfo.username != 'system:apiserver'`
)

// StaticConfiguration returns the configuration of the static manifest, which has the webhook "granular" alone. It does not check the
// options.
func StaticConfiguration(o Options) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return newConfiguration(staticName, granularWebhook(o.ClientConfig(GranularPath)))
}

// GranularConfiguration returns the configuration RESTName. It uses the options Service or ServiceURL, and CABundle unless another
// component sets it. It does not check them.
func GranularConfiguration(o Options) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := newConfiguration(RESTName, granularWebhook(o.ClientConfig(GranularPath)), NewSchemasWebhook(o.ClientConfig(SchemasPath)))
	out.Labels = map[string]string{NameLabel: RESTName}
	out.Finalizers = []string{Finalizer}
	return out
}

// UncoveredConfiguration returns the configuration UncoveredName. Without rules the configuration has no webhook, because a webhook
// without rules is never called.
func UncoveredConfiguration(client admissionregistrationv1.WebhookClientConfig, rules []Rule) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := newConfiguration(UncoveredName)
	out.Labels = map[string]string{NameLabel: RESTName}
	if len(rules) > 0 {
		out.Webhooks = append(out.Webhooks, UncoveredWebhook(client, rules))
	}
	return out
}

func namespaceOf(client admissionregistrationv1.WebhookClientConfig) string {
	if client.Service == nil {
		return ""
	}
	return client.Service.Namespace
}

func newConfiguration(name string, webhooks ...admissionregistrationv1.ValidatingWebhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks:   webhooks,
	}
}

func granularWebhook(client admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.ValidatingWebhook {
	out := webhook(GranularWebhook, client,
		[]v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*/*"}}},
		admissionregistrationv1.MatchCondition{Name: "lacks-generic-permission", Expression: LacksGeneric})
	// Granular verbs cover no deletion and no connection, but a policy may allow one under a condition.
	for i := range out.Rules {
		out.Rules[i].Operations = append(out.Rules[i].Operations, admissionregistrationv1.Delete)
	}
	out.Rules = append(out.Rules, rendered(Connects.On([]v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: Connections()}}))...)
	return out
}

// Connections returns the names of the connections to Pods, as in rules.
func Connections() []string {
	var out []string
	for _, ref := range endpoint.Connections() {
		out = append(out, ref.Name())
	}
	return out
}

// UncoveredWebhook returns the webhook for the resources with barriers (W2). It excludes the floor (W4). If it calls a Service, it also
// excludes the namespace of the Service: if Pods had a barrier, fieldperm's own Pods could not start while fieldperm is down. A user that
// can write in that namespace can replace fieldperm anyway.
func UncoveredWebhook(client admissionregistrationv1.WebhookClientConfig, rules []Rule) admissionregistrationv1.ValidatingWebhook {
	out := webhook(UncoveredWebhookName, client, nil, uncoveredConditions(namespaceOf(client))...)
	out.Rules = rendered(rules)
	return out
}

// uncoveredConditions returns the match conditions of the webhook for barriers. namespace is fieldperm's own, "" if it has none.
func uncoveredConditions(namespace string) []admissionregistrationv1.MatchCondition {
	conditions := []admissionregistrationv1.MatchCondition{{Name: "not-system-masters", Expression: skipMasters}}
	for _, c := range admission.Floor() {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	if namespace != "" {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: "not-own-namespace", Expression: skipNamespace(namespace)})
	}
	return conditions
}

// skipNamespace returns a condition that excludes objects in a namespace. request.namespace is also set for the Namespace object itself,
// which is not excluded.
func skipNamespace(name string) string {
	return `!has(request.namespace) || request.namespace != ` + strconv.Quote(name) + ` || request.resource.resource == 'namespaces'`
}

// NewSchemasWebhook returns the webhook that refuses permission schemas that do not compile.
func NewSchemasWebhook(client admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.ValidatingWebhook {
	out := webhook(SchemasWebhook, client,
		[]v1alpha1.ResourceRule{
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{v1alpha1.ConditionalPolicyResource, v1alpha1.PermissionSchemaResource, v1alpha1.UncoveredPermissionSetResource}},
		},
		admissionregistrationv1.MatchCondition{Name: "not-api-server", Expression: skipAPIServer})
	// A faulty schema that is created while fieldperm is down is harmless, because requests of marker users for its kind are refused. It
	// would be harmful if users could not install CustomResourceDefinitions in that time.
	ignore := admissionregistrationv1.Ignore
	out.FailurePolicy = &ignore
	return out
}

// webhook sets all fields, also those with defaults, because the proof of enforcement (A5) and human readers look at them.
func webhook(name string, client admissionregistrationv1.WebhookClientConfig, rules []v1alpha1.ResourceRule, conditions ...admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
	failurePolicy, matchPolicy := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent
	sideEffects, timeout := admissionregistrationv1.SideEffectClassNone, int32(admitTimeoutSeconds)
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		ClientConfig:            client,
		FailurePolicy:           &failurePolicy,
		MatchPolicy:             &matchPolicy,
		SideEffects:             &sideEffects,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         conditions,
		Rules:                   rendered(Writes.On(rules)),
	}
}

// ClientConfigAt returns the client configuration for one of fieldperm's paths at an address such as https://127.0.0.1:9443, with a PEM
// bundle of CA certificates.
func ClientConfigAt(address, path string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	return Options{ServiceURL: strings.TrimSuffix(address, "/"), CABundle: bundle}.ClientConfig(path)
}

// ClientConfig returns the client configuration with which kube-apiserver reaches one of fieldperm's paths.
func (o Options) ClientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	if o.Service == nil {
		url := o.ServiceURL + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: o.CABundle}
	}
	port := o.Service.port()
	return admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: o.Service.Namespace, Name: o.Service.Name, Path: &path, Port: &port},
		CABundle: o.CABundle,
	}
}

// ClientConfigFor returns the client configuration for another of fieldperm's paths, given the one for the path at. It reports false if known is not for
// that path.
func ClientConfigFor(known *admissionregistrationv1.WebhookClientConfig, at, path string) (admissionregistrationv1.WebhookClientConfig, bool) {
	out := *known.DeepCopy()
	switch {
	case out.Service != nil && out.Service.Path != nil && *out.Service.Path == at:
		out.Service.Path = &path
		return out, true
	case out.URL != nil && strings.HasSuffix(*out.URL, at):
		url := strings.TrimSuffix(*out.URL, at) + path
		out.URL = &url
		return out, true
	}
	return admissionregistrationv1.WebhookClientConfig{}, false
}
