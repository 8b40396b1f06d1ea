package generators

import (
	"context"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	webhookaccessor "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	ours "github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// floorRequest is a write with the expected result: whether it is on the floor.
type floorRequest struct {
	operation             admission.Operation
	group, resource, sub  string
	namespace, name, user string
	groups                []string
	// old and new are metadata; nil is metadata with only a name.
	old, new map[string]any
	floor    bool
}

func floorRequests() map[string]floorRequest {
	const create, update, remove = admission.Create, admission.Update, admission.Delete
	nodes := []string{"system:nodes", "system:authenticated"}
	labelled := func(key, value string) map[string]any {
		return map[string]any{"labels": map[string]any{key: value}}
	}
	const (
		kubelet   = "system:node:n1"
		daemons   = "system:serviceaccount:kube-system:daemon-set-controller"
		scheduler = "system:kube-scheduler"
		collector = "system:serviceaccount:kube-system:generic-garbage-collector"
		podGC     = "system:serviceaccount:kube-system:pod-garbage-collector"
		eviction  = "system:serviceaccount:kube-system:taint-eviction-controller"
		replicas  = "system:serviceaccount:kube-system:replicaset-controller"
		controls  = "system:kube-controller-manager"
	)
	return map[string]floorRequest{
		"a lease":                       {update, "coordination.k8s.io", "leases", "", "any", "x", "alice", nil, nil, labelled("a", "b"), true},
		"a lease of a node":             {create, "coordination.k8s.io", "leases", "", "kube-node-lease", "n1", kubelet, nodes, nil, nil, true},
		"leases of another group":       {update, "example.com", "leases", "", "any", "x", "alice", nil, nil, nil, false},
		"another resource of the group": {update, "coordination.k8s.io", "others", "", "any", "x", "alice", nil, nil, nil, false},
		"a review of access":            {create, "authorization.k8s.io", "subjectaccessreviews", "", "", "", "fieldperm", nil, nil, nil, true},
		"a local review of access":      {create, "authorization.k8s.io", "localsubjectaccessreviews", "", "any", "", "fieldperm", nil, nil, nil, true},
		"a review of a token":           {create, "authentication.k8s.io", "tokenreviews", "", "", "", "alice", nil, nil, nil, true},
		"reviews of another group":      {create, "example.com", "subjectaccessreviews", "", "", "", "alice", nil, nil, nil, false},
		"status of a set":               {update, "fieldperm.dev", "uncoveredpermissionsets", "status", "", "x", "fieldperm", nil, nil, nil, true},
		"a set":                         {update, "fieldperm.dev", "uncoveredpermissionsets", "", "", "x", "fieldperm", nil, nil, nil, false},
		"a heartbeat":                   {update, "", "nodes", "status", "", "n1", kubelet, nodes, labelled("a", "b"), labelled("a", "b"), true},
		"a heartbeat without labels":    {update, "", "nodes", "status", "", "n1", kubelet, nodes, nil, map[string]any{"labels": map[string]any{}}, true},
		"a heartbeat of another node":   {update, "", "nodes", "status", "", "n2", kubelet, nodes, nil, nil, false},
		"a heartbeat by its name alone": {update, "", "nodes", "status", "", "n1", kubelet, []string{"system:authenticated"}, nil, nil, false},
		"a heartbeat by no group":       {update, "", "nodes", "status", "", "n1", kubelet, nil, nil, nil, false},
		"a label by a heartbeat":        {update, "", "nodes", "status", "", "n1", kubelet, nodes, labelled("a", "b"), labelled("a", "c"), false},
		"a new label by a heartbeat":    {update, "", "nodes", "status", "", "n1", kubelet, nodes, nil, labelled("a", "c"), false},
		"an annotation by a heartbeat":  {update, "", "nodes", "status", "", "n1", kubelet, nodes, nil, map[string]any{"annotations": map[string]any{"a": "b"}}, false},
		"a finalizer by a heartbeat":    {update, "", "nodes", "status", "", "n1", kubelet, nodes, map[string]any{"finalizers": []any{"example.com/x"}}, nil, false},
		"an owner by a heartbeat":       {update, "", "nodes", "status", "", "n1", kubelet, nodes, nil, map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "x"}}}, false},
		"a name by a heartbeat":         {update, "", "nodes", "status", "", "n1", kubelet, nodes, nil, map[string]any{"generateName": "x"}, false},
		"taints by a node":              {update, "", "nodes", "", "", "n1", kubelet, nodes, nil, nil, false},
		"status of a node by a user":    {update, "", "nodes", "status", "", "n1", "alice", nil, nil, nil, false},
		"a new node":                    {create, "", "nodes", "", "", "n1", kubelet, nodes, nil, nil, false},
		"a token for a node":            {create, "", "serviceaccounts", "token", "any", "x", kubelet, nodes, nil, nil, true},
		"a token for a user":            {create, "", "serviceaccounts", "token", "any", "x", "alice", nil, nil, nil, false},
		"a service account by a node":   {create, "", "serviceaccounts", "", "any", "x", kubelet, nodes, nil, nil, false},
		"a Pod of a DaemonSet":          {create, "", "pods", "", "kube-system", "", daemons, nil, nil, labelled("a", "b"), true},
		"a Pod of a DaemonSet changed":  {update, "", "pods", "", "kube-system", "x", daemons, nil, nil, labelled("a", "b"), false},
		"a Pod of a DaemonSet of users": {create, "", "pods", "", "shop", "", daemons, nil, nil, nil, false},
		"a Pod of a user":               {create, "", "pods", "", "kube-system", "", "alice", nil, nil, nil, false},
		"a Pod of a node":               {create, "", "pods", "", "kube-system", "x", kubelet, nodes, nil, nil, false},
		"its place":                     {create, "", "pods", "binding", "kube-system", "x", scheduler, nil, nil, nil, true},
		"its place by a user":           {create, "", "pods", "binding", "kube-system", "x", "alice", nil, nil, nil, false},
		"the place of a Pod of users":   {create, "", "pods", "binding", "shop", "x", scheduler, nil, nil, nil, false},
		"its status":                    {update, "", "pods", "status", "kube-system", "x", kubelet, nodes, nil, nil, true},
		"its status by the scheduler":   {update, "", "pods", "status", "kube-system", "x", scheduler, nil, nil, nil, true},
		"its status by a user":          {update, "", "pods", "status", "kube-system", "x", "alice", nil, nil, nil, false},
		"its other containers":          {update, "", "pods", "ephemeralcontainers", "kube-system", "x", daemons, nodes, nil, nil, false},
		"a webhook configuration":       {update, "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "", "x", "alice", nil, nil, nil, false},
		"a lease removed":               {remove, "coordination.k8s.io", "leases", "", "any", "x", "alice", nil, nil, nil, true},
		"leases removed":                {remove, "coordination.k8s.io", "leases", "", "any", "", "alice", nil, nil, nil, true},
		"a set removed":                 {remove, "fieldperm.dev", "uncoveredpermissionsets", "", "", "x", "alice", nil, nil, nil, false},
		"a Pod removed by its node":     {remove, "", "pods", "", "kube-system", "x", kubelet, nodes, nil, nil, true},
		"by the name of a node alone":   {remove, "", "pods", "", "kube-system", "x", kubelet, []string{"system:authenticated"}, nil, nil, false},
		"a Pod of users by its node":    {remove, "", "pods", "", "shop", "x", kubelet, nodes, nil, nil, false},
		"a Pod replaced by a DaemonSet": {remove, "", "pods", "", "kube-system", "x", daemons, nil, nil, nil, true},
		"by a ReplicaSet":               {remove, "", "pods", "", "kube-system", "x", replicas, nil, nil, nil, true},
		"by the controller manager":     {remove, "", "pods", "", "kube-system", "x", controls, nil, nil, nil, true},
		"by a DaemonSet of users":       {remove, "", "pods", "", "shop", "x", daemons, nil, nil, nil, false},
		"a Pod of a gone owner":         {remove, "", "pods", "", "kube-system", "x", collector, nil, nil, nil, true},
		"another object of one":         {remove, "apps", "replicasets", "", "kube-system", "x", collector, nil, nil, nil, false},
		"a Pod of users of a gone one":  {remove, "", "pods", "", "shop", "x", collector, nil, nil, nil, false},
		"a Pod of a gone node":          {remove, "", "pods", "", "kube-system", "x", podGC, nil, nil, nil, true},
		"a Pod of a lost node":          {remove, "", "pods", "", "kube-system", "x", eviction, nil, nil, nil, true},
		"a Pod made by a remover":       {create, "", "pods", "", "kube-system", "x", eviction, nil, nil, nil, false},
		"a Pod of users of a lost node": {remove, "", "pods", "", "shop", "x", eviction, nil, nil, nil, false},
		"a preemption":                  {remove, "", "pods", "", "shop", "x", scheduler, nil, nil, nil, true},
		"a Pod removed by a user":       {remove, "", "pods", "", "kube-system", "x", "alice", nil, nil, nil, false},
		"a node removed by itself":      {remove, "", "nodes", "", "", "n1", kubelet, nodes, nil, nil, false},
		"contents of a namespace":       {remove, "", "pods", "", "shop", "", "system:serviceaccount:kube-system:namespace-controller", nil, nil, nil, false},
		"pods of another group removed": {remove, "metrics.k8s.io", "pods", "", "kube-system", "x", daemons, nil, nil, nil, false},
		"a connection":                  {admission.Connect, "", "pods", "exec", "kube-system", "x", kubelet, nodes, nil, nil, false},
		"pods of another group":         {create, "metrics.k8s.io", "pods", "", "kube-system", "", daemons, nil, nil, nil, false},
	}
}

