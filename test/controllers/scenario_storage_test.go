//go:build controllers

package controllers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

func playStorage(w *trial.World, _ *kubelets) {
	const claims, volumes, pods, sets = "persistentvolumeclaims", "persistentvolumes", "pods", "statefulsets.apps"
	w.Apply("testdata/volumes.yaml")
	// A claim that is seen before its volume would be offered to the driver.
	for _, name := range []string{"static", "local", "remote"} {
		w.Until(volumes, name, "status.phase", "Available")
	}
	w.Apply("testdata/storage.yaml")
	w.Until(claims, "shop/static", "status.phase", "Bound")
	w.Until(claims, "shop/remote", "status.phase", "Bound")
	// The test plays the attacher of the driver.
	w.Await("the volume is attached", trial.Patience, func(ctx context.Context) (bool, string) {
		list, err := w.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, fmt.Sprint(list, err)
		}
		list.Items[0].Status.Attached = true
		_, err = w.Client.StorageV1().VolumeAttachments().UpdateStatus(ctx, &list.Items[0], metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	w.Until(pods, "shop/volumes", "status.phase", "Running")
	w.Until(claims, "shop/volumes-scratch", "status.phase", "Bound")
	w.Until(claims, "shop/local", "status.phase", "Bound")
	w.Until(claims, "shop/later", "status.phase", "Bound")
	w.Until(sets, "shop/db", "status.readyReplicas", "2")
	w.Until(claims, "shop/data-db-1", "status.phase", "Bound")
	// A driver of another expands the volume.
	w.Patch(claims, "shop/remote", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	// A StatefulSet, forward and back, and smaller.
	set := func(image string) {
		w.Patch(sets, "shop/db", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
		w.Await("db is rolled out", trial.Patience, func(ctx context.Context) (bool, string) {
			s, err := w.Client.AppsV1().StatefulSets("shop").Get(ctx, "db", metav1.GetOptions{})
			return err == nil && s.Status.ObservedGeneration == s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision &&
				s.Status.ReadyReplicas == 2, fmt.Sprint(s.Status, err)
		})
	}
	set("main:2")
	set("main:1")
	// What another takes from a Pod of a StatefulSet is put back.
	w.Patch(pods, "shop/db-0", `{"metadata":{"labels":{"statefulset.kubernetes.io/pod-name":null,"apps.kubernetes.io/pod-index":null}}}`)
	w.Patch(sets, "shop/db", `{"spec":{"replicas":1}}`)
	w.Until(pods, "shop/db-0", "metadata.labels[statefulset.kubernetes.io/pod-name]", "db-0")
	w.Gone(claims, "shop/data-db-1")
	w.Patch(sets, "shop/db", `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}}`)
	w.Until(claims, "shop/data-db-0", "metadata.ownerReferences", "")
	// Claims and volumes in use are protected.
	w.Remove(claims, "shop/later", "")
	w.Until(claims, "shop/later", "metadata.finalizers", "[kubernetes.io/pvc-protection]")
	w.Remove(volumes, "static", "")
	w.Remove(pods, "shop/volumes", "")
	w.Gone(claims, "shop/later")
	w.Gone(claims, "shop/volumes-scratch")
	w.Remove(claims, "shop/static", "")
	w.Gone(volumes, "static")
	w.Count("volumeattachments.storage.k8s.io", "", "", 0, nil)
	w.Until("nodes", "worker-1", "status.volumesAttached", "")
	// A released volume stays, and a claim without its volume is lost.
	w.Remove(claims, "shop/local", "")
	w.Until(volumes, "local", "status.phase", "Released")
	w.Remove(volumes, "remote", "")
	w.Patch(volumes, "remote", `{"metadata":{"finalizers":null}}`)
	w.Until(claims, "shop/remote", "status.phase", "Lost")
	w.Until("volumeattributesclasses.storage.k8s.io", "fast", "metadata.finalizers", "[kubernetes.io/vac-protection]")
	w.Remove("volumeattributesclasses.storage.k8s.io", "fast", "")
	w.Gone("volumeattributesclasses.storage.k8s.io", "fast")
}

func playDevices(w *trial.World, _ *kubelets) {
	const claims = "resourceclaims.resource.k8s.io"
	w.Apply("testdata/devices.yaml")
	w.Until("pods", "shop/templated", "status.phase", "Running")
	w.Until("pods", "shop/sharing", "status.phase", "Succeeded")
	// A claim without a consumer is deallocated.
	w.Until(claims, "shop/shared", "status.reservedFor", "")
	w.Remove("pods", "shop/sharing", "")
	w.Until(claims, "shop/shared", "metadata.finalizers", "")
	w.Remove("pods", "shop/templated", "")
	w.Count(claims, "shop", "", 1, nil)
}

func playPreemption(w *trial.World, _ *kubelets) {
	w.Apply("testdata/preemption.yaml")
	w.Until("pods", "shop/low", "status.phase", "Running")
	w.Apply("testdata/urgent.yaml")
	w.Until("pods", "shop/high", "status.phase", "Running")
	w.Until("pods", "shop/nowhere", "status.conditions[PodScheduled].status", "False")
	w.Gone("pods", "shop/low")
}

func playGarbage(w *trial.World, _ *kubelets) {
	const deployments = "deployments.apps"
	w.Apply("testdata/garbage.yaml")
	for _, name := range []string{"background", "foreground", "orphan"} {
		w.Until(deployments, "shop/"+name, "status.readyReplicas", "1")
	}
	w.Remove(deployments, "shop/background", metav1.DeletePropagationBackground)
	w.Remove(deployments, "shop/foreground", metav1.DeletePropagationForeground)
	w.Remove(deployments, "shop/orphan", metav1.DeletePropagationOrphan)
	for _, name := range []string{"background", "foreground", "orphan"} {
		w.Gone(deployments, "shop/"+name)
	}
	w.Count("replicasets.apps", "shop", "app in (background,foreground)", 0, nil)
	w.Count("pods", "shop", "app in (background,foreground)", 0, nil)
	w.Count("replicasets.apps", "shop", "app=orphan", 1, func(o *unstructured.Unstructured) bool { return len(o.GetOwnerReferences()) == 0 })
	// A dependent of two owners loses one.
	var owners []metav1.OwnerReference
	for _, name := range []string{"owner-1", "owner-2"} {
		owner, err := w.Client.CoreV1().ConfigMaps("shop").Get(w.T.Context(), name, metav1.GetOptions{})
		trial.Must(w.T, err)
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID})
	}
	for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
		client, err := w.At(nil, resource, "shop")
		trial.Must(w.T, err)
		kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount"}[resource]
		dependent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "dependent"}}}
		dependent.SetOwnerReferences(owners)
		_, err = client.Create(w.T.Context(), dependent, metav1.CreateOptions{})
		trial.Must(w.T, err)
	}
	w.Remove("configmaps", "shop/owner-1", metav1.DeletePropagationBackground)
	for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
		w.Until(resource, "shop/dependent", "metadata.ownerReferences[owner-1].name", "")
	}
	w.Remove("configmaps", "shop/owner-2", metav1.DeletePropagationForeground)
	w.Gone("configmaps", "shop/owner-2")
	w.Gone("secrets", "shop/dependent")
}

