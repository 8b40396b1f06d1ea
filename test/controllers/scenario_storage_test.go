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
)

func playStorage(w *world, _ *kubelets) {
	const claims, volumes, pods, sets = "persistentvolumeclaims", "persistentvolumes", "pods", "statefulsets.apps"
	w.apply("volumes.yaml")
	// A claim that is seen before its volume would be offered to the driver.
	for _, name := range []string{"static", "local", "remote"} {
		w.until(volumes, name, "status.phase", "Available")
	}
	w.apply("storage.yaml")
	w.until(claims, "shop/static", "status.phase", "Bound")
	w.until(claims, "shop/remote", "status.phase", "Bound")
	// The test plays the attacher of the driver.
	await(w.t, "the volume is attached", patience, func(ctx context.Context) (bool, string) {
		list, err := w.client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			return false, fmt.Sprint(list, err)
		}
		list.Items[0].Status.Attached = true
		_, err = w.client.StorageV1().VolumeAttachments().UpdateStatus(ctx, &list.Items[0], metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	w.until(pods, "shop/volumes", "status.phase", "Running")
	w.until(claims, "shop/volumes-scratch", "status.phase", "Bound")
	w.until(claims, "shop/local", "status.phase", "Bound")
	w.until(claims, "shop/later", "status.phase", "Bound")
	w.until(sets, "shop/db", "status.readyReplicas", "2")
	w.until(claims, "shop/data-db-1", "status.phase", "Bound")
	// A driver of another expands the volume.
	w.patch(claims, "shop/remote", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	// A StatefulSet, forward and back, and smaller.
	set := func(image string) {
		w.patch(sets, "shop/db", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
		await(w.t, "db is rolled out", patience, func(ctx context.Context) (bool, string) {
			s, err := w.client.AppsV1().StatefulSets("shop").Get(ctx, "db", metav1.GetOptions{})
			return err == nil && s.Status.ObservedGeneration == s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision &&
				s.Status.ReadyReplicas == 2, fmt.Sprint(s.Status, err)
		})
	}
	set("main:2")
	set("main:1")
	w.patch(sets, "shop/db", `{"spec":{"replicas":1}}`)
	w.gone(claims, "shop/data-db-1")
	w.patch(sets, "shop/db", `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain"}}}`)
	w.until(claims, "shop/data-db-0", "metadata.ownerReferences", "")
	// Claims and volumes in use are protected.
	w.remove(claims, "shop/later", "")
	w.until(claims, "shop/later", "metadata.finalizers", "[kubernetes.io/pvc-protection]")
	w.remove(volumes, "static", "")
	w.remove(pods, "shop/volumes", "")
	w.gone(claims, "shop/later")
	w.gone(claims, "shop/volumes-scratch")
	w.remove(claims, "shop/static", "")
	w.gone(volumes, "static")
	w.count("volumeattachments.storage.k8s.io", "", "", 0, nil)
	w.until("nodes", "worker-1", "status.volumesAttached", "")
	// A released volume stays, and a claim without its volume is lost.
	w.remove(claims, "shop/local", "")
	w.until(volumes, "local", "status.phase", "Released")
	w.remove(volumes, "remote", "")
	w.patch(volumes, "remote", `{"metadata":{"finalizers":null}}`)
	w.until(claims, "shop/remote", "status.phase", "Lost")
	w.until("volumeattributesclasses.storage.k8s.io", "fast", "metadata.finalizers", "[kubernetes.io/vac-protection]")
	w.remove("volumeattributesclasses.storage.k8s.io", "fast", "")
	w.gone("volumeattributesclasses.storage.k8s.io", "fast")
}

func playDevices(w *world, _ *kubelets) {
	const claims = "resourceclaims.resource.k8s.io"
	w.apply("devices.yaml")
	w.until("pods", "shop/templated", "status.phase", "Running")
	w.until("pods", "shop/sharing", "status.phase", "Succeeded")
	// A claim without a consumer is deallocated.
	w.until(claims, "shop/shared", "status.reservedFor", "")
	w.remove("pods", "shop/sharing", "")
	w.until(claims, "shop/shared", "metadata.finalizers", "")
	w.remove("pods", "shop/templated", "")
	w.count(claims, "shop", "", 1, nil)
}

func playPreemption(w *world, _ *kubelets) {
	w.apply("preemption.yaml")
	w.until("pods", "shop/low", "status.phase", "Running")
	w.apply("urgent.yaml")
	w.until("pods", "shop/high", "status.phase", "Running")
	w.until("pods", "shop/nowhere", "status.conditions[PodScheduled].status", "False")
	w.gone("pods", "shop/low")
}

func playGarbage(w *world, _ *kubelets) {
	const deployments = "deployments.apps"
	w.apply("garbage.yaml")
	for _, name := range []string{"background", "foreground", "orphan"} {
		w.until(deployments, "shop/"+name, "status.readyReplicas", "1")
	}
	w.remove(deployments, "shop/background", metav1.DeletePropagationBackground)
	w.remove(deployments, "shop/foreground", metav1.DeletePropagationForeground)
	w.remove(deployments, "shop/orphan", metav1.DeletePropagationOrphan)
	for _, name := range []string{"background", "foreground", "orphan"} {
		w.gone(deployments, "shop/"+name)
	}
	w.count("replicasets.apps", "shop", "app in (background,foreground)", 0, nil)
	w.count("pods", "shop", "app in (background,foreground)", 0, nil)
	w.count("replicasets.apps", "shop", "app=orphan", 1, func(o *unstructured.Unstructured) bool { return len(o.GetOwnerReferences()) == 0 })
	// A dependent of two owners loses one.
	var owners []metav1.OwnerReference
	for _, name := range []string{"owner-1", "owner-2"} {
		owner, err := w.client.CoreV1().ConfigMaps("shop").Get(w.t.Context(), name, metav1.GetOptions{})
		must(w.t, err)
		owners = append(owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID})
	}
	for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
		client, err := w.at(nil, resource, "shop")
		must(w.t, err)
		kind := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount"}[resource]
		dependent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "dependent"}}}
		dependent.SetOwnerReferences(owners)
		_, err = client.Create(w.t.Context(), dependent, metav1.CreateOptions{})
		must(w.t, err)
	}
	w.remove("configmaps", "shop/owner-1", metav1.DeletePropagationBackground)
	for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
		w.until(resource, "shop/dependent", "metadata.ownerReferences[owner-1].name", "")
	}
	w.remove("configmaps", "shop/owner-2", metav1.DeletePropagationForeground)
	w.gone("configmaps", "shop/owner-2")
	w.gone("secrets", "shop/dependent")
}

