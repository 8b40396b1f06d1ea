// Command supersafe is the operator of KEP-3617's first user story. It looks at Deployments that belong to others, and writes nothing but
// labels, annotations and finalizers under super.safe.com/ and the condition SuperSafe. Its role allows no more: see README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	manager    = "supersafe"                 // The field manager of everything that the operator writes.
	finalizer  = "super.safe.com/report"     // Keeps a Deployment until its deletion is reported.
	verdict    = "super.safe.com/verdict"    // A label, safe or unsafe: kubectl get deployments -l super.safe.com/verdict=unsafe.
	containers = "super.safe.com/containers" // An annotation, the containers whose images are not pinned.
	condition  = "SuperSafe"                 // A condition, the same for programs.
)

func main() {
	retry := flag.Duration("retry-refused", time.Minute, "the time after which a refused write is tried again")
	flag.Parse() // It has --kubeconfig of controller-runtime.
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig()))
	if err := run(*retry); err != nil {
		klog.ErrorS(err, "supersafe has ended")
		os.Exit(1)
	}
}

func run(retry time.Duration) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	o := &operator{Client: client.WithFieldOwner(m.GetClient(), manager), retry: retry}
	if err := ctrl.NewControllerManagedBy(m).For(&appsv1.Deployment{}).Complete(o); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

// operator says of each Deployment whether its images are pinned by a digest.
type operator struct {
	client.Client
	retry time.Duration
}

// Reconcile implements reconcile.Reconciler.
func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	d := &appsv1.Deployment{}
	if err := o.Get(ctx, request.NamespacedName, d); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if d.DeletionTimestamp != nil {
		klog.FromContext(ctx).Info("The Deployment is deleted", "verdict", d.Labels[verdict])
		return o.refused(ctx, o.release(ctx, d))
	}
	if err := o.mark(ctx, d); err != nil {
		return o.refused(ctx, err)
	}
	return o.refused(ctx, o.report(ctx, d))
}

// identity is an apply configuration of the Deployment without any field. Without the UID, an apply would create a Deployment that was
// deleted meanwhile.
func identity(d *appsv1.Deployment) *appsapply.DeploymentApplyConfiguration {
	return appsapply.Deployment(d.Name, d.Namespace).WithUID(d.UID)
}

// mark writes the metadata. Server-side apply sends the operator's own fields only: what it does not know cannot be changed by mistake.
func (o *operator) mark(ctx context.Context, d *appsv1.Deployment) error {
	mine := identity(d).WithFinalizers(finalizer)
	if names := unpinned(d); len(names) == 0 {
		mine.WithLabels(map[string]string{verdict: "safe"})
	} else {
		mine.WithLabels(map[string]string{verdict: "unsafe"}).WithAnnotations(map[string]string{containers: strings.Join(names, ",")})
	}
	return o.Apply(ctx, mine, client.ForceOwnership)
}

// report writes the condition. The status is another resource to RBAC, deployments/status: it has a request and verbs of its own.
func (o *operator) report(ctx context.Context, d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration == 0 {
		return nil // To fill an empty status needs granular:status. Its own controller does that, which is the next event.
	}
	status, reason, message := corev1.ConditionTrue, "Pinned", "every image has a digest"
	if names := unpinned(d); len(names) > 0 {
		status, reason, message = corev1.ConditionFalse, "NotPinned", "no digest in the image of "+strings.Join(names, ", ")
	}
	since := metav1.Now()
	for _, c := range d.Status.Conditions {
		if c.Type == condition && c.Status == status {
			since = c.LastTransitionTime // An apply that changes nothing is not stored, and causes no event.
		}
	}
	c := appsapply.DeploymentCondition().WithType(condition).WithStatus(status).WithReason(reason).WithMessage(message).WithLastTransitionTime(since)
	return o.Status().Apply(ctx, identity(d).WithStatus(appsapply.DeploymentStatus().WithConditions(c)), client.ForceOwnership)
}

// release removes what mark wrote, the finalizer among it: the apply of nothing gives up everything that the field manager owns.
func (o *operator) release(ctx context.Context, d *appsv1.Deployment) error {
	return o.Apply(ctx, identity(d), client.ForceOwnership)
}

// refused logs which verb the operator lacks. An administrator has to grant it, so it is tried again later, not at once. Other errors, a
// conflict or a 500 or 503 of a fieldperm that cannot decide, are tried again by the queue, more and more slowly.
func (o *operator) refused(ctx context.Context, err error) (ctrl.Result, error) {
	if !apierrors.IsForbidden(err) {
		return ctrl.Result{}, err
	}
	field := ""
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		if causes := status.Status().Details.Causes; len(causes) > 0 {
			field = causes[0].Field // fieldperm names the first field that no verb of the user covers first.
		}
	}
	klog.FromContext(ctx).Error(err, "The role of supersafe lacks a verb", "field", field, "retryAfter", o.retry)
	return ctrl.Result{RequeueAfter: o.retry}, nil
}

// unpinned returns the containers whose images have no digest.
func unpinned(d *appsv1.Deployment) (names []string) {
	pod := &d.Spec.Template.Spec
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		if !strings.Contains(c.Image, "@sha256:") {
			names = append(names, c.Name)
		}
	}
	return names
}
