//go:build controllers

package controllers

import (
	"strings"
)

// verbsOf are flags of kubectl fieldperm tighten, for users by the last part of their names. What the scenario does not show is known from the code
// of the controllers: the types of their conditions, and the keys that they copy from objects of others.
var verbsOf = map[string][]string{
	"bootstrap-signer": {
		// The key has the ID of a token.
		"--generalize=configmaps=datum",
	},
	"certificate-controller": {
		"--also=certificatesigningrequests/status.certificates.k8s.io=granular:condition(Failed)",
	},
	"deployment-controller": {
		// Those of the Deployment.
		"--generalize=replicasets.apps=annotation",
		"--also=deployments/status.apps=granular:condition(Available)",
		"--also=deployments/status.apps=granular:condition(Progressing)",
		"--also=deployments/status.apps=granular:condition(ReplicaFailure)",
	},
	"disruption-controller": {
		"--also=pods/status=granular:condition(DisruptionTarget)",
	},
	"endpoint-controller": {
		// Those of the Service.
		"--generalize=endpoints=label",
	},
	"endpointslice-controller": {
		// Those of the Service.
		"--generalize=endpointslices.discovery.k8s.io=label",
	},
	"generic-garbage-collector": {
		"--resources=held",
	},
	"horizontal-pod-autoscaler": {
		"--resources=held",
		"--also=horizontalpodautoscalers/status.autoscaling=granular:condition(AbleToScale)",
		"--also=horizontalpodautoscalers/status.autoscaling=granular:condition(ScalingActive)",
		"--also=horizontalpodautoscalers/status.autoscaling=granular:condition(ScalingLimited)",
	},
	"kube-scheduler": {
		// The leader stays one while fieldperm is down. No scenario here elects one.
		"--keep-update=leases.coordination.k8s.io,leasecandidates.coordination.k8s.io",
	},
	"namespace-controller": {
		"--also=namespaces/status=granular:condition(NamespaceContentRemaining)",
		"--also=namespaces/status=granular:condition(NamespaceDeletionContentFailure)",
		"--also=namespaces/status=granular:condition(NamespaceDeletionDiscoveryFailure)",
		"--also=namespaces/status=granular:condition(NamespaceDeletionGroupVersionParsingFailure)",
		"--also=namespaces/status=granular:condition(NamespaceFinalizersRemaining)",
	},
	"persistent-volume-binder": {
		// The reason of a volume that cannot be deleted.
		"--also=persistentvolumes/status=granular:status",
	},
	"replicaset-controller": {
		"--also=replicasets/status.apps=granular:condition(ReplicaFailure)",
	},
	"replication-controller": {
		"--also=replicationcontrollers/status=granular:condition(ReplicaFailure)",
	},
}

// flags returns the flags of kubectl fieldperm tighten for a user. What a client changes of an Event that exists depends on how often something
// happens, and all controllers write Events by the same library.
func flags(user string) []string {
	return append([]string{
		"--also=events=granular:message", "--also=events=granular:occurrences", "--also=events.events.k8s.io=granular:occurrences",
	}, verbsOf[user[strings.LastIndex(user, ":")+1:]]...)
}
