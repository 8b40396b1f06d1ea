package webhooks

import (
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certManager is the user that sets CA bundles if cert-manager issues the certificates.
const certManager = "system:serviceaccount:cert-manager:cert-manager-cainjector"

// GuardPolicy returns the policy that refuses changes which loosen the configurations RESTName and UncoveredName. It uses the options
// User, CABundleUsers, Service and Uncovered, and does not check them. If Uncovered is set, fieldperm does not maintain UncoveredName,
// and every user may change its rules.
func GuardPolicy(o Options) *admissionregistrationv1.ValidatingAdmissionPolicy {
	o = o.WithDefaults()
	fail, equivalent := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent
	reason := metav1.StatusReasonForbidden
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: GuardName, Labels: map[string]string{NameLabel: RESTName}},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: &equivalent,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{admissionregistrationv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"validatingwebhookconfigurations"}},
					},
				}},
			},
			// resourceNames in the rule would not work: for a deletion of a collection they match nothing.
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name:       "of-fieldperm",
				Expression: `(object != null ? object : oldObject).metadata.name in ['` + RESTName + `', '` + UncoveredName + `']`,
			}},
			Variables: o.guardVariables(),
		},
	}
	for _, v := range guardValidations() {
		v.Reason = &reason
		v.Message += `; to do so all the same, delete the ValidatingAdmissionPolicyBinding "` + GuardName + `" first`
		policy.Spec.Validations = append(policy.Spec.Validations, v)
	}
	return policy
}

// GuardBinding returns the binding that puts GuardPolicy into force.
func GuardBinding() *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: GuardName, Labels: map[string]string{NameLabel: RESTName}},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        GuardName,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// guardVariables returns the variables that depend on the options, and those that stand in for missing objects.
func (o Options) guardVariables() []admissionregistrationv1.Variable {
	own := `request.userInfo.username == ` + strconv.Quote(o.User)
	mayChangeRules := "variables.own"
	if len(o.Uncovered) > 0 {
		mayChangeRules = "true"
	}
	namespace := ""
	if o.Service != nil {
		namespace = o.Service.Namespace
	}
	var uncovered []string
	for _, c := range uncoveredConditions(namespace) {
		uncovered = append(uncovered, c.Expression)
	}
	caUsers := []string{strconv.Quote(certManager)}
	for _, user := range o.CABundleUsers {
		caUsers = append(caUsers, strconv.Quote(user))
	}
	return []admissionregistrationv1.Variable{
		{Name: "own", Expression: own},
		{Name: "masters", Expression: `has(request.userInfo.groups) && 'system:masters' in request.userInfo.groups`},
		{Name: "garbageCollector", Expression: `request.userInfo.username in ['system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager']`},
		{Name: "mayChangeCA", Expression: `variables.own || request.userInfo.username in [` + strings.Join(caUsers, ", ") + `]`},
		{Name: "mayChangeUncovered", Expression: mayChangeRules},
		{Name: "webhooks", Expression: `object != null && has(object.webhooks) ? object.webhooks : []`},
		// The webhook for probes is fieldperm's to write again, and those of others may go.
		{Name: "before", Expression: `request.operation == 'UPDATE' && has(oldObject.webhooks) ? oldObject.webhooks.filter(w, w.name in ['` + GranularWebhook + `', '` + SchemasWebhook + `', '` + UncoveredWebhookName + `']) : []`},
		{Name: "conditions", Expression: "{\n" + allowed(GranularWebhook, LacksGeneric) + ",\n" + allowed(SchemasWebhook, skipAPIServer) + ",\n" +
			allowed(ProbeWebhook, forProbes()) + ",\n" + allowed(UncoveredWebhookName, uncovered...) + "\n}"},
	}
}

// allowed returns an entry of a CEL map from webhooks to expressions, in CEL syntax.
func allowed(webhook string, expressions ...string) string {
	return `'` + webhook + `': [r"""` + strings.Join(expressions, `""", r"""`) + `"""]`
}