// playAdoption deletes controllers and leaves their Pods, and makes the controllers again.
func playAdoption(w *trial.World, _ *kubelets) {
	w.Apply("testdata/adoption.yaml")
	resources := []string{"deployments.apps", "daemonsets.apps", "statefulsets.apps", "replicationcontrollers", "jobs.batch"}
	const all, nodes = "app in (adopting-replicas,adopting-nodes,adopting-set,adopting-old,adopting-job)", 2
	pods := len(resources) - 1 + nodes
	dependents := func(owners int) {
		owned := func(o *unstructured.Unstructured) bool {
			return len(o.GetOwnerReferences()) == owners && (o.GetKind() != "Pod" || trial.Dig(o.Object, "status.conditions[Ready].status") == "True")
		}
		w.Count("replicasets.apps", "shop", "app=adopting-replicas", 1, owned)
		w.Count("controllerrevisions.apps", "shop", "app in (adopting-nodes,adopting-set)", 2, owned)
		if owners == 0 {
			// The ReplicaSet keeps its Pod.
			w.Count("pods", "shop", all, pods-1, owned)
			return
		}
		w.Count("pods", "shop", all, pods, owned)
	}
	dependents(1)
	for _, resource := range resources {
		w.Remove(resource, "shop/adopting", metav1.DeletePropagationOrphan)
	}
	for _, resource := range resources {
		w.Gone(resource, "shop/adopting")
	}
	dependents(0)
	w.Apply("testdata/adoption.yaml")
	dependents(1)
}

