package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"

	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/schema"
)

// hints collects the fields that the managers own in live objects of the resources that the subject may update. They are added to the
// evidence only with --include-hints.
func (o *tightening) hints(ctx context.Context, subject tighten.Subject, known *knownCluster, evidence *tighten.Evidence) error {
	if len(o.managers) == 0 {
		return nil
	}
	h := &tighten.Hints{Managers: o.managers, Kind: func(apiVersion, kind string) (*schema.Kind, error) {
		return known.schema.Kind(runtimeschema.FromAPIVersionAndKind(apiVersion, kind))
	}}
	h.Found.Names = evidence.Names
	grants := tighten.Held(&known.objects, subject, o.groups)
	done := map[tighten.Resource]bool{}
	for _, list := range known.served {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			served := &list.APIResources[i]
			r := tighten.Resource{Group: gv.Group, Name: served.Name}
			if done[r] || strings.Contains(served.Name, "/") || !slices.Contains(served.Verbs, "list") || known.decides(r) != tighten.DecidesYes {
				continue
			}
			done[r] = true
			for _, scope := range tighten.UpdateScopes(grants, r) {
				client := metadataIn(known.metadata, gv.WithResource(served.Name), scope)
				if err := readHints(ctx, h, served.Kind, r, client); err != nil {
					if apierrors.IsForbidden(err) {
						o.warn("--managed-fields: %v", err)
						continue
					}
					return fmt.Errorf("--managed-fields: %s: %w", r, err)
				}
			}
		}
	}
	text := fmt.Sprintf("managedFields of %s: %d objects, a hint", join(o.managers), h.Objects)
	if h.Faults > 0 {
		text += fmt.Sprintf(", %d entries that cannot be read", h.Faults)
	}
	o.sources = append(o.sources, text)
	if o.includeHints {
		evidence.Merge(&h.Found)
		return nil
	}
	o.hinted = &h.Found
	return nil
}

func metadataIn(client metadata.Interface, resource runtimeschema.GroupVersionResource, namespace string) metadata.ResourceInterface {
	if namespace == "" {
		return client.Resource(resource)
	}
	return client.Resource(resource).Namespace(namespace)
}

// readHints lists objects in pages, so that only some pages are in memory.
func readHints(ctx context.Context, h *tighten.Hints, kind string, r tighten.Resource, client metadata.ResourceInterface) error {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}
	p := pager.New(list)
	p.PageBufferSize = 1
	return p.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(metav1.Object)
		if !ok {
			return fmt.Errorf("item is %T", item)
		}
		return h.Add(ctx, kind, r, object)
	})
}
