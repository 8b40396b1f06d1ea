//go:build controllers

package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

// parts are the parts of the scenario. Those from jobs to nodes do not depend on each other.
var parts = []struct {
	name string
	play func(*trial.World, *kubelets)
}{
	{"cluster", playCluster}, {"workloads", playWorkloads}, {"jobs", playJobs}, {"services", playServices}, {"storage", playStorage},
	{"devices", playDevices}, {"preemption", playPreemption}, {"garbage", playGarbage}, {"adoption", playAdoption}, {"certificates", playCertificates},
	{"nodes", playNodes}, {"cron", playCron},
}

// play plays the scenario. Each part waits for what the controllers make of it.
func play(r *trial.Run) {
	r.T.Helper()
	w := r.World
	k := startKubelets(w.Client)
	r.OnStop(k.stop)
	trial.Must(r.T, k.up(r.T.Context(), "worker-1", "worker-2", "small-1", "away-1", "away-2"))
	for _, name := range []string{"worker-1", "worker-2", "small-1", "away-1", "away-2"} {
		w.Until("nodes", name, "status.conditions[Ready].status", "True")
		w.Await("node "+name+" has a network and no taint of its own", trial.Patience, func(ctx context.Context) (bool, string) {
			node, err := w.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			return err == nil && node.Spec.PodCIDR != "" && node.Annotations["node.alpha.kubernetes.io/ttl"] != "" && len(node.Spec.Taints) <= 1, fmt.Sprint(node, err)
		})
	}
	order := slices.Clone(parts)
	trial.Shuffle(order[2 : len(order)-1])
	for _, part := range order {
		begin := time.Now()
		part.play(w, k)
		r.T.Logf("%s: %s took %s", r.Name(), part.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

func playCluster(w *trial.World, _ *kubelets) {
	w.Apply("testdata/quota.yaml")
	w.Until("resourcequotas", "limited/small", "status.hard.pods", "2")
	w.Apply("testdata/workloads.yaml")
	w.Apply("testdata/cluster.yaml")
	// The CronJob runs at the next full minute, while other parts are played.
	w.Apply("testdata/jobs.yaml")
	w.Until("clusterroles.rbac.authorization.k8s.io", "shop-all", "rules[0].verbs", "[get]")
	w.Patch("clusterroles.rbac.authorization.k8s.io", "shop-part", `{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]}`)
	w.Until("clusterroles.rbac.authorization.k8s.io", "shop-all", "rules[0].verbs", "[get list]")
	w.Until("serviceaccounts", "shop/default", "metadata.name", "default")
	certificate := ""
	w.Await("the authority is published", trial.Patience, func(ctx context.Context) (bool, string) {
		config, err := w.Client.CoreV1().ConfigMaps("shop").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		if err == nil {
			certificate = config.Data["ca.crt"]
		}
		return certificate != "", fmt.Sprint(err)
	})
	w.Patch("configmaps", "shop/kube-root-ca.crt", `{"data":{"ca.crt":"other"}}`)
	w.Until("configmaps", "shop/kube-root-ca.crt", "data", fmt.Sprint(map[string]any{"ca.crt": certificate}))
	w.Await("cluster-info is signed", trial.Patience, func(ctx context.Context) (bool, string) {
		config, err := w.Client.CoreV1().ConfigMaps("kube-public").Get(ctx, "cluster-info", metav1.GetOptions{})
		return err == nil && config.Data["jws-kubeconfig-abcdef"] != "", fmt.Sprint(config, err)
	})
	w.Gone("secrets", "kube-system/bootstrap-token-fedcba")
	w.Remove("namespaces", "leaving", "")
	w.Until("namespaces", "leaving", "status.conditions[NamespaceFinalizersRemaining].status", "True")
	w.Patch("configmaps", "leaving/held", `{"metadata":{"finalizers":null}}`)
	w.Gone("namespaces", "leaving")
}

func playWorkloads(w *trial.World, _ *kubelets) {
	ready := func(resource, object, n string) {
		w.Until(resource, object, "status.readyReplicas", n)
		w.Until(resource, object, "status.replicas", n)
	}
	ready("deployments.apps", "shop/web", "3")
	ready("deployments.apps", "limited/limited", "2")
	w.Until("deployments.apps", "limited/limited", "status.conditions[ReplicaFailure].status", "True")
	w.Until("resourcequotas", "limited/small", "status.used.pods", "2")
	// Scale, rollout, rollback, pause.
	w.Patch("deployments.apps", "shop/web", `{"spec":{"replicas":4}}`)
	ready("deployments.apps", "shop/web", "4")
	image := func(resource, object, image string) {
		w.Patch(resource, object, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
	}
	rolled := func(n string) {
		w.Await("web is rolled out", trial.Patience, func(ctx context.Context) (bool, string) {
			d, err := w.Client.AppsV1().Deployments("shop").Get(ctx, "web", metav1.GetOptions{})
			return err == nil && d.Status.ObservedGeneration == d.Generation && d.Annotations["deployment.kubernetes.io/revision"] == n &&
				d.Status.UpdatedReplicas == 4 && d.Status.ReadyReplicas == 4 && d.Status.Replicas == 4, fmt.Sprint(d.Status, err)
		})
	}
	image("deployments.apps", "shop/web", "main:2")
	rolled("2")
	image("deployments.apps", "shop/web", "main:1")
	rolled("3")
	w.Patch("deployments.apps", "shop/web", `{"spec":{"paused":true}}`)
	w.Until("deployments.apps", "shop/web", "status.conditions[Progressing].reason", "DeploymentPaused")
	w.Patch("deployments.apps", "shop/web", `{"spec":{"paused":null,"replicas":3}}`)
	ready("deployments.apps", "shop/web", "3")
	w.Until("deployments.apps", "shop/stuck", "status.conditions[Progressing].reason", "ProgressDeadlineExceeded")
	// The autoscaler has no metrics, and a minimum.
	ready("deployments.apps", "shop/recreated", "3")
	image("deployments.apps", "shop/recreated", "main:2")
	w.Await("recreated is rolled out", trial.Patience, func(ctx context.Context) (bool, string) {
		d, err := w.Client.AppsV1().Deployments("shop").Get(ctx, "recreated", metav1.GetOptions{})
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 3 && d.Status.ReadyReplicas == 3, fmt.Sprint(d.Status, err)
	})
	// A Pod is released and another is adopted.
	ready("replicasets.apps", "shop/alone", "2")
	pods, err := w.Client.CoreV1().Pods("shop").List(w.T.Context(), metav1.ListOptions{LabelSelector: "app=alone"})
	trial.Must(w.T, err)
	w.Patch("pods", "shop/"+pods.Items[0].Name, `{"metadata":{"labels":{"app":"released"}}}`)
	w.Until("pods", "shop/"+pods.Items[0].Name, "metadata.ownerReferences", "")
	ready("replicasets.apps", "shop/alone", "2")
	w.Apply("testdata/adopter.yaml")
	w.Until("pods", "shop/adopted", "metadata.ownerReferences[adopter].kind", "ReplicaSet")
	ready("replicasets.apps", "shop/adopter", "1")
	// A ReplicationController.
	ready("replicationcontrollers", "shop/old", "2")
	w.Patch("replicationcontrollers", "shop/old", `{"spec":{"replicas":1}}`)
	ready("replicationcontrollers", "shop/old", "1")
	// A DaemonSet, forward and back.
	w.Until("daemonsets.apps", "shop/agent", "status.numberReady", "2")
	agent := func(image string) {
		w.Patch("daemonsets.apps", "shop/agent", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
		w.Await("agent is rolled out", trial.Patience, func(ctx context.Context) (bool, string) {
			d, err := w.Client.AppsV1().DaemonSets("shop").Get(ctx, "agent", metav1.GetOptions{})
			return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedNumberScheduled == 2 && d.Status.NumberAvailable == 2, fmt.Sprint(d.Status, err)
		})
	}
	agent("main:2")
	agent("main:1")
	// A PodDisruptionBudget permits one eviction.
	w.Until("poddisruptionbudgets.policy", "shop/web", "status.disruptionsAllowed", "2")
	pods, err = w.Client.CoreV1().Pods("shop").List(w.T.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	trial.Must(w.T, err)
	trial.Must(w.T, w.Client.CoreV1().Pods("shop").EvictV1(w.T.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: "shop"}}))
	w.Gone("pods", "shop/"+pods.Items[0].Name)
	ready("deployments.apps", "shop/web", "3")
	w.Until("poddisruptionbudgets.policy", "shop/web", "status.disruptionsAllowed", "2")
}

func playJobs(w *trial.World, _ *kubelets) {
	const jobs = "jobs.batch"
	w.Until(jobs, "shop/done", "status.conditions[Complete].status", "True")
	w.Until(jobs, "shop/failed", "status.conditions[Failed].status", "True")
	w.Until(jobs, "shop/indexed", "status.conditions[Failed].status", "True")
	w.Until(jobs, "shop/policy", "status.conditions[Failed].status", "True")
	w.Until(jobs, "shop/deadline", "status.conditions[Failed].status", "True")
	w.Until(jobs, "shop/suspended", "status.conditions[Suspended].status", "True")
	w.Patch(jobs, "shop/suspended", `{"spec":{"suspend":false}}`)
	w.Until(jobs, "shop/suspended", "status.ready", "1")
	w.Patch(jobs, "shop/suspended", `{"spec":{"suspend":true}}`)
	w.Count("pods", "shop", "app=suspended", 0, nil)
	w.Gone(jobs, "shop/short")
}

func playCron(w *trial.World, _ *kubelets) {
	w.Await("the CronJob has run", trial.Patience, func(ctx context.Context) (bool, string) {
		c, err := w.Client.BatchV1().CronJobs("shop").Get(ctx, "minutely", metav1.GetOptions{})
		return err == nil && c.Status.LastSuccessfulTime != nil && len(c.Status.Active) == 0, fmt.Sprint(c, err)
	})
	w.Patch("cronjobs.batch", "shop/minutely", `{"spec":{"suspend":true}}`)
}

func playServices(w *trial.World, _ *kubelets) {
	const slices = "endpointslices.discovery.k8s.io"
	w.Apply("testdata/services.yaml")
	endpoints := func(n int) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			list, _, _ := unstructured.NestedSlice(o.Object, "endpoints")
			return len(list) == n
		}
	}
	w.Count(slices, "shop", "kubernetes.io/service-name=web", 1, endpoints(3))
	w.Count(slices, "shop", "kubernetes.io/service-name=outside", 1, endpoints(1))
	w.Patch("services", "shop/web", `{"metadata":{"labels":{"team":"a"}},"spec":{"ports":[{"name":"http","port":80,"targetPort":9090}]}}`)
	w.Until("endpoints", "shop/web", "subsets[0].ports[http].port", "9090")
	// The labels of a Service that kube-proxy reads.
	const proxied = "kubernetes.io/service-name=web,service.kubernetes.io/service-proxy-name"
	w.Patch("services", "shop/web", `{"metadata":{"labels":{"service.kubernetes.io/service-proxy-name":"other"}}}`)
	w.Count(slices, "shop", proxied, 1, nil)
	w.Patch("services", "shop/web", `{"metadata":{"labels":{"service.kubernetes.io/service-proxy-name":null}}}`)
	w.Count(slices, "shop", proxied, 0, nil)
	w.Patch("deployments.apps", "shop/web", `{"spec":{"replicas":2}}`)
	w.Count(slices, "shop", "kubernetes.io/service-name=web", 1, endpoints(2))
	w.Patch("endpoints", "shop/outside", `{"subsets":[{"addresses":[{"ip":"198.51.100.1"},{"ip":"198.51.100.2"}],"ports":[{"name":"http","port":80}]}]}`)
	w.Count(slices, "shop", "kubernetes.io/service-name=outside", 1, endpoints(2))
	w.Until("servicecidrs.networking.k8s.io", "second", "status.conditions[Ready].status", "True")
	w.Remove("servicecidrs.networking.k8s.io", "second", "")
	w.Gone("servicecidrs.networking.k8s.io", "second")
}

func playCertificates(w *trial.World, _ *kubelets) {
	const requests = "certificatesigningrequests.certificates.k8s.io"
	signed := func(name string) {
		w.Await(name+" is signed", trial.Patience, func(ctx context.Context) (bool, string) {
			c, err := w.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
			return err == nil && len(c.Status.Certificate) > 0, fmt.Sprint(c, err)
		})
	}
	request(w, "automatic", "kubernetes.io/kube-apiserver-client-kubelet")
	signed("automatic")
	request(w, "approved", "kubernetes.io/kube-apiserver-client")
	w.Patch(requests, "approved", `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Test","message":"approved"}]}}`, "approval")
	signed("approved")
}
