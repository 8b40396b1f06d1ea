package audit

import "slices"

// These are the IDs of the rules.
const (
	misspeltMarker       = "misspelt-marker"
	invalidVerb          = "invalid-verb"
	unknownVerb          = "unknown-verb"
	unknownResource      = "unknown-resource"
	verbNotOnResource    = "verb-not-on-resource"
	verbNeedsSubresource = "verb-needs-subresource"
	scaleNotGranted      = "scale-not-granted"
	parameterNever       = "parameter-never-matches"
	markerNoEffect       = "marker-without-effect"
	clusterInRole        = "cluster-scoped-resource-in-role"
	createNames          = "create-with-resource-names"
	allFields            = "verb-covers-all-fields"
	wildcardBarrier      = "wildcard-satisfies-barrier"
	verbWithoutMarker    = "granular-verb-without-marker"
	markerWithoutVerb    = "marker-without-granular-verb"
	idleVerb             = "generic-permission-makes-verb-idle"
	markerWithoutGet     = "marker-without-get"
	powerOfMany          = "power-held-by-many"
	barrierNobody        = "barrier-without-holder"
	barrierEverybody     = "barrier-held-by-everybody"
	notCompiled          = "document-not-compiled"
	barrierNotEnforced   = "barrier-not-enforced"
	markerNotEnforced    = "enforcement-not-proven"
)

// Rules returns all rules, by the object that they are about: roles, what subjects hold, barriers and enforcement.
func Rules() []Rule { return slices.Concat(roleRules(), jointRules(), barrierRules()) }

func roleRules() []Rule {
	return []Rule{
		{
			ID: misspeltMarker, Level: Error, Meaning: "A verb is almost `granular`.",
			Why:  "Verbs are compared letter by letter. No component asks for this verb, so the grant has no effect.",
			Cure: "Write `granular`, or `granular:` with the name of a verb.",
		},
		{
			ID: invalidVerb, Level: Error, Meaning: "A verb begins with `granular:` and does not follow the grammar of verbs.",
			Why:  "fieldperm never asks for such a verb, so the grant has no effect. RBAC has no wildcard inside of a verb: `granular:image*` is no verb.",
			Cure: "Write the verb as the message says. [semantics.md](../semantics.md#words) has the grammar.",
		},
		{
			ID: unknownVerb, Level: Error, Meaning: "No field of any known kind has the verb.",
			Why:  "fieldperm never asks for the verb, so the grant has no effect. The level is `warning` if custom resources could not be read, and `note` if files are audited and the verb has a domain.",
			Cure: "Correct the name, or install the CustomResourceDefinition or the PermissionSchema that has it. [verbs.md](verbs.md) lists the verbs.",
		},
		{
			ID: unknownResource, Level: Error, Meaning: "A rule with granular verbs names a resource that is not known in any of its API groups.",
			Why: "The rule matches no request. Frequent causes are the singular in place of the plural, the wrong API group, and `deployments/*`: RBAC knows `*/scale`, and no wildcard after the slash. " +
				"The level is `warning` if custom resources could not be read or the API group is not installed, and `note` if files are audited and the group is not known.",
			Cure: "Correct the resource or its API group. Give files of custom resources with `--crd`.",
		},
		{
			ID: verbNotOnResource, Level: Error, Meaning: "Fields of other resources have the verb, and no field that is written through the resources of the rule has it.",
			Why:  "fieldperm never asks for the verb on these resources. This is also true of a subresource: a request to `deployments/scale` shows only the replicas.",
			Cure: "Move the verb to a rule with a resource that has it.",
		},
		{
			ID: verbNeedsSubresource, Level: Error, Meaning: "The fields with the verb are written only through a subresource, and the rule names the resource alone.",
			Why:  "In RBAC a resource does not include its subresources ([D11](../semantics.md#d11-subresources-are-compared-as-a-whole)). kube-apiserver ignores the status in a write of the object.",
			Cure: "Grant the verb, and the marker, on the subresource, such as `deployments/status`.",
		},
		{
			ID: scaleNotGranted, Level: Note, Meaning: "A rule grants the verb of the replicas on a resource, and no rule of the role grants it on its subresource `scale`.",
			Why:  "`kubectl scale` and HorizontalPodAutoscalers write the subresource. The verb on the resource does not count there.",
			Cure: "Add the subresource to the rule, such as `deployments/scale`, if its holders scale with these.",
		},
		{
			ID: parameterNever, Level: Error, Meaning: "The parameter of a verb can never match.",
			Why:  "The verb takes no parameter on this resource, or only the part of the value before the first slash is the parameter: a label `pod-security.kubernetes.io/enforce` has the verb `granular:label(pod-security.kubernetes.io)`.",
			Cure: "Write the verb as the message says.",
		},
		{
			ID: markerNoEffect, Level: Warning, Meaning: "The marker is granted on a resource on which it lets no request in.",
			Why:  "fieldperm lets holders of the marker write objects that kube-apiserver stores, and their subresources that update them. On all others the marker has no effect ([A2](../semantics.md#a2-authorize-returns-noopinion-for-requests-that-skip-admission)).",
			Cure: "Remove the marker from the rule. Grant the generic permission, if the resource is to be written.",
		},
		{
			ID: clusterInRole, Level: Error, Meaning: "A Role, or a RoleBinding of a ClusterRole, grants verbs on a resource that has no namespace.",
			Why:  "The rules of a Role hold in its namespace, and a request for such a resource is in none. The exception is `namespaces`: a request for a Namespace is in that namespace.",
			Cure: "Use a ClusterRole and a ClusterRoleBinding.",
		},
		{
			ID: createNames, Level: Warning, Meaning: "A rule grants `create`, has `resourceNames`, and grants neither `patch` nor `update`.",
			Why:  "The name of a new object is not known when kube-apiserver authorizes a POST, so the rule does not allow it. Only a server-side apply or a PUT of an object that does not exist is authorized with the name. It takes `patch` or `update` too.",
			Cure: "Grant `create` in a rule without `resourceNames`.",
		},
		{
			ID: allFields, Level: Note, Meaning: "A role grants `granular:*`.",
			Why:  "`granular:*` is one verb and no wildcard: it covers every field that has no barrier, as `update` does.",
			Cure: "Grant the verbs of the fields that are needed.",
		},
		{
			ID: wildcardBarrier, Level: Warning, Meaning: "The verb `*` includes the verbs of barriers.",
			Why:  "A barrier holds for `update` and not for `*`: RBAC answers yes for each verb. Holders of the role pass the barriers of the resource. The roles of Kubernetes itself are counted in one note without `--all`; their bindings to further subjects are reported.",
			Cure: "Name the verbs of the rule: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.",
		},
	}
}

