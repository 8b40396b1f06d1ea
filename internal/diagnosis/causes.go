package diagnosis

import (
	"fmt"
	"slices"
	"strings"
)

// maxCauses is the number of causes in an answer.
const maxCauses = 3

// The commands of the causes. pods is that for the replicas, whose namespace may be known.
const (
	showWebhooks  = "kubectl get validatingwebhookconfigurations -l app.kubernetes.io/name=fieldperm -o yaml"
	showEvents    = "kubectl get events -n default --field-selector involvedObject.kind=ValidatingWebhookConfiguration"
	showEndpoints = "kubectl get endpointslice -n default kubernetes"
	showServices  = "kubectl get apiservices"
	writeFiles    = "fieldperm-gen manifests --help"
)

// known is a cause with the texts that point at it. The texts are parts of the messages of the interlock, and its reasons.
type known struct {
	texts   []string
	cause   string
	command string
}

// knownCauses are the causes from the most to the least specific. "%[1]s" is the namespace of fieldperm-webhook.
func knownCauses() []known {
	return []known{
		{[]string{"does not exist: apply webhooks.yaml", "configuration_missing"}, "the webhook configuration fieldperm does not exist: install it", "kubectl apply --server-side -f webhooks.yaml"},
		{[]string{"is being deleted", "configuration_deleted"}, "fieldperm is being uninstalled", showWebhooks},
		{
			[]string{"apply webhooks.yaml of fieldperm-gen manifests --rest again", "configuration_loose"},
			"the webhook configuration is not the generated one: apply it again, and find out which user changed it", "kubectl apply --server-side --force-conflicts -f webhooks.yaml",
		},
		{[]string{"configuration_unread"}, "fieldperm-webhook may not read the webhook configuration: apply its rbac.yaml again", "kubectl apply --server-side -f rbac.yaml"},
		{
			[]string{"a probe passed admission", "probe_not_enforced"}, "a kube-apiserver does not call the webhook, or system:authenticated may update the objects of the probe",
			"kubectl auth can-i patch configmap/extension-apiserver-authentication -n kube-system --as fieldperm:probe",
		},
		{[]string{"may not impersonate"}, "fieldperm-webhook may not send probes: apply its rbac.yaml again", "kubectl apply --server-side -f rbac.yaml"},
		{
			[]string{"let no probe through", "cannot ask fieldperm"},
			"kube-apiserver has no authorizer fieldperm in its --authorization-config, or cannot reach it", "kubectl get --raw /metrics | grep apiserver_authorization_config_controller",
		},
		{[]string{"its webhook cannot call fieldperm"}, "kube-apiserver cannot call the webhook: address, CA or client certificate", showWebhooks},
		{[]string{"what refused the probe was not fieldperm"}, "another webhook or policy refuses the probe first: except the user fieldperm:probe there", "kubectl get validatingwebhookconfigurations,validatingadmissionpolicies"},
		{[]string{"may not watch definitions"}, "fieldperm-webhook may not watch definitions: apply its rbac.yaml again", "kubectl apply --server-side -f rbac.yaml"},
		{[]string{"see that it can be reached from here", "probe_error"}, "fieldperm-webhook cannot reach a kube-apiserver: NetworkPolicy or firewall", "kubectl get networkpolicies -n %[1]s"},
		{
			[]string{"have changed, and it is not proven yet", "has loaded other static manifests", "has loaded another AuthorizationConfiguration", "manifests_not_loaded", "manifests_changed"},
			"a kube-apiserver has loaded other files than fieldperm-webhook has read: its log says why it does not reload", "kubectl get --raw /metrics | grep last_config_info",
		},
		{
			[]string{"nothing says how kube-apiserver is made to ask fieldperm"}, "fieldperm-webhook has neither --webhook-configuration nor --static-manifests: give the flags of the manifests",
			"kubectl get pods -A -l app.kubernetes.io/name=fieldperm -o yaml",
		},
		{[]string{"manifests_loose", "manifests_unread"}, "the static manifests are not the generated ones, or fieldperm-webhook cannot read them: write them again", writeFiles},
		{[]string{"may not read its /metrics", "metrics_unread"}, "fieldperm-webhook may not read the /metrics of kube-apiserver: apply its rbac.yaml again", "kubectl apply --server-side -f rbac.yaml"},
		{[]string{"have no address", "a kube-apiserver that is not proven yet", "servers_unknown"}, "the kube-apiservers cannot be listed, or one is new", showEndpoints},
		{[]string{"has ended the watch", "watch_ended"}, "a kube-apiserver has just started again, or closes its connections", "kubectl get pods -n kube-system -l component=kube-apiserver"},
		{[]string{"discovery comes first", "discovery:", "starting"}, "fieldperm-webhook has just started, or discovery fails", showServices},
		{[]string{"the last proof is too old"}, "a round of proofs hangs", "kubectl logs -n %[1]s -l app.kubernetes.io/name=fieldperm --tail=50"},
		{[]string{"is proven anew", "configuration_changed"}, "the webhook configuration was changed a moment ago: wait", "kubectl fieldperm status"},
		{[]string{"has not loaded the webhook configuration as it is stored", "since the other one was changed", "configuration_not_loaded"}, "a kube-apiserver or fieldperm-webhook is behind with the webhook configurations", showWebhooks},
	}
}

// causes returns the most likely causes: those that the evidence names, then those that the state of the objects makes likely, then the usual
// ones.
func (s *Status) causes() []Cause {
	namespace := "fieldperm-system"
	if len(s.Replicas) > 0 {
		namespace, _, _ = strings.Cut(s.Replicas[0].Name, "/")
	}
	var out []Cause
	add := func(cause, command string) {
		c := Cause{cause, strings.ReplaceAll(command, "%[1]s", namespace)}
		if len(out) < maxCauses && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	said := s.messages()
	for _, k := range knownCauses() {
		if slices.ContainsFunc(k.texts, func(text string) bool { return strings.Contains(said, text) }) {
			add(k.cause, k.command)
		}
	}
	if last := s.last(); last != nil && last.State == NotProven {
		for _, k := range knownCauses() {
			if slices.Contains(k.texts, last.Cause) {
				add(k.cause, k.command)
			}
		}
	}
	for _, r := range s.Replicas {
		if !r.Ready {
			name := strings.Replace(r.Name, "/", " ", 1)
			add(fmt.Sprintf("a replica of fieldperm-webhook is not ready: %s", r.Message), fmt.Sprintf("kubectl describe pod -n %s", name))
		}
	}
	if s.State == Unknown && len(s.Missing) > 0 {
		add("you may not read the proof: "+s.Missing[0].Error, showEvents)
	}
	if len(s.Replicas) == 0 {
		add("no Pod of fieldperm-webhook is known: it does not run, or you may not list it", "kubectl get pods -A -l app.kubernetes.io/name=fieldperm")
	}
	add("kube-apiserver has no authorizer fieldperm in its --authorization-config, or cannot reach it", "kubectl get --raw /metrics | grep apiserver_authorization_config_controller")
	add("kube-apiserver cannot call the webhook: address, CA or client certificate", showWebhooks)
	add("fieldperm-webhook says why in its log", "kubectl logs -n "+namespace+" -l app.kubernetes.io/name=fieldperm --tail=50")
	return out
}
