package plugin

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/verbs"
)

// maxHolders is how many subjects kube-apiserver is asked about.
const maxHolders = 5

// enforcement reports what a cluster says about enforcement: the conditions of objects, and whether kube-apiserver lets holders of the
// marker in. The error is that of the context.
func (o *auditing) enforcement(ctx context.Context, scan *audit.Scan) ([]sources.Missing, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var missing []sources.Missing
	if *o.cluster.Namespace == "" {
		missing = o.documents(ctx, objects)
	}
	if err := o.proof(ctx, client, scan); err != nil {
		missing = append(missing, sources.Missing{What: "whether enforcement is proven", Err: err})
	}
	return missing, ctx.Err()
}

// documents reports the conditions of fieldperm's objects.
func (o *auditing) documents(ctx context.Context, client dynamic.Interface) []sources.Missing {
	var missing []sources.Missing
	absent := 0
	kinds := []struct{ resource, kind string }{
		{v1alpha1.PermissionSchemaResource, v1alpha1.PermissionSchemaKind}, {v1alpha1.UncoveredPermissionSetResource, v1alpha1.UncoveredPermissionSetKind},
		{v1alpha1.ConditionalPolicyResource, v1alpha1.ConditionalPolicyKind},
	}
	for _, k := range kinds {
		list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(v1alpha1.GroupVersion.WithResource(k.resource)).List(ctx, options)
		}
		err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			object, ok := item.(*unstructured.Unstructured)
			if !ok {
				return fmt.Errorf("item is %T", item)
			}
			d := audit.Document{Ref: audit.Ref{Kind: k.kind, Name: object.GetName()}, Generation: object.GetGeneration()}
			if status, ok := object.Object["status"].(map[string]any); ok {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &d.Status); err != nil {
					return fmt.Errorf("%s: status: %w", d.Ref, err)
				}
			}
			d.Check(o.report)
			return nil
		})
		switch {
		case apierrors.IsNotFound(err):
			absent++
		case err != nil:
			name := k.resource + "." + v1alpha1.GroupVersion.Group
			missing = append(missing, sources.Missing{What: "whether " + k.resource + " are enforced", Err: fmt.Errorf("%w: allow list on %s", err, name)})
		}
	}
	if absent == len(kinds) {
		o.warn("the cluster does not have the kinds of fieldperm: if fieldperm is to be used there, install its CustomResourceDefinitions")
	}
	return missing
}

// proof asks kube-apiserver about subjects with the marker. One that it lets in because of the marker proves enforcement. If it lets none in, it
// is reported.
func (o *auditing) proof(ctx context.Context, client kubernetes.Interface, scan *audit.Scan) error {
	var refused *audit.Finding
	for _, h := range scan.Holders(maxHolders) {
		resource, subresource := h.Split()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: h.User, Groups: h.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: h.Namespace, Verb: "update", Group: h.Resource.Group, Version: h.Version, Resource: resource, Subresource: subresource, Name: h.Name},
		}}
		out, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("%w: allow create on subjectaccessreviews.%s", err, authorizationv1.GroupName)
		}
		switch {
		case out.Status.Allowed && strings.HasPrefix(out.Status.Reason, verbs.Prefix):
			return nil
		case !out.Status.Allowed && refused == nil:
			f := h.Refused(out.Status.Reason)
			refused = &f
		}
	}
	if refused != nil {
		o.report(*refused)
	}
	return nil
}
