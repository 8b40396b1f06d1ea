package plugin

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// readEvents reads the last Event of each replica about the proof.
func (r *statusReader) readEvents(ctx context.Context) {
	const reporter = "fieldperm.dev/webhook"
	list, err := r.client.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "reportingController=" + reporter})
	if err != nil {
		r.miss("Events about the proof", err, "list on events.events.k8s.io in the namespace default")
		return
	}
	last := map[string]diagnosis.Event{}
	for i := range list.Items {
		e := &list.Items[i]
		out := diagnosis.Event{Replica: e.ReportingInstance, Time: e.EventTime.Time, Cause: e.Action, Message: e.Note}
		if e.Series != nil {
			out.Time = e.Series.LastObservedTime.Time
		}
		switch e.Reason {
		case "InterlockClosed":
			out.State = diagnosis.Proven
		case "InterlockOpened":
			out.State = diagnosis.NotProven
		default:
			continue
		}
		if before, ok := last[out.Replica]; !ok || out.Time.After(before.Time) {
			last[out.Replica] = out
		}
	}
	for _, e := range last {
		r.status.Events = append(r.status.Events, e)
	}
	slices.SortFunc(r.status.Events, func(a, b diagnosis.Event) int { return strings.Compare(a.Replica, b.Replica) })
}

// askReplicas asks each replica for its proof, through the Pod proxy of kube-apiserver. A static Pod listens on the loopback address, which
// the proxy does not reach.
func (r *statusReader) askReplicas(ctx context.Context, pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		if pod.Status.PodIP == "" || listensOnLoopback(pod) {
			continue
		}
		name := fmt.Sprintf("https:%s:%d", pod.Name, portOf(pod))
		answer := r.client.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").Name(name).SubResource("proxy").Suffix("readyz", "interlock").Do(ctx)
		body, err := answer.Raw()
		if cause, ok := apierrors.StatusCause(err, metav1.CauseTypeUnexpectedServerResponse); ok {
			body = []byte(cause.Message) // An answer with an error that is no Status of Kubernetes.
		}
		proof := diagnosis.Proof{Replica: pod.Namespace + "/" + pod.Name}
		proof.State, proof.Message = diagnosis.ReadProof(strings.TrimSpace(string(body)), err == nil)
		if proof.State == diagnosis.Unknown {
			if err == nil {
				err = fmt.Errorf("%q is not the answer of a fieldperm-webhook: see which program listens there", shorten.Text(string(body), 100))
			}
			proof.Message = err.Error()
			r.miss("the proof of replica "+proof.Replica, err, "get on pods/proxy in namespace "+pod.Namespace)
		}
		r.status.Proofs = append(r.status.Proofs, proof)
	}
}

func listensOnLoopback(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if slices.ContainsFunc(pod.Spec.Containers[i].Args, func(a string) bool {
			return strings.HasPrefix(a, "--bind-address=127.") || a == "--bind-address=::1"
		}) {
			return true
		}
	}
	return false
}

func portOf(pod *corev1.Pod) int32 {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == "https" {
				return port.ContainerPort
			}
		}
	}
	return 9443
}

// askMarkers asks kube-apiserver whether holders of the marker are let through. fieldperm-webhook does so only with a proof.
func (r *statusReader) askMarkers(ctx context.Context) {
	grants, err := rbac.List(ctx, r.client)
	if err != nil {
		r.miss("the resources on which users hold the marker", err, "list on roles, clusterroles, rolebindings and clusterrolebindings of rbac.authorization.k8s.io")
		return
	}
	for _, q := range diagnosis.Questions(grants) {
		if ctx.Err() != nil {
			return
		}
		// No object has the name, so that no answer comes from a cache.
		answer, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: q.User, Groups: q.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "update", Group: q.Resource.Group, Resource: q.Resource.Resource, Subresource: q.Subresource, Namespace: q.Namespace,
				Version: r.versionOf(q.Resource.Group), Name: "fieldperm-status-" + strings.ToLower(rand.Text()),
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			r.miss("whether holders of the marker are let through", err, "create on subjectaccessreviews.authorization.k8s.io")
			if apierrors.IsForbidden(err) {
				return
			}
			continue
		}
		r.markerAnswer(&q, &answer.Status)
	}
}

// markerAnswer notes an answer. Another authorizer may allow the same: that says nothing of the proof.
func (r *statusReader) markerAnswer(q *diagnosis.Question, answer *authorizationv1.SubjectAccessReviewStatus) {
	of := q.Resource
	out := diagnosis.Resource{Resource: q.Name(), User: q.User, State: diagnosis.Unknown, Refused: !answer.Allowed}
	out.LetsIn = endpoint.BuiltIn(of.Group, of.Resource) && endpoint.TakesMarker(of.Group, of.Resource, q.Subresource) && (of.Group == "" || r.versionOf(of.Group) != "")
	_, said, fromFieldperm := strings.Cut(answer.Reason, verbs.Prefix)
	switch {
	case answer.Allowed && strings.HasPrefix(answer.Reason, verbs.Prefix):
		out.State = diagnosis.Proven
	case answer.Allowed:
		out.Message = "the user also holds update, by another authorizer"
	case fromFieldperm && strings.Contains(said, "is not let through"):
		out.State, out.Message = diagnosis.NotProven, strings.TrimSpace(said)
	case fromFieldperm:
		// The user lacks get (A7). That says nothing of the proof.
		out.LetsIn, out.Message = false, strings.TrimSpace(said)
	default:
		out.Message = "the user is refused, and fieldperm gives no reason: kube-apiserver does not ask fieldperm about it, or fieldperm does not let this resource through"
	}
	r.status.Resources = append(r.status.Resources, out)
}

// versionOf returns the preferred version of a group, "" if it is not served.
func (r *statusReader) versionOf(group string) string {
	if r.versions == nil {
		r.versions = map[string]string{}
		if groups, err := r.client.Discovery().ServerGroups(); err == nil {
			for i := range groups.Groups {
				r.versions[groups.Groups[i].Name] = groups.Groups[i].PreferredVersion.Version
			}
		}
	}
	return r.versions[group]
}
