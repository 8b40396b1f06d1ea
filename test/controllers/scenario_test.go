//go:build controllers

package controllers

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// play plays the scenario. Each part waits for what the controllers make of it.
func (r *run) play() {
	r.t.Helper()
	w := r.world
	k := startKubelets(w.client)
	r.kubelets = k
	must(r.t, k.up(r.t.Context(), "worker-1", "worker-2", "small-1", "away-1", "away-2"))
	for _, name := range []string{"worker-1", "worker-2", "small-1", "away-1", "away-2"} {
		w.until("nodes", name, "status.conditions[Ready].status", "True")
		await(r.t, "node "+name+" has a network and no taint of its own", patience, func(ctx context.Context) (bool, string) {
			node, err := w.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			return err == nil && node.Spec.PodCIDR != "" && node.Annotations["node.alpha.kubernetes.io/ttl"] != "" && len(node.Spec.Taints) <= 1, fmt.Sprint(node, err)
		})
	}
	for _, part := range []struct {
		name string
		play func(*world, *kubelets)
	}{
		{"cluster", playCluster}, {"workloads", playWorkloads}, {"jobs", playJobs}, {"services", playServices}, {"storage", playStorage},
		{"devices", playDevices}, {"preemption", playPreemption}, {"garbage", playGarbage}, {"certificates", playCertificates}, {"nodes", playNodes},
		{"cron", playCron},
	} {
		begin := time.Now()
		part.play(w, k)
		r.t.Logf("%s: %s took %s", r.name, part.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

func playCluster(w *world, _ *kubelets) {
	w.apply("workloads.yaml")
	w.apply("cluster.yaml")
	// The CronJob runs at the next full minute, while other parts are played.
	w.apply("jobs.yaml")
	w.until("clusterroles.rbac.authorization.k8s.io", "shop-all", "rules[0].verbs", "[get]")
	w.patch("clusterroles.rbac.authorization.k8s.io", "shop-part", `{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]}`)
	w.until("clusterroles.rbac.authorization.k8s.io", "shop-all", "rules[0].verbs", "[get list]")
	w.until("serviceaccounts", "shop/default", "metadata.name", "default")
	certificate := ""
	await(w.t, "the authority is published", patience, func(ctx context.Context) (bool, string) {
		config, err := w.client.CoreV1().ConfigMaps("shop").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err == nil {
			certificate = config.Data["ca.crt"]
		}
		return certificate != "", fmt.Sprint(err)
	})
	w.patch("configmaps", "shop/kube-root-ca.crt", `{"data":{"ca.crt":"other"}}`)
	w.until("configmaps", "shop/kube-root-ca.crt", "data", fmt.Sprint(map[string]any{"ca.crt": certificate}))
	await(w.t, "cluster-info is signed", patience, func(ctx context.Context) (bool, string) {
		config, err := w.client.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		return err == nil && config.Data["jws-kubeconfig-abcdef"] != "", fmt.Sprint(config, err)
	})
	w.gone("secrets", "kube-system/bootstrap-token-fedcba")
	w.remove("namespaces", "leaving", "")
	w.until("namespaces", "leaving", "status.conditions[NamespaceFinalizersRemaining].status", "True")
	w.patch("configmaps", "leaving/held", `{"metadata":{"finalizers":null}}`)
	w.gone("namespaces", "leaving")
}

func playWorkloads(w *world, _ *kubelets) {
	ready := func(resource, object, n string) {
		w.until(resource, object, "status.readyReplicas", n)
		w.until(resource, object, "status.replicas", n)
	}
	ready("deployments.apps", "shop/web", "3")
	ready("deployments.apps", "limited/limited", "2")
	w.until("deployments.apps", "limited/limited", "status.conditions[ReplicaFailure].status", "True")
	w.until("resourcequotas", "limited/small", "status.used.pods", "2")
	// Scale, rollout, rollback, pause.
	w.patch("deployments.apps", "shop/web", `{"spec":{"replicas":4}}`)
	ready("deployments.apps", "shop/web", "4")
	image := func(resource, object, image string) {
		w.patch(resource, object, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
	}
	rolled := func(n string) {
		await(w.t, "web is rolled out", patience, func(ctx context.Context) (bool, string) {
			d, err := w.client.AppsV1().Deployments("shop").Get(ctx, "web", metav1.GetOptions{})
			return err == nil && d.Status.ObservedGeneration == d.Generation && d.Annotations["deployment.kubernetes.io/revision"] == n &&
				d.Status.UpdatedReplicas == 4 && d.Status.ReadyReplicas == 4 && d.Status.Replicas == 4, fmt.Sprint(d.Status, err)
		})
	}
	image("deployments.apps", "shop/web", "main:2")
	rolled("2")
	image("deployments.apps", "shop/web", "main:1")
	rolled("3")
	w.patch("deployments.apps", "shop/web", `{"spec":{"paused":true}}`)
	w.until("deployments.apps", "shop/web", "status.conditions[Progressing].reason", "DeploymentPaused")
	w.patch("deployments.apps", "shop/web", `{"spec":{"paused":null,"replicas":3}}`)
	ready("deployments.apps", "shop/web", "3")
	w.until("deployments.apps", "shop/stuck", "status.conditions[Progressing].reason", "ProgressDeadlineExceeded")
	// The autoscaler has no metrics, and a minimum.
	ready("deployments.apps", "shop/recreated", "3")
	image("deployments.apps", "shop/recreated", "main:2")
	await(w.t, "recreated is rolled out", patience, func(ctx context.Context) (bool, string) {
		d, err := w.client.AppsV1().Deployments("shop").Get(ctx, "recreated", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 3 && d.Status.ReadyReplicas == 3, fmt.Sprint(d.Status, err)
	})
	// A Pod is released and another is adopted.
	ready("replicasets.apps", "shop/alone", "2")
	pods, err := w.client.CoreV1().Pods("shop").List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=alone"})
	must(w.t, err)
	w.patch("pods", "shop/"+pods.Items[0].Name, `{"metadata":{"labels":{"app":"released"}}}`)
	w.until("pods", "shop/"+pods.Items[0].Name, "metadata.ownerReferences", "")
	ready("replicasets.apps", "shop/alone", "2")
	w.apply("adopter.yaml")
	w.until("pods", "shop/adopted", "metadata.ownerReferences[adopter].kind", "ReplicaSet")
	ready("replicasets.apps", "shop/adopter", "1")
	// A ReplicationController.
	ready("replicationcontrollers", "shop/old", "2")
	w.patch("replicationcontrollers", "shop/old", `{"spec":{"replicas":1}}`)
	ready("replicationcontrollers", "shop/old", "1")
	// A DaemonSet, forward and back.
	w.until("daemonsets.apps", "shop/agent", "status.numberReady", "2")
	agent := func(image string) {
		w.patch("daemonsets.apps", "shop/agent", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
		await(w.t, "agent is rolled out", patience, func(ctx context.Context) (bool, string) {
			d, err := w.client.AppsV1().DaemonSets("shop").Get(ctx, "agent", metav1.GetOptions{})
			return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedNumberScheduled == 2 && d.Status.NumberAvailable == 2, fmt.Sprint(d.Status, err)
		})
	}
	agent("main:2")
	agent("main:1")
	// A PodDisruptionBudget permits one eviction.
	w.until("poddisruptionbudgets.policy", "shop/web", "status.disruptionsAllowed", "2")
	pods, err = w.client.CoreV1().Pods("shop").List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	must(w.t, err)
	must(w.t, w.client.CoreV1().Pods("shop").EvictV1(w.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: "shop"}}))
	w.gone("pods", "shop/"+pods.Items[0].Name)
	ready("deployments.apps", "shop/web", "3")
	w.until("poddisruptionbudgets.policy", "shop/web", "status.disruptionsAllowed", "2")
}

func playJobs(w *world, _ *kubelets) {
	const jobs = "jobs.batch"
	w.until(jobs, "shop/done", "status.conditions[Complete].status", "True")
	w.until(jobs, "shop/failed", "status.conditions[Failed].status", "True")
	w.until(jobs, "shop/indexed", "status.conditions[Failed].status", "True")
	w.until(jobs, "shop/policy", "status.conditions[Failed].status", "True")
	w.until(jobs, "shop/deadline", "status.conditions[Failed].status", "True")
	w.until(jobs, "shop/suspended", "status.conditions[Suspended].status", "True")
	w.patch(jobs, "shop/suspended", `{"spec":{"suspend":false}}`)
	w.until(jobs, "shop/suspended", "status.ready", "1")
	w.patch(jobs, "shop/suspended", `{"spec":{"suspend":true}}`)
	w.count("pods", "shop", "app=suspended", 0, nil)
	w.gone(jobs, "shop/short")
}

func playCron(w *world, _ *kubelets) {
	await(w.t, "the CronJob has run", patience, func(ctx context.Context) (bool, string) {
		c, err := w.client.BatchV1().CronJobs("shop").Get(ctx, "minutely", metav1.GetOptions{})
		return err == nil && c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0, fmt.Sprint(c, err)
	})
	w.patch("cronjobs.batch", "shop/minutely", `{"spec":{"suspend":true}}`)
}

func playServices(w *world, _ *kubelets) {
	const slices = "endpointslices.discovery.k8s.io"
	w.apply("services.yaml")
	endpoints := func(n int) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(o.Object, "endpoints")
			return len(list) == n
		}
	}
	w.count(slices, "shop", "kubernetes.io/service-name=web", 1, endpoints(3))
	w.count(slices, "shop", "kubernetes.io/service-name=outside", 1, endpoints(1))
	w.patch("services", "shop/web", `{"metadata":{"labels":{"team":"a"}},"spec":{"ports":[{"name":"http","port":80,"targetPort":9090}]}}`)
	w.until("endpoints", "shop/web", "subsets[0].ports[http].port", "9090")
	w.patch("deployments.apps", "shop/web", `{"spec":{"replicas":2}}`)
	w.count(slices, "shop", "kubernetes.io/service-name=web", 1, endpoints(2))
	w.patch("endpoints", "shop/outside", `{"subsets":[{"addresses":[{"ip":"198.51.100.1"},{"ip":"198.51.100.2"}],"ports":[{"name":"http","port":80}]}]}`)
	w.count(slices, "shop", "kubernetes.io/service-name=outside", 1, endpoints(2))
	w.until("servicecidrs.networking.k8s.io", "second", "status.conditions[Ready].status", "True")
	w.remove("servicecidrs.networking.k8s.io", "second", "")
	w.gone("servicecidrs.networking.k8s.io", "second")
}

func playCertificates(w *world, _ *kubelets) {
	const requests = "certificatesigningrequests.certificates.k8s.io"
	signed := func(name string) {
		await(w.t, name+" is signed", patience, func(ctx context.Context) (bool, string) {
			c, err := w.client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
			return err == nil && len(c.Status.Certificate) > 0, fmt.Sprint(c, err)
		})
	}
	w.request("automatic", "kubernetes.io/kube-apiserver-client-kubelet")
	signed("automatic")
	w.request("approved", "kubernetes.io/kube-apiserver-client")
	w.patch(requests, "approved", `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Test","message":"approved"}]}}`, "approval")
	signed("approved")
}
