//go:build integration

package plugin

// readers grants the permissions that the command needs for its sources, and for questions about other users.
const readers = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reads-permission-schemas}, rules: [
  {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]},
  {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list]},
  {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [list]},
  {apiGroups: [fieldperm.dev], resources: [permissionschemas, uncoveredpermissionsets, conditionalpolicies], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: asker}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-permission-schemas},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: asker}]}
`

// conditionalPolicies are the specifications of ConditionalPolicies. Some conditions fail on some objects.
var conditionalPolicies = []string{
	`{subjects: [{kind: Group, name: 'system:authenticated'}], verbs: [update, patch], resources: [{apiGroups: ['*'], resources: ['*']}], effect: Allow,
		condition: 'changes.all(c, c.path.startsWith(".metadata"))', description: metadata}`,
	`{subjects: [{kind: User, name: nobody}, {kind: User, name: user1}], verbs: [create, update, patch, delete, deletecollection], resources: [{apiGroups: ['*'], resources: ['*']}], effect: Allow,
		condition: '(object == null || object.metadata.name.size() > 3) && has(oldObject.metadata.labels)'}`,
	`{subjects: [{kind: User, name: marked}, {kind: User, name: user2}], verbs: ['granular:scale', 'granular:specification', 'granular:metadata'], resources: [{apiGroups: ['*'], resources: ['*']}], effect: Allow,
		condition: 'changes.size() < 3 && request.operation == "UPDATE"', description: few changes}`,
	`{subjects: [{kind: Group, name: 'system:authenticated'}], verbs: [update, patch, create], resources: [{apiGroups: ['*'], resources: ['*']}], effect: Deny,
		condition: 'has(object.metadata.annotations) && object.metadata.annotations.size() > 1', description: many annotations}`,
	`{subjects: [{kind: User, name: user0}], verbs: [update, patch], resources: [{apiGroups: ['*'], resources: ['*']}], effect: NoOpinion, condition: 'object.spec.size == 1'}`,
	`{subjects: [{kind: User, name: nobody}], verbs: [granular, 'granular:*'], resources: [{apiGroups: [example.com], resources: ['*']}], effect: Allow, condition: 'object.spec.?size.orValue(0) < 5', description: small ones}`,
	`{subjects: [{kind: User, name: user3}, {kind: User, name: updater}], verbs: [create, 'granular:metadata'], resources: [{apiGroups: ['*'], resources: ['*']}], effect: Deny, condition: 'object.spec.nothing == 1'}`,
}

// definitions are CustomResourceDefinitions: some have versions that lose fields and some do not, one has a conversion webhook, one
// is faulty, and two are not served by the API server.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations:
    fieldperm.dev/permission-verbs: |
      {"v1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.size", "verb": "example.com/size", "excludedWhen": "self > 5"},
              {"path": ".spec.danger", "verb": "example.com/danger", "excluded": true}, {"path": ".spec.tags", "verb": "example.com/tags", "parameterSource": "tag"},
              {"path": ".spec.tags[*]", "verb": "example.com/tag", "parameterizedBy": "tag"}],
       "v1beta1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.size", "verb": "example.com/size", "excludedWhen": "self > 5"}],
       "v1alpha1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.size", "verb": "example.com/size", "excludedWhen": "self > 5"},
              {"path": ".spec.danger", "verb": "example.com/danger", "excluded": true}, {"path": ".spec.tags", "verb": "example.com/tags", "parameterSource": "tag"},
              {"path": ".spec.tags[*]", "verb": "example.com/tag", "parameterizedBy": "tag"}]}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, subresources: &sub {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}, schema: &all {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer}, danger: {type: boolean}, color: {type: string}, tags: {type: object, additionalProperties: {type: string}},
        parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}}}},
      status: {type: object, properties: {size: {type: integer}}}}}}}
  - {name: v1beta1, served: true, storage: false, subresources: *sub, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}, status: {type: object, properties: {size: {type: integer}}}}}}}
  - {name: v1alpha1, served: true, storage: false, subresources: *sub, schema: *all}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gauges.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1": [{"path": ".spec.size", "verb": "example.com/size"}], "v2": [{"path": ".spec.size", "verb": "example.com/size"}]}'}
spec:
  group: example.com
  names: {kind: Gauge, plural: gauges}
  scope: Cluster
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/convert'}}}
  versions:
  - {name: v1, served: true, storage: true, schema: &gauge {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}}}}}
  - {name: v2, served: true, storage: false, schema: *gauge}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: broken.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v2": []}'}
spec:
  group: example.com
  names: {kind: Broken, plural: broken}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: contenders.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1": [{"path": ".spec.color", "verb": "example.com/theft", "excluded": true}]}'}
spec:
  group: example.com
  names: {kind: Gadget, plural: contenders}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: thieves.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test", fieldperm.dev/permission-verbs: '{"v1": [{"path": ".spec", "verb": "example.com/theft", "excluded": true}]}'}
spec:
  group: networking.k8s.io
  names: {kind: Thief, plural: thieves}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// permissionSchemas are specifications, of which each round uses some: two conflict with sets, one is faulty, and one is about a
// kind that does not exist.
var permissionSchemas = []string{
	"{group: apps, kind: Deployment, permissions: [{path: .spec.paused, verb: example.com/pause, excluded: true}, {path: .spec.replicas, verb: example.com/count, excludedWhen: 'self > 5'}]}",
	"{kind: ConfigMap, permissions: [{path: .immutable, verb: example.com/immutability}, {path: '.data', verb: example.com/data, parameterSource: key}]}",
	"{kind: Namespace, permissions: [{path: '.metadata.labels[*]', verb: example.com/label, parameterizedBy: labelKey}]}",
	"{kind: Pod, permissions: [{path: '.metadata.annotations', verb: example.com/annotations, excluded: true}]}",
	"{group: example.com, kind: Gadget, permissions: [{path: .spec.color, verb: example.com/color, excluded: true}]}",
	"{group: example.com, kind: Gadget, versions: [v1beta1], permissions: [{path: .spec.size, verb: example.com/amount}]}",
	"{group: sea.example.com, kind: Fischer, permissions: [{path: .spec.catch, verb: example.com/fishing, excluded: true}]}",
	"{kind: Service, permissions: [{path: .spec.nosuch, verb: example.com/nothing, excluded: true}]}",
	"{group: tocome.example.com, kind: Coming, permissions: [{path: .spec, verb: example.com/coming}]}",
}

// sets are specifications of UncoveredPermissionSets, with and without resources.
var sets = []string{
	"{uncoveredPermissions: ['granular:scale']}",
	"{uncoveredPermissions: ['granular:image', 'granular:label(example.com)'], resources: [{apiGroups: [apps], resources: [deployments, daemonsets]}, {apiGroups: [''], resources: [pods]}]}",
	"{uncoveredPermissions: ['granular:*'], resources: [{apiGroups: [''], resources: [configmaps]}], matchConditions: [{name: user, expression: \"request.userInfo.username in ['user1', 'user2', 'updater']\"}]}",
	"{uncoveredPermissions: ['granular:label(pod-security.kubernetes.io)'], resources: [{apiGroups: [''], resources: [namespaces]}]}",
	"{uncoveredPermissions: ['granular:metadata'], resources: [{apiGroups: [example.com], resources: [gadgets]}]}",
	"{uncoveredPermissions: ['granular:sea.example.com/catch', 'granular:example.com/tag(a)'], matchConditions: [{name: update, expression: \"request.operation == 'UPDATE'\"}]}",
	"{uncoveredPermissions: ['granular:example.com/toCome'], resources: [{apiGroups: [tocome.example.com], resources: [comings]}]}",
}