func jointRules() []Rule {
	return []Rule{
		{
			ID: verbWithoutMarker, Level: Error, Meaning: "A subject holds a granular verb on a resource, and holds neither the marker nor the generic permission there.",
			Why: "Without the marker kube-apiserver refuses the request before fieldperm sees it. All bindings of the subject and of the groups that it always has are counted. " +
				"The level is `warning` or `note` if another group or user has what is missing, because RBAC does not say who is a member. It is `note` for a role that is not bound.",
			Cure: "Add the verb `granular` to the rule, or remove the verb.",
		},
		{
			ID: markerWithoutVerb, Level: Warning, Meaning: "A subject holds the marker on a resource, and no granular verb.",
			Why:  "The marker covers no field. Its holder can only make writes that change nothing.",
			Cure: "Add granular verbs, or remove the marker.",
		},
		{
			ID: idleVerb, Level: Warning, Meaning: "A subject holds a granular verb, and the generic permission for the same objects.",
			Why:  "`update`, `patch` and `*` cover every field without a barrier, so the verb limits nothing. `create` alone is no such grant. Verbs at or below a barrier are not reported, unless the subject holds `*`. The level is `note` without the marker: then the verb is meant for a barrier that is not there.",
			Cure: "Take the generic permission away, for example with `kubectl fieldperm tighten`, or remove the verb.",
		},
		{
			ID: markerWithoutGet, Level: Warning, Meaning: "A subject holds the marker on a resource, and neither `get` nor the generic permission there.",
			Why: "Without `get` the marker lets in no update and no patch ([A7](../semantics.md#a7-a-user-who-may-not-read-is-not-let-in-to-write)). For RBAC a subresource is a resource of its own. " +
				"The level is `note` if another group or user has `get`, or if it is held for some of the objects.",
			Cure: "Add `get`, unless the subject only creates objects.",
		},
		{
			ID: powerOfMany, Level: Warning, Meaning: "More than `--many` subjects hold a verb that has effects beyond its field, or every user does.",
			Why:  "[powers.md](powers.md) lists these verbs. A group counts as one subject. `system:authenticated`, `system:unauthenticated` and `system:serviceaccounts` count as every user, for which the level is `error`.",
			Cure: "Bind the role to the subjects that need it, or grant a narrower verb.",
		},
	}
}

func barrierRules() []Rule {
	return []Rule{
		{
			ID: barrierNobody, Level: Warning, Meaning: "No subject holds the verb of a barrier.",
			Why:  "Only members of `system:masters` can change the fields. The level is `note` if files are audited, which may lack the grant. Barriers of the built-in catalogue are not reported.",
			Cure: "Grant the verb, or keep the barrier if that is meant.",
		},
		{
			ID: barrierEverybody, Level: Error, Meaning: "Every user holds the verb of a barrier.",
			Why:  "The barrier refuses no write of a user with `update`.",
			Cure: "Take the verb from `system:authenticated`, `system:unauthenticated` and `system:serviceaccounts`.",
		},
		{
			ID: notCompiled, Level: Error, Meaning: "A PermissionSchema, an UncoveredPermissionSet or a ConditionalPolicy has faults.",
			Why:  "Its last valid form is in force. If there is none, what it guards is refused. The condition `Compiled` has the faults.",
			Cure: "Correct the object as its condition says.",
		},
		{
			ID: barrierNotEnforced, Level: Error, Meaning: "The condition `Enforced` of an object with barriers is not `True` for its present generation.",
			Why:  "fieldperm has not seen that every kube-apiserver [has loaded the rules](../enforcement.md#which-rules-are-loaded). The level is `warning` if it is not known, and `note` if the object is only tried (`validationActions`).",
			Cure: "Do what the message of the condition says.",
		},
		{
			ID: markerNotEnforced, Level: Error, Meaning: "kube-apiserver does not let a holder of the marker in.",
			Why:  "The audit asks kube-apiserver by a SubjectAccessReview whether a subject with the marker may update. If not, enforcement is [not proven](../enforcement.md#while-enforcement-is-not-proven), or kube-apiserver does not ask fieldperm. Granular users are refused.",
			Cure: "Look at `/readyz/enforcement` of fieldperm-webhook, and at the authorizers of kube-apiserver.",
		},
	}
}
