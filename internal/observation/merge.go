package observation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// merge returns a status with the counts of a replica added. Rows are in a fixed order, so that replicas write the same text. What the
// status has no room for is counted in omitted: the first verbs that were seen stay.
func merge(status *v1alpha1.PermissionObservationStatus, more *counts) *v1alpha1.PermissionObservationStatus {
	out := status.DeepCopy()
	known := counts{gaps: out.Gaps}
	for i := range out.Resources {
		r := &out.Resources[i]
		one := known.row(row{r.User, r.Group, r.Resource})
		if one == nil {
			// An earlier fieldperm had other limits.
			known.omitted += usesOf(r)
			continue
		}
		one.writes = r.Writes
		for j := range r.Verbs {
			known.use(one, &r.Verbs[j])
		}
	}
	known.addAll(more)
	out.Writes += known.writes
	out.Refused += known.refused
	out.Failed += known.failed
	out.Omitted += known.omitted
	out.Gaps = known.gaps
	out.Resources = nil
	for key, one := range known.rows {
		r := v1alpha1.ObservedResource{User: key.user, Group: key.group, Resource: key.resource, Writes: one.writes}
		for _, verb := range slices.Sorted(maps.Keys(one.verbs)) {
			r.Verbs = append(r.Verbs, *one.verbs[verb])
		}
		out.Resources = append(out.Resources, r)
	}
	slices.SortFunc(out.Resources, func(a, b v1alpha1.ObservedResource) int {
		return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	return out
}

// withoutRows returns a status with all uses of verbs as omitted.
func withoutRows(status *v1alpha1.PermissionObservationStatus) *v1alpha1.PermissionObservationStatus {
	out := status.DeepCopy()
	for i := range out.Resources {
		out.Omitted += usesOf(&out.Resources[i])
	}
	out.Resources = nil
	return out
}

// usesOf returns the number of uses of verbs in a row, one at least.
func usesOf(r *v1alpha1.ObservedResource) int64 {
	n := int64(0)
	for i := range r.Verbs {
		n += r.Verbs[i].Count
	}
	return max(1, n)
}