// playNodes lets one node go away and come back, and deletes another.
func playNodes(w *trial.World, k *kubelets) {
	w.Apply("testdata/evicted.yaml")
	w.Until("pods", "shop/evicted", "status.phase", "Running")
	w.Until("pods", "shop/orphaned", "status.phase", "Running")
	k.down("away-1", "away-2")
	w.Until("nodes", "away-1", "status.conditions[Ready].status", "Unknown")
	w.Await("the Pod is evicted", trial.Patience, func(ctx context.Context) (bool, string) {
		pod, err := w.Client.CoreV1().Pods("shop").Get(ctx, "evicted", metav1.GetOptions{})
		return err == nil && pod.DeletionTimestamp != nil, fmt.Sprint(pod, err)
	})
	w.Until("pods", "shop/evicted", "status.conditions[DisruptionTarget].reason", "DeletionByTaintManager")
	w.Remove("nodes", "away-2", "")
	w.Patch("nodes", "away-1", `{"metadata":{"labels":{"pool":"away"}},"spec":{"unschedulable":true}}`)
	taint(w, "away-1")
	w.Gone("pods", "shop/evicted")
	trial.Must(w.T, k.up(w.T.Context(), "away-1"))
	w.Until("nodes", "away-1", "status.conditions[Ready].status", "True")
	untaint(w, "away-1")
	w.Await("the node has no taint of the controllers", trial.Patience, func(ctx context.Context) (bool, string) {
		node, err := w.Client.CoreV1().Nodes().Get(ctx, "away-1", metav1.GetOptions{})
		return err == nil && len(node.Spec.Taints) == 1, fmt.Sprint(node, err)
	})
	w.Gone("pods", "shop/orphaned")
}

func taint(w *trial.World, name string) {
	w.Again("taint "+name, func() error {
		node, err := w.Client.CoreV1().Nodes().Get(w.T.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = append(node.Spec.Taints, outOfService)
		_, err = w.Client.CoreV1().Nodes().Update(w.T.Context(), node, metav1.UpdateOptions{})
		return err
	})
}

func untaint(w *trial.World, name string) {
	w.Again("untaint "+name, func() error {
		node, err := w.Client.CoreV1().Nodes().Get(w.T.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		taints := node.Spec.Taints[:0]
		for _, t := range node.Spec.Taints {
			if t.Key != outOfService.Key {
				taints = append(taints, t)
			}
		}
		node.Spec.Taints, node.Spec.Unschedulable = taints, false
		_, err = w.Client.CoreV1().Nodes().Update(w.T.Context(), node, metav1.UpdateOptions{})
		return err
	})
}

// request makes a CertificateSigningRequest as the user bootstrapper.
func request(w *trial.World, name, signer string) {
	w.T.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	trial.Must(w.T, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:new", Organization: []string{"system:nodes"}}}, key)
	trial.Must(w.T, err)
	config := rest.CopyConfig(w.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "bootstrapper"}
	client, err := kubernetes.NewForConfig(config)
	trial.Must(w.T, err)
	w.Again("request "+name, func() error {
		_, err := client.CertificatesV1().CertificateSigningRequests().Create(w.T.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		return err
	})
}
