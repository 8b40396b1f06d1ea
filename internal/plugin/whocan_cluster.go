package plugin

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// place finds out where the objects are and what fieldperm does there. It returns what a reader has to know about it, and whether the objects
// are in namespaces.
func (o *whoCan) place(ctx context.Context, known *traced, w *access.Write) (notes []string, namespaced bool, err error) {
	w.TakesMarker = endpoint.TakesMarker(w.Group, w.Resource, w.Subresource)
	w.OnFloor = admission.FloorResource(w.Group, w.Resource) || admission.FloorResource(w.Group, w.Resource+"/"+w.Subresource)
	if o.offline() {
		namespaced, err = o.scopeOffline(w)
	} else {
		notes, namespaced, err = o.placeIn(ctx, known, w)
	}
	if err != nil {
		return nil, false, err
	}
	switch {
	case !namespaced && o.allNamespaces:
		return nil, false, fmt.Errorf("--all-namespaces: %s are in no namespace: drop it", w.Resource)
	case !namespaced:
	case o.allNamespaces && w.Name != "":
		return nil, false, fmt.Errorf("--all-namespaces: object %q is in one namespace: give --namespace", w.Name)
	case o.allNamespaces:
		w.AllNamespaces = true
	default:
		if w.Namespace, _, err = o.cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, false, fmt.Errorf("cluster: %w: give --namespace", err)
		}
	}
	return notes, namespaced, nil
}

// placeIn asks the cluster.
func (o *whoCan) placeIn(ctx context.Context, known *traced, w *access.Write) (notes []string, namespaced bool, err error) {
	config, err := o.config()
	if err != nil {
		return nil, false, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	version := metav1.GroupVersion{Group: w.Group, Version: w.Version}.String()
	list, err := client.Discovery().ServerResourcesForGroupVersion(version)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("discovery of %s: %w: correct --kubeconfig and --context", version, err)
	}
	at := -1
	if err == nil {
		at = slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == w.Resource })
	}
	if at < 0 {
		return nil, false, fmt.Errorf("resource %q: the API server does not serve it in %s: name one that kubectl api-resources lists, or give --api-version", w.Resource, version)
	}
	namespaced = list.APIResources[at].Namespaced

	if _, err := client.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String()); apierrors.IsNotFound(err) {
		w.Absent, w.TakesMarker, w.OnFloor = true, false, true
		return []string{"fieldperm is not installed in the cluster: no barrier holds."}, namespaced, nil
	}
	aggregated, err := aggregates(ctx, config, w.Group)
	switch {
	case err != nil:
		known.missing = append(known.missing, sources.Missing{What: "whether another API server serves " + w.Resource, Err: fmt.Errorf("%w: allow list on apiservices.apiregistration.k8s.io", err)})
	case aggregated:
		w.TakesMarker = false
		notes = append(notes, fmt.Sprintf("Another API server serves %s. Barriers hold there, and granular verbs count, only if it calls fieldperm-webhook.", w.Resource))
	}
	return notes, namespaced, nil
}

// aggregates reports whether another API server serves a version of a group.
func aggregates(ctx context.Context, config *rest.Config, group string) (bool, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return false, err
	}
	services, err := allowlist.ListServices(ctx, client)
	if err != nil {
		return false, err
	}
	for _, gv := range services.Aggregated {
		if gv.Group == group {
			return true, nil
		}
	}
	return false, nil
}

// listAbout reads RBAC objects, with progress on a terminal.
func (o *whoCan) listAbout(ctx context.Context, s rbac.Selection) (*rbac.Grants, []error) {
	config, err := o.config()
	if err != nil {
		return &rbac.Grants{}, []error{err}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return &rbac.Grants{}, []error{fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)}
	}
	p := o.newProgress("objects", 1)
	defer p.clear()
	v := &rbac.Visitor{Client: client, Total: func(kind string, n int64) { p.total(kind+"s", n) }}
	return rbac.ListAbout(ctx, v, s, func(kind string) { p.step(kind+"s", 1) })
}
