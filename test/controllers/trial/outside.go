//go:build controllers

package trial

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Changes that no program makes. The first that the API server would store is tried: a status keeps no labels in some kinds.
var foreign = []string{
	`{"metadata":{"labels":{"outside.example.com/x":"1"}}}`,
	`{"metadata":{"annotations":{"outside.example.com/x":"1"}}}`,
	`{"metadata":{"finalizers":["outside.example.com/x"]}}`,
	`{"status":{"conditions":[{"type":"outside.example.com/x","status":"True","reason":"X","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
	`{"status":{"used":{"pods":"77"}}}`,
	`{"spec":{"replicas":77}}`,
	`{"ports":[{"name":"outside","port":77,"protocol":"TCP"}]}`,
}

// outside sends, as a user, a write of a field that the user does not write, on a resource that it writes. It returns the refusal of
// fieldperm, "" if no write was refused.
func (r *Run) outside(p *proposal) string {
	r.T.Helper()
	user := r.User(p.user)
	// The main resources first, and Events last.
	rows := slices.SortedFunc(slices.Values(p.rows), func(a, b v1alpha1.ObservedResource) int {
		rank := func(o v1alpha1.ObservedResource) string {
			return fmt.Sprint(o.Resource == "events", strings.Contains(o.Resource, "/"), o.Group, o.Resource)
		}
		return strings.Compare(rank(a), rank(b))
	})
	for _, row := range rows {
		name, sub, _ := strings.Cut(row.Resource, "/")
		full := resource{row.Group, name}.String()
		object := r.writable(full, row)
		if object == nil {
			continue
		}
		client, err := r.At(user.Config, full, object.GetNamespace())
		Must(r.T, err)
		var subresources []string
		if sub != "" {
			subresources = []string{sub}
		}
		for _, change := range slices.Concat(r.trial.Foreign, foreign) {
			_, err := client.Patch(r.T.Context(), object.GetName(), types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
			if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not change") {
				return fmt.Sprintf("%s: %s", resource{row.Group, row.Resource}, err)
			}
		}
	}
	return ""
}

// writable returns an object that the user wrote or, if none of them is left, any object of the resource.
func (r *Run) writable(full string, row v1alpha1.ObservedResource) *unstructured.Unstructured {
	r.T.Helper()
	for _, v := range row.Verbs {
		client, err := r.At(nil, full, v.Example.Namespace)
		Must(r.T, err)
		if object, err := client.Get(r.T.Context(), v.Example.Name, metav1.GetOptions{}); err == nil {
			return object
		}
	}
	all, err := r.At(nil, full, "")
	Must(r.T, err)
	list, err := all.List(r.T.Context(), metav1.ListOptions{Limit: 500})
	Must(r.T, err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[len(list.Items)-1]
}