// guardValidations returns the validations. For requests that a validation is not about, its variables are empty: "before" is empty
// except for updates, and "webhooks" is empty for deletions.
func guardValidations() []admissionregistrationv1.Validation {
	const enforcing = `w.name in ['` + GranularWebhook + `', '` + UncoveredWebhookName + `']`
	return []admissionregistrationv1.Validation{{
		Message:    UncoveredName + " may be deleted by fieldperm and members of system:masters only",
		Expression: `request.operation != 'DELETE' || oldObject.metadata.name != '` + UncoveredName + `' || variables.own || variables.garbageCollector || variables.masters`,
	}, {
		Message: "the annotation " + WriterAnnotation + " of " + UncoveredName + " is fieldperm's to change: an older fieldperm leaves what a newer one wrote",
		Expression: `request.operation == 'DELETE' || object.metadata.name != '` + UncoveredName + `' || variables.own || variables.garbageCollector
  || (has(object.metadata.annotations) && '` + WriterAnnotation + `' in object.metadata.annotations ? object.metadata.annotations['` + WriterAnnotation + `'] : '')
  == (request.operation == 'UPDATE' && has(oldObject.metadata.annotations) && '` + WriterAnnotation + `' in oldObject.metadata.annotations ? oldObject.metadata.annotations['` + WriterAnnotation + `'] : '')`,
	}, {
		Message: UncoveredName + " may get no other owners: with an owner that does not exist it would be collected as garbage",
		Expression: `request.operation != 'UPDATE' || object.metadata.name != '` + UncoveredName + `' || variables.own || variables.garbageCollector
  || !has(object.metadata.ownerReferences) || has(oldObject.metadata.ownerReferences) && object.metadata.ownerReferences == oldObject.metadata.ownerReferences`,
	}, {
		Message: UncoveredName + " may get no finalizers: no controller would remove them, and it could not be deleted when fieldperm is gone",
		Expression: `request.operation == 'DELETE' || object.metadata.name != '` + UncoveredName + `' || variables.own || !has(object.metadata.finalizers)
  || request.operation == 'UPDATE' && has(oldObject.metadata.finalizers) && object.metadata.finalizers.all(f, f in oldObject.metadata.finalizers)`,
	}, {
		Message: RESTName + " must keep the finalizer " + Finalizer + ": fieldperm removes it when no Allow of it can be in use any more",
		Expression: `request.operation == 'DELETE' || object.metadata.name != '` + RESTName + `'
  || has(object.metadata.finalizers) && '` + Finalizer + `' in object.metadata.finalizers
  || variables.own && has(object.metadata.deletionTimestamp)`,
	}, {
		Message: RESTName + " must have the webhook " + GranularWebhook + " with a rule for CREATE, UPDATE and DELETE of */* in all groups, and one for CONNECT of " +
			strings.Join(Connections(), ", ") + ", in all versions and scopes",
		Expression: `request.operation == 'DELETE' || object.metadata.name != '` + RESTName + `'
  || variables.webhooks.exists(w, w.name == '` + GranularWebhook + `' && has(w.rules)
    && w.rules.exists(r, '*' in r.apiGroups && '*' in r.apiVersions && '*/*' in r.resources && (!has(r.scope) || r.scope == '*')
      && ('*' in r.operations || ['CREATE', 'UPDATE', 'DELETE'].all(o, o in r.operations)))
    && w.rules.exists(r, '' in r.apiGroups && '*' in r.apiVersions && (!has(r.scope) || r.scope == '*')
      && ('*' in r.operations || 'CONNECT' in r.operations) && ['` + strings.Join(Connections(), "', '") + `'].all(x, x in r.resources)))`,
	}, {
		Message:    "failurePolicy of the webhooks " + GranularWebhook + " and " + UncoveredWebhookName + " must be Fail",
		Expression: `variables.webhooks.all(w, !(` + enforcing + `) || has(w.failurePolicy) && w.failurePolicy == 'Fail')`,
	}, {
		Message: "matchPolicy of fieldperm's webhooks must be Equivalent, sideEffects must be None, and v1 the only one of admissionReviewVersions",
		Expression: `variables.webhooks.all(w, !(w.name in variables.conditions)
  || (!has(w.matchPolicy) || w.matchPolicy == 'Equivalent') && has(w.sideEffects) && w.sideEffects == 'None' && w.admissionReviewVersions == ['v1'])`,
	}, {
		Message: "fieldperm's webhooks may have no namespaceSelector and no objectSelector",
		Expression: `variables.webhooks.all(w, !(w.name in variables.conditions)
  || (!has(w.namespaceSelector) || !has(w.namespaceSelector.matchLabels) && !has(w.namespaceSelector.matchExpressions))
  && (!has(w.objectSelector) || !has(w.objectSelector.matchLabels) && !has(w.objectSelector.matchExpressions)))`,
	}, {
		Message: "fieldperm's webhooks may have none but the generated matchConditions",
		Expression: `variables.webhooks.all(w, !(w.name in variables.conditions) || !has(w.matchConditions)
  || w.matchConditions.all(c, c.expression in variables.conditions[w.name]))`,
	}, {
		Message: "no webhook may be taken away",
		Expression: `request.operation == 'UPDATE' && object.metadata.name == '` + UncoveredName + `' && variables.mayChangeUncovered
  || variables.before.all(w, variables.webhooks.exists(n, n.name == w.name))`,
	}, {
		Message: "the rules of a webhook may not be narrowed, and those of " + UncoveredWebhookName + " are fieldperm's to change",
		Expression: `variables.own || variables.before.all(w, !has(w.rules) || variables.webhooks.all(n, n.name != w.name || n.name == '` + GranularWebhook + `'
  || (n.name == '` + UncoveredWebhookName + `'
    ? variables.mayChangeUncovered || has(n.rules) && n.rules == w.rules
    : has(n.rules) && w.rules.all(q, q.apiGroups.all(g, q.resources.all(x, q.operations.all(o, n.rules.exists(r,
        ('*' in r.apiGroups || g in r.apiGroups) && ('*/*' in r.resources || x in r.resources) && ('*' in r.operations || o in r.operations)
        && ('*' in r.apiVersions || r.apiVersions == q.apiVersions) && (!has(r.scope) || r.scope == '*' || has(q.scope) && r.scope == q.scope)))))))))`,
	}, {
		Message: "the address that a webhook calls may not be changed",
		Expression: `variables.own || variables.before.all(w, variables.webhooks.all(n, n.name != w.name
  || has(n.clientConfig.url) == has(w.clientConfig.url) && has(n.clientConfig.service) == has(w.clientConfig.service)
  && (!has(w.clientConfig.url) || n.clientConfig.url == w.clientConfig.url)
  && (!has(w.clientConfig.service) || n.clientConfig.service == w.clientConfig.service)))`,
	}, {
		Message: "the CA bundle of a webhook is for fieldperm, cert-manager and the users given to the generator to change",
		Expression: `variables.mayChangeCA || variables.before.all(w, !has(w.clientConfig.caBundle) || variables.webhooks.all(n, n.name != w.name
  || has(n.clientConfig.caBundle) && n.clientConfig.caBundle == w.clientConfig.caBundle))`,
	}, {
		// Others could make the configuration so large that neither fieldperm nor this policy could handle it.
		Message: "there may be no webhook but fieldperm's, with at most 20 rules, 50 resources in each and 50 labels of the configuration",
		Expression: `variables.own || request.operation == 'DELETE'
  || (!has(object.metadata.labels) || size(object.metadata.labels) <= 50) && size(variables.webhooks) <= size(variables.conditions)
  && variables.webhooks.all(w, w.name in variables.conditions && (w.name == '` + UncoveredWebhookName + `' || !has(w.rules)
    || size(w.rules) <= 20 && w.rules.all(r, size(r.apiGroups) <= 50 && size(r.apiVersions) <= 50 && size(r.resources) <= 50 && size(r.operations) <= 5)))`,
	}}
}
