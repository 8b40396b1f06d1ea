// Package controller has the controller of websites.
package controller

import (
	"context"
	"strconv"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "github.com/fieldperm/fieldperm/examples/operator/website/api/v1"
)

const (
	// Public is a label with the value true or false: kubectl get websites -l web.example.com/public=true.
	Public = "web.example.com/public"
	// Ready is a condition.
	Ready = "Ready"
)

// WebsiteReconciler reports on websites. It writes one label and the status, and its role allows no more.
type WebsiteReconciler struct {
	client.Client
}

// The markers of kubebuilder make config/rbac/role.yaml, for clusters without fieldperm. The markers of fieldperm say which fields the
// operator writes. They make config/rbac/role-fieldperm.yaml, without update and patch.
//
// +kubebuilder:rbac:groups=web.example.com,resources=websites,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=web.example.com,resources=websites/status,verbs=get;update;patch
// +fieldperm:rbac:groups=web.example.com,resources=websites,fields=`.metadata.labels["web.example.com/public"]`
// +fieldperm:rbac:groups=web.example.com,resources=websites/status,fields=.status

// Reconcile implements reconcile.Reconciler.
func (r *WebsiteReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &webv1.Website{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.label(ctx, site); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, site)
}

// label writes the label. A patch sends the operator's own field only, and nothing where nothing changes.
func (r *WebsiteReconciler) label(ctx context.Context, site *webv1.Website) error {
	is := strconv.FormatBool(site.Spec.Public)
	if site.Labels[Public] == is {
		return nil
	}
	before := site.DeepCopy()
	metav1.SetMetaDataLabel(&site.ObjectMeta, Public, is)
	return r.Patch(ctx, site, client.MergeFrom(before))
}

// report writes the status. To RBAC it is another resource, websites/status: it has a request and verbs of its own.
func (r *WebsiteReconciler) report(ctx context.Context, site *webv1.Website) error {
	before := site.DeepCopy()
	ready := metav1.Condition{Type: Ready, Status: metav1.ConditionTrue, Reason: "Pinned", Message: "the image has a digest", ObservedGeneration: site.Generation}
	if !strings.Contains(site.Spec.Image, "@sha256:") {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NotPinned", "the image has no digest"
	}
	site.Status.Replicas = *site.Spec.Replicas
	if changed := apimeta.SetStatusCondition(&site.Status.Conditions, ready); !changed && before.Status.Replicas == site.Status.Replicas {
		return nil
	}
	return r.Status().Patch(ctx, site, client.MergeFrom(before))
}

// SetupWithManager adds the controller to a manager.
func (r *WebsiteReconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&webv1.Website{}).Complete(r)
}
