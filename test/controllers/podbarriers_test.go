//go:build controllers

package controllers

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

// TestC2_StoryTwoWithTheControllers: a barrier of a fragment, and one of a set that names the workloads, hold for every workload that Pods are made
// from, and the workload controllers go on making Pods for users who may set the field.
func TestC2_StoryTwoWithTheControllers(t *testing.T) {
	r := (&trial.Trial{Name: "pod-barriers", ServerFlags: map[string][]string{"allow-privileged": {"true"}}}).Open(t, t.TempDir())
	r.Apply("testdata/pod-barriers.yaml")
	trial.Must(t, r.Stack.AwaitGrants(t.Context()))
	for _, fields := range []map[string]any{hostNetwork, sharing, pullSecret} {
		for _, w := range everyWorkload() {
			trial.Must(t, r.Stack.AwaitBarrier(t.Context(), w.resource, w.object("awaited", fields)))
		}
	}
	startControllers(r)
	author, lead := r.User("author").Config, r.User("lead").Config
	r.Until("serviceaccounts", "shop/default", "metadata.name", "default")
	for _, w := range everyWorkload() {
		for _, fields := range []map[string]any{hostNetwork, sharing} {
			if err := create(r, author, w, "refused", fields); !apierrors.IsForbidden(err) || !strings.Contains(fmt.Sprint(err), "needs granular:") {
				t.Errorf("%s with %v: the author got %v", w.kind, fields, err)
			}
		}
		plain := map[string]any{"shareProcessNamespace": false}
		if w.kind == "ControllerRevision" {
			plain = nil // Nothing declares its fields, so that the condition holds for each value.
		}
		if err := create(r, author, w, "plain", plain); err != nil {
			t.Errorf("%s without the fields: %v", w.kind, err)
		}
		fields := maps.Clone(hostNetwork)
		maps.Copy(fields, sharing)
		if err := create(r, lead, w, "wanted", fields); err != nil {
			t.Errorf("%s: the lead got %v", w.kind, err)
		}
	}
	for _, w := range everyWorkload() {
		if w.pods == "" {
			continue
		}
		made := func(name string, has bool) {
			r.Count("pods", "shop", "app="+name+"-"+w.pods, 1, func(o *unstructured.Unstructured) bool {
				host, _, _ := unstructured.NestedBool(o.Object, "spec", "hostNetwork")
				return host == has
			})
		}
		made("plain", false)
		made("wanted", true)
	}
	// The template keeps what it has: other fields of it, and the number of its Pods, need no verb of the barrier.
	patch(t, r, author, "wanted", `{"spec":{"replicas":2,"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`)
	// No kubelet makes the Pods ready, so that the rollout stops after the first new one.
	r.Await("the Deployment of the lead has a second ReplicaSet", trial.Patience, func(ctx context.Context) (bool, string) {
		d, err := r.Client.AppsV1().Deployments("shop").Get(ctx, "wanted", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.Replicas >= 3 && d.Status.UpdatedReplicas >= 1, fmt.Sprint(d.Status, err)
	})
	// A set that does not leave the controllers out stops the workload, also that of a user who may set the field.
	trial.Must(t, create(r, lead, everyWorkload()[0], "stopped", pullSecret))
	r.Until("deployments.apps", "shop/stopped", "status.conditions[Progressing].reason", "ReplicaSetCreateError")
}

var (
	hostNetwork = map[string]any{"hostNetwork": true}
	sharing     = map[string]any{"shareProcessNamespace": true}
	pullSecret  = map[string]any{"imagePullSecrets": []any{map[string]any{"name": "registry"}}}
)

// workload is a kind that Pods are made from.
type workload struct {
	kind     string
	resource schema.GroupVersionResource
	// template is the place of the template; "" is the Pod itself.
	template string
	// spec are the other fields of the specification.
	spec map[string]any
	// pods is the label of Pods that a controller makes of it now, "" for none.
	pods string
}

func everyWorkload() []workload {
	at := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	return []workload{
		{"Deployment", at("apps", "v1", "deployments"), "spec.template", map[string]any{"replicas": int64(1)}, "deployment"},
		{"ReplicaSet", at("apps", "v1", "replicasets"), "spec.template", map[string]any{"replicas": int64(1)}, "replicaset"},
		{"StatefulSet", at("apps", "v1", "statefulsets"), "spec.template", map[string]any{"serviceName": "web", "replicas": int64(1)}, "statefulset"},
		{"DaemonSet", at("apps", "v1", "daemonsets"), "spec.template", nil, "daemonset"},
		{"Job", at("batch", "v1", "jobs"), "spec.template", nil, "job"},
		{"CronJob", at("batch", "v1", "cronjobs"), "spec.jobTemplate.spec.template", map[string]any{"schedule": "0 0 1 1 *"}, ""},
		{"ReplicationController", at("", "v1", "replicationcontrollers"), "spec.template", map[string]any{"replicas": int64(1)}, "replicationcontroller"},
		{"PodTemplate", at("", "v1", "podtemplates"), "template", nil, ""},
		{"ControllerRevision", at("apps", "v1", "controllerrevisions"), "data.spec.template", nil, ""},
		{"Runner", at("example.com", "v1", "runners"), "spec.template", nil, ""},
		{"Pod", at("", "v1", "pods"), "", nil, ""},
	}
}

// object returns an object whose Pods have the fields.
func (w *workload) object(name string, fields map[string]any) *unstructured.Unstructured {
	labels := map[string]any{"app": name + "-" + strings.ToLower(w.kind)}
	spec := map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main:1"}}}
	maps.Copy(spec, fields)
	o := map[string]any{
		"apiVersion": w.resource.GroupVersion().String(), "kind": w.kind,
		"metadata": map[string]any{"name": strings.ToLower(name), "namespace": "shop", "labels": labels},
	}
	if w.template == "" {
		o["spec"] = spec
		return &unstructured.Unstructured{Object: o}
	}
	if strings.Contains(w.kind, "Job") {
		spec["restartPolicy"] = "Never"
	}
	if w.spec != nil {
		o["spec"] = maps.Clone(w.spec)
	}
	path := strings.Split(w.template, ".")
	_ = unstructured.SetNestedMap(o, map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}, path...)
	switch w.kind {
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet":
		_ = unstructured.SetNestedMap(o, map[string]any{"matchLabels": labels}, "spec", "selector")
	case "ReplicationController":
		_ = unstructured.SetNestedMap(o, labels, "spec", "selector")
	case "ControllerRevision":
		o["revision"] = int64(1)
		// As the controllers write it.
		_ = unstructured.SetNestedField(o, "replace", append(path, "$patch")...)
	}
	return &unstructured.Unstructured{Object: o}
}

func create(r *trial.Run, user *rest.Config, w workload, name string, fields map[string]any) error {
	client, err := r.At(user, w.resource.GroupResource().String(), "shop")
	if err != nil {
		return err
	}
	_, err = client.Create(r.T.Context(), w.object(name, fields), metav1.CreateOptions{})
	return err
}

func patch(t *testing.T, r *trial.Run, user *rest.Config, name, change string) {
	t.Helper()
	client, err := r.At(user, "deployments.apps", "shop")
	trial.Must(t, err)
	_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	trial.Must(t, err)
}
