package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// The floor is the set of requests that no barrier reaches: those that a control plane needs to keep running and to start fieldperm
// again. The match conditions of the webhook "uncovered" exclude them (Floor), so that they never wait for fieldperm. The decision
// excludes them too, in case another webhook sends them (OnFloor). The two must agree; a test compares them. docs/security.md (What the
// floor costs) has the reason for each row, and what a barrier loses by it.
//
// The floor lists requests by their resource and, where the fields of the resource matter, by their user. A row must not let a user
// change a field that an administrator may have put behind a barrier.

// FloorCondition is a match condition of the webhook "uncovered". If its expression is false, the API server does not call the webhook.
type FloorCondition struct{ Name, Expression string }

const (
	coordinationGroup   = "coordination.k8s.io"
	authenticationGroup = "authentication.k8s.io"
	authorizationGroup  = "authorization.k8s.io"
	registrationGroup   = "admissionregistration.k8s.io"

	nodesGroup       = "system:nodes"
	nodePrefix       = "system:node:"
	schedulerUser    = "system:kube-scheduler"
	controlNamespace = "kube-system"
)

// podMakers are the users that create Pods of DaemonSets and Deployments, and delete those that they replace.
var podMakers = []string{
	"system:kube-controller-manager",
	"system:serviceaccount:kube-system:daemon-set-controller",
	"system:serviceaccount:kube-system:replicaset-controller",
}

// podRemovers are the controllers that delete Pods of lost nodes and of deleted owners. A ReplicaSet gets no new Pod in place of one on a
// lost node before.
var podRemovers = []string{
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:pod-garbage-collector",
	"system:serviceaccount:kube-system:taint-eviction-controller",
}