// playNodes lets one node go away and come back, and deletes another.
func playNodes(w *world, k *kubelets) {
	w.apply("evicted.yaml")
	w.until("pods", "shop/evicted", "status.phase", "Running")
	w.until("pods", "shop/orphaned", "status.phase", "Running")
	k.down("away-1", "away-2")
	w.until("nodes", "away-1", "status.conditions[Ready].status", "Unknown")
	await(w.t, "the Pod is evicted", patience, func(ctx context.Context) (bool, string) {
		pod, err := w.client.CoreV1().Pods("shop").Get(ctx, "evicted", metav1.GetOptions{})
		return err == nil && pod.DeletionTimestamp != nil, fmt.Sprint(pod, err)
	})
	w.until("pods", "shop/evicted", "status.conditions[DisruptionTarget].reason", "DeletionByTaintManager")
	w.remove("nodes", "away-2", "")
	w.patch("nodes", "away-1", `{"metadata":{"labels":{"pool":"away"}},"spec":{"unschedulable":true}}`)
	taint(w, "away-1")
	w.gone("pods", "shop/evicted")
	must(w.t, k.up(w.t.Context(), "away-1"))
	w.until("nodes", "away-1", "status.conditions[Ready].status", "True")
	untaint(w, "away-1")
	await(w.t, "the node has no taint of the controllers", patience, func(ctx context.Context) (bool, string) {
		node, err := w.client.CoreV1().Nodes().Get(ctx, "away-1", metav1.GetOptions{})
		return err == nil && len(node.Spec.Taints) == 1, fmt.Sprint(node, err)
	})
	w.gone("pods", "shop/orphaned")
}

func taint(w *world, name string) {
	w.again("taint "+name, func() error {
		node, err := w.client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = append(node.Spec.Taints, outOfService)
		_, err = w.client.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{})
		return err
	})
}

func untaint(w *world, name string) {
	w.again("untaint "+name, func() error {
		node, err := w.client.CoreV1().Nodes().Get(w.t.Context(), name, metav1.GetOptions{})
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
		_, err = w.client.CoreV1().Nodes().Update(w.t.Context(), node, metav1.UpdateOptions{})
		return err
	})
}

// request makes a CertificateSigningRequest as the user bootstrapper.
func (w *world) request(name, signer string) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(w.t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:new", Organization: []string{"system:nodes"}}}, key)
	must(w.t, err)
	config := rest.CopyConfig(w.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "bootstrapper"}
	client, err := kubernetes.NewForConfig(config)
	must(w.t, err)
	w.again("request "+name, func() error {
		_, err := client.CertificatesV1().CertificateSigningRequests().Create(w.t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		}, metav1.CreateOptions{})
		return err
	})
}