func (r *floorRequest) object(metadata map[string]any) *unstructured.Unstructured {
	content := map[string]any{"name": r.name}
	for key, value := range metadata {
		content[key] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing", "metadata": content}}
}

// called reports whether the API server calls the webhook, according to the match conditions.
func (r *floorRequest) called(matcher matchconditions.Matcher) matchconditions.MatchResult {
	var object, options, before runtime.Object = r.object(r.new), &metav1.CreateOptions{}, nil
	switch r.operation {
	case admission.Update:
		options, before = &metav1.UpdateOptions{}, r.object(r.old)
	case admission.Delete:
		object, options, before = nil, &metav1.DeleteOptions{}, r.object(r.old)
	case admission.Create, admission.Connect:
	}
	gvk := runtimeschema.GroupVersionKind{Group: r.group, Version: "v1", Kind: "Thing"}
	attributes := admission.NewAttributesRecord(object, before, gvk, r.namespace, r.name, gvk.GroupVersion().WithResource(r.resource), r.sub, r.operation, options, false, &user.DefaultInfo{Name: r.user, Groups: r.groups})
	return matcher.Match(context.Background(), &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(before)}, nil, nil)
}

// reviewed returns the request that a webhook would receive.
func (r *floorRequest) reviewed(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	out := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Operation(r.operation), Resource: metav1.GroupVersionResource{Group: r.group, Version: "v1", Resource: r.resource}, SubResource: r.sub,
		Namespace: r.namespace, Name: r.name, UserInfo: authenticationv1.UserInfo{Username: r.user, Groups: r.groups},
	}
	for metadata, into := range map[*map[string]any]*runtime.RawExtension{&r.old: &out.OldObject, &r.new: &out.Object} {
		raw, err := json.Marshal(r.object(*metadata).Object)
		if err != nil {
			t.Fatal(err)
		}
		into.Raw = raw
	}
	return out
}

// TestW4_TheConditionsAndTheDecisionAgree: the match conditions and the decision leave out the same requests. D4 and D5 are in the table.
func TestW4_TheConditionsAndTheDecisionAgree(t *testing.T) {
	w := webhooks.UncoveredWebhook(webhooks.ClientConfigAt("https://127.0.0.1:1", webhooks.UncoveredPath, nil), webhooks.Writes.On([]v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*/*"}}}))
	accessor := webhookaccessor.NewValidatingWebhookAccessor("uid", webhooks.UncoveredName, &w)
	matcher := accessor.GetCompiledMatcher(cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())))
	for name, r := range floorRequests() {
		result := r.called(matcher)
		if result.Error != nil {
			t.Errorf("%s: %v: an error refuses the request", name, result.Error)
		}
		if result.Matches == r.floor {
			t.Errorf("%s: the webhook is called: %t", name, result.Matches)
		}
		if got := ours.OnFloor(r.reviewed(t)); got != r.floor {
			t.Errorf("%s: the decision leaves it out: %t", name, got)
		}
	}
}
