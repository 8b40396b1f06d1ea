package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/internal/shorten"
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
		case "EnforcementProven":
			out.State = diagnosis.Proven
		case "EnforcementNotProven":
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
		answer := r.client.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").Name(name).SubResource("proxy").Suffix("readyz", "enforcement").Do(ctx)
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

// askAuthorizer asks kube-apiserver about the user whom fieldperm answers with the state of its proof.
func (r *statusReader) askAuthorizer(ctx context.Context) {
	// No object has the name, so that the answer comes from no cache.
	answer, err := r.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: admission.StatusUser,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "update", Version: "v1", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "fieldperm-status-" + strings.ToLower(rand.Text()),
		},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		r.miss("the proof of the fieldperm-webhook that kube-apiserver asks", err, "create on subjectaccessreviews.authorization.k8s.io")
	case answer.Status.Allowed:
		r.miss("the proof of the fieldperm-webhook that kube-apiserver asks", errors.New("every user may update configmaps in kube-system, so that kube-apiserver does not ask it"), "")
	default:
		said := diagnosis.ReadAnswer(answer.Status.Reason)
		r.status.Answer = &said
	}
}
