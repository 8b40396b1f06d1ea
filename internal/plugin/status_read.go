package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/version"
)

// statusReader reads the status of a cluster, as far as its user may.
type statusReader struct {
	config  *rest.Config
	client  kubernetes.Interface
	objects dynamic.Interface
	// status is what was read.
	status diagnosis.Status
	is     diagnosis.Installed
	// strangers are Pods with the label of fieldperm-webhook in other namespaces.
	strangers []string
}

func newStatusReader(config *rest.Config) (*statusReader, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	return &statusReader{config: config, client: client, objects: objects}, nil
}

// read reads everything and concludes. What could not be read is in Missing.
func (r *statusReader) read(ctx context.Context) *diagnosis.Status {
	s := &r.status
	*s = diagnosis.Status{
		Servers: []string{}, Proofs: []diagnosis.Proof{}, Events: []diagnosis.Event{},
		Webhooks: []diagnosis.Webhook{}, Replicas: []diagnosis.Replica{}, Sources: []diagnosis.Source{},
	}
	r.is.All = true
	s.Versions.Client = cmp.Or(version.Built(), unrecorded)
	if server, err := r.client.Discovery().ServerVersion(); err != nil {
		r.miss("the version of kube-apiserver", err, "get on /version")
	} else {
		s.Versions.Kubernetes = server.GitVersion
	}
	if _, err := r.client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String()); err == nil {
		r.is.Kinds = true
	} else if !apierrors.IsNotFound(err) {
		r.unknown("the kinds of fieldperm", err, "discovery")
	}
	r.readWebhooks(ctx)
	pods := r.readReplicas(ctx)
	if r.is.Kinds || len(s.Webhooks) > 0 || len(pods) > 0 {
		r.askAuthorizer(ctx)
		r.readSources(ctx)
		r.readServers(ctx)
		r.readEvents(ctx)
		r.askReplicas(ctx, pods)
	}
	s.Conclude(r.is)
	return s
}

// miss notes what could not be read, with what to allow.
func (r *statusReader) miss(what string, err error, allow string) {
	text := err.Error()
	if apierrors.IsForbidden(err) {
		text += ": allow " + allow
	}
	r.status.Missing = append(r.status.Missing, diagnosis.Missing{What: what, Error: text})
}

// unknown is miss for what would show that fieldperm is installed.
func (r *statusReader) unknown(what string, err error, allow string) {
	r.is.All = false
	r.miss(what, err, allow)
}

// readReplicas returns the Pods of fieldperm-webhook of all namespaces, or of the usual ones.
func (r *statusReader) readReplicas(ctx context.Context) []corev1.Pod {
	selector := metav1.ListOptions{LabelSelector: webhooks.NameLabel + "=" + webhooks.AuthorizerName}
	list, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, selector)
	if apierrors.IsForbidden(err) {
		list = &corev1.PodList{}
		for _, namespace := range r.ownNamespaces() {
			some, inOne := r.client.CoreV1().Pods(namespace).List(ctx, selector)
			if inOne == nil {
				list.Items, err = append(list.Items, some.Items...), nil
			}
		}
	}
	if err != nil {
		r.unknown("replicas of fieldperm-webhook", err, "list on pods")
		return nil
	}
	own := r.ownNamespaces()
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		if slices.Contains(own, pod.Namespace) {
			return false
		}
		r.strangers = append(r.strangers, pod.Namespace+"/"+pod.Name)
		return true
	})
	for i := range pods {
		r.status.Replicas = append(r.status.Replicas, replicaOf(&pods[i]))
	}
	return pods
}

// ownNamespaces are the namespaces in which a Pod may be a replica: those of the Services that kube-apiserver calls, and that of static Pods.
// Everywhere else a user that may create Pods could run a program that says "ok". Without a Service it is the namespace of the manifests.
func (r *statusReader) ownNamespaces() []string {
	out := []string{}
	for _, w := range r.status.Webhooks {
		if w.Namespace != "" && !slices.Contains(out, w.Namespace) {
			out = append(out, w.Namespace)
		}
	}
	if len(out) == 0 {
		out = append(out, "fieldperm-system")
	}
	return append(out, metav1.NamespaceSystem)
}

func replicaOf(pod *corev1.Pod) diagnosis.Replica {
	out := diagnosis.Replica{Name: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if i == 0 || c.Name == webhooks.AuthorizerName {
			out.Image = c.Image
			out.OwnServerOnly = !slices.Contains(c.Args, "--api-servers=all")
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		out.Restarts += c.RestartCount
		if waiting := c.State.Waiting; waiting != nil {
			out.Message = strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
			if !out.Ready {
				out.Message = cmp.Or(out.Message, c.Message, c.Reason)
			}
		}
	}
	if !out.Ready {
		out.Message = cmp.Or(out.Message, string(pod.Status.Phase))
	}
	return out
}

// readServers reads the addresses of the kube-apiservers, as fieldperm-webhook with --api-servers=all does.
func (r *statusReader) readServers(ctx context.Context) {
	slice, err := r.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, webhooks.APIServersSlice, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.miss("the kube-apiservers", err, "get on endpointslices.discovery.k8s.io in the namespace default")
		return
	}
	if err == nil {
		r.status.Servers = interlock.SliceAddresses(slice)
	}
}