// wholly are the resources that are on the floor for every user, by API group.
var wholly = map[string][]string{
	coordinationGroup:           {"leases", "leasecandidates"},
	authenticationGroup:         {"tokenreviews", "selfsubjectreviews"},
	authorizationGroup:          {"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	v1alpha1.GroupVersion.Group: {"conditionalpolicies/status", "permissionschemas/status", "uncoveredpermissionsets/status"},
	registrationGroup:           {"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
}

// Floor returns the match conditions. Their expressions must not fail, because the API server would refuse the request. Objects of
// admission registration need no condition, because an API server never sends them to a webhook that is an object.
func Floor() []FloorCondition {
	const (
		subresource = `has(request.subResource) && request.subResource == `
		byNode      = `has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups`
	)
	return []FloorCondition{{
		"not-leases",
		`!(request.resource.group == 'coordination.k8s.io' && request.resource.resource in ['leases', 'leasecandidates'])`,
	}, {
		"not-reviews",
		`!(request.resource.group == 'authentication.k8s.io' && request.resource.resource in ['tokenreviews', 'selfsubjectreviews']
  || request.resource.group == 'authorization.k8s.io' && request.resource.resource in ['subjectaccessreviews', 'localsubjectaccessreviews', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'])`,
	}, {
		"not-own-status",
		`!(request.resource.group == 'fieldperm.dev' && request.resource.resource in ['conditionalpolicies', 'permissionschemas', 'uncoveredpermissionsets'] && ` + subresource + `'status')`,
	}, {
		"not-heartbeats",
		`!(request.operation == 'UPDATE' && request.resource.group == '' && request.resource.resource == 'nodes' && ` + subresource + `'status'
  && ` + byNode + ` && request.userInfo.username == 'system:node:' + request.name
  && (has(object.metadata.labels) ? object.metadata.labels : {}) == (has(oldObject.metadata.labels) ? oldObject.metadata.labels : {})
  && (has(object.metadata.annotations) ? object.metadata.annotations : {}) == (has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {})
  && (has(object.metadata.finalizers) ? object.metadata.finalizers : []) == (has(oldObject.metadata.finalizers) ? oldObject.metadata.finalizers : [])
  && (has(object.metadata.ownerReferences) ? object.metadata.ownerReferences : []) == (has(oldObject.metadata.ownerReferences) ? oldObject.metadata.ownerReferences : [])
  && (has(object.metadata.generateName) ? object.metadata.generateName : '') == (has(oldObject.metadata.generateName) ? oldObject.metadata.generateName : ''))`,
	}, {
		"not-tokens-of-nodes",
		`!(request.operation == 'CREATE' && request.resource.group == '' && request.resource.resource == 'serviceaccounts' && ` + subresource + `'token' && ` + byNode + `)`,
	}, {
		"not-pods-of-the-control-plane",
		`!(request.resource.group == '' && request.resource.resource == 'pods' && has(request.namespace) && request.namespace == 'kube-system'
  && (request.operation == 'CREATE' && (!has(request.subResource) || request.subResource == '')
      && request.userInfo.username in ['system:kube-controller-manager', 'system:serviceaccount:kube-system:daemon-set-controller', 'system:serviceaccount:kube-system:replicaset-controller']
    || request.operation == 'CREATE' && ` + subresource + `'binding' && request.userInfo.username == 'system:kube-scheduler'
    || request.operation == 'UPDATE' && ` + subresource + `'status' && (request.userInfo.username == 'system:kube-scheduler' || ` + byNode + `)))`,
	}, {
		"not-replaced-pods",
		`!(request.operation == 'DELETE' && request.resource.group == '' && request.resource.resource == 'pods' && (!has(request.subResource) || request.subResource == '')
  && (request.userInfo.username == 'system:kube-scheduler'
    || has(request.namespace) && request.namespace == 'kube-system'
      && (request.userInfo.username in ['system:kube-controller-manager', 'system:serviceaccount:kube-system:daemon-set-controller', 'system:serviceaccount:kube-system:replicaset-controller',
          'system:serviceaccount:kube-system:generic-garbage-collector', 'system:serviceaccount:kube-system:pod-garbage-collector', 'system:serviceaccount:kube-system:taint-eviction-controller']
        || ` + byNode + `)))`,
	}}
}

// OnFloor reports whether a request is on the floor, so that no barrier reaches it. It is false for a request that cannot be decoded.
func OnFloor(req *admissionv1.AdmissionRequest) bool {
	create, update, remove := req.Operation == admissionv1.Create, req.Operation == admissionv1.Update, req.Operation == admissionv1.Delete
	name, who := req.Resource.Resource, req.UserInfo.Username
	byNode := slices.Contains(req.UserInfo.Groups, nodesGroup)
	switch req.Resource.Group {
	case coordinationGroup, authenticationGroup, authorizationGroup:
		return slices.Contains(wholly[req.Resource.Group], name)
	case v1alpha1.GroupVersion.Group:
		return slices.Contains(wholly[req.Resource.Group], name+"/"+req.SubResource)
	case "":
	default:
		return false
	}
	switch name + "/" + req.SubResource {
	case "nodes/status":
		return update && byNode && who == nodePrefix+req.Name && sameMetadata(req.OldObject.Raw, req.Object.Raw)
	case "serviceaccounts/token":
		return create && byNode
	case "pods/":
		inControl := req.Namespace == controlNamespace
		return inControl && (create || remove) && slices.Contains(podMakers, who) ||
			inControl && remove && (byNode || slices.Contains(podRemovers, who)) ||
			remove && who == schedulerUser
	case "pods/binding":
		return create && req.Namespace == controlNamespace && who == schedulerUser
	case "pods/status":
		return update && req.Namespace == controlNamespace && (who == schedulerUser || byNode)
	}
	return false
}

// sameMetadata reports whether two objects have the same labels, annotations, finalizers, owner references and generateName. A write of
// the status may change these fields besides the status.
func sameMetadata(a, b []byte) bool {
	if mayDiffer(a) || mayDiffer(b) {
		return false
	}
	type metadata struct {
		Labels, Annotations map[string]any
		Finalizers          []any
		OwnerReferences     []any
		GenerateName        string
	}
	var objects [2]struct{ Metadata metadata }
	for i, raw := range [][]byte{a, b} {
		if json.Unmarshal(raw, &objects[i]) != nil {
			return false
		}
		// Absent and empty mean the same here.
		m := &objects[i].Metadata
		if len(m.Labels) == 0 {
			m.Labels = nil
		}
		if len(m.Annotations) == 0 {
			m.Annotations = nil
		}
		if len(m.Finalizers) == 0 {
			m.Finalizers = nil
		}
		if len(m.OwnerReferences) == 0 {
			m.OwnerReferences = nil
		}
	}
	return reflect.DeepEqual(objects[0], objects[1])
}

// mayDiffer reports whether an object may have bytes that are not UTF-8. JSON has the escape of U+FFFD for each of them (D10).
func mayDiffer(raw []byte) bool { return bytes.Contains(raw, []byte(`\ufffd`)) }

// FloorResource reports whether a resource, written as in a webhook rule, is on the floor for every user, so that a barrier on it has no
// effect. A resource includes its subresources.
func FloorResource(group, resource string) bool {
	return slices.Contains(wholly[group], resource)
}

// BeyondBarriers reports whether kube-apiserver asks uncovered about no write like this one: of a member of system:masters (W2), on the floor (W4),
// or of an object of admission registration.
func BeyondBarriers(req *admissionv1.AdmissionRequest) bool {
	return isBeyondDeny(req) || req.Resource.Group == registrationGroup && FloorResource(registrationGroup, req.Resource.Resource)
}

// FloorResources returns the resources of rules that no barrier reaches, as RESOURCE.GROUP, each once.
func FloorResources(rules []v1alpha1.ResourceRule) []string {
	var out []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if name := resource + "." + group; FloorResource(group, resource) && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// everyResource reports whether one of the rules is for every resource.
func everyResource(rules []v1alpha1.ResourceRule) bool {
	return slices.ContainsFunc(rules, func(rule v1alpha1.ResourceRule) bool {
		return slices.Contains(rule.APIGroups, "*") && (slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, "*/*"))
	})
}

// maxNamed is the maximum number of names in a warning, because an API server truncates long warnings.
const maxNamed = 5

const everythingText = "it is for every resource: while fieldperm is down, only members of system:masters can write anything but what rule W4 leaves out: list spec.resources to narrow it"

// SetWarnings returns warnings for the author of a set about the resources to which it applies. compiled is the schema that the set was
// compiled with.
func SetWarnings(compiled *schema.Schema, set *sets.Document) []string {
	var out []string
	if resources := compiled.SetResources(&set.Set.Spec); len(resources) == 0 || everyResource(resources) || set.Set.Spec.Fragment == "metadata" {
		out = append(out, everythingText)
	}
	if resources := FloorResources(set.Set.Spec.Resources); len(resources) > 0 {
		out = append(out, "no barrier reaches "+strings.Join(resources, ", ")+", which the control plane needs to go on running (rule W4): take it out of spec.resources")
	}
	if warning := templateWarning(compiled, &set.Set.Spec); warning != "" {
		out = append(out, warning)
	}
	return out
}

// some returns the first maxNamed items as text.
func some(items []string) string {
	out := strings.Join(items[:min(len(items), maxNamed)], ", ")
	if more := len(items) - maxNamed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
