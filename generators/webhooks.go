package generators

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// skipGeneric is W1's condition: the webhook is called for whoever was let in by the marker. A check
// that fails lets the webhook decide. It never asks for the marker: the API server may still hold an
// Allow of fieldperm's authorizer after the grant of the marker is gone. An Allow of that authorizer
// does not count as generic (A4), its reason tells it.
//
// One expression, because all conditions are evaluated even after a false one, each check costs
// 350,000 of the 1,000,000 that an expression may cost, and && stops after the first.
const skipGeneric = `request.operation == 'CREATE'
  ? ![authorizer.requestResource.check('create')].exists(d, d.allowed() && !d.reason().startsWith('granular:'))
  : (![authorizer.requestResource.check('update')].exists(d, d.allowed() && !d.reason().startsWith('granular:'))
    && ![authorizer.requestResource.check('patch')].exists(d, d.allowed() && !d.reason().startsWith('granular:')))`

const (
	// skipMasters is W2's condition. The API server itself is a member.
	skipMasters = `!has(request.userInfo.groups) || !('system:masters' in request.userInfo.groups)`

	// skipAPIServer keeps the API server's own writes from waiting for fieldperm.
	skipAPIServer = `request.userInfo.username != 'system:apiserver'`
)

const webhooksComment = `# Validating admission webhooks for the directory staticManifestsDir of admission-configuration.yaml.
# From there they hold whatever happens to the objects in the cluster.
#   granular   asks fieldperm about every write of those who lack the generic permission.
#   uncovered  asks fieldperm about everyone's writes, only where schemas have barriers.
#   schemas    refuses permission schemas that do not compile; it is passed over while fieldperm is down.
`

func webhooks(o Options) (string, string, []any, error) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: "fieldperm.static.k8s.io"},
	}
	configuration.Webhooks = append(configuration.Webhooks, webhook(o, "granular",
		[]v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*/*"}}},
		admissionregistrationv1.MatchCondition{Name: "lacks-generic-permission", Expression: skipGeneric}))
	if len(o.Uncovered) > 0 {
		configuration.Webhooks = append(configuration.Webhooks, webhook(o, "uncovered", o.Uncovered,
			admissionregistrationv1.MatchCondition{Name: "not-system-masters", Expression: skipMasters}))
	}
	schemas := webhook(o, "schemas",
		[]v1alpha1.ResourceRule{
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"permissionschemas", "uncoveredpermissionsets"}},
		},
		admissionregistrationv1.MatchCondition{Name: "not-api-server", Expression: skipAPIServer})
	// A schema that does not compile and lands while fieldperm is down harms nobody: its kind is refused
	// to marker users. That nobody could install a CustomResourceDefinition in that time would.
	ignore := admissionregistrationv1.Ignore
	schemas.FailurePolicy = &ignore
	configuration.Webhooks = append(configuration.Webhooks, schemas)
	return fileWebhooks, webhooksComment, []any{configuration}, nil
}

// webhook spells out what could be left to defaults: the interlock (A5) and a reader look at it.
func webhook(o Options, name string, rules []v1alpha1.ResourceRule, condition admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
	url := o.ServiceURL + "/admit/" + name
	failurePolicy, matchPolicy := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent
	sideEffects, scope, timeout := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.AllScopes, int32(admitTimeoutSeconds)
	out := admissionregistrationv1.ValidatingWebhook{
		Name:                    name + ".fieldperm.dev",
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: o.CABundle},
		FailurePolicy:           &failurePolicy,
		MatchPolicy:             &matchPolicy,
		SideEffects:             &sideEffects,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         []admissionregistrationv1.MatchCondition{condition},
	}
	for _, rule := range rules {
		out.Rules = append(out.Rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: rule.APIGroups, APIVersions: []string{"*"}, Resources: rule.Resources, Scope: &scope},
		})
	}
	return out
}
