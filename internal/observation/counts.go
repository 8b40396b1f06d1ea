package observation

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/shorten"
)

// update names the user and the object of an update. resource includes the subresource.
type update struct{ user, group, resource, namespace, name string }

// row is the key of the counts of one user and resource.
type row struct{ user, group, resource string }

// counts are what a replica has seen since it last wrote a status. They have the limits of a status, so that their memory is bounded. The
// zero counts are empty.
type counts struct {
	writes, refused, failed, omitted int64

	gaps []v1alpha1.ObservationGap
	rows map[row]*rowCount
	// verbs is the number of verbs in all rows, bytes about the size of the rows.
	verbs, bytes int
}

type rowCount struct {
	writes int64
	verbs  map[string]*v1alpha1.ObservedVerb
}

func (c *counts) isEmpty() bool {
	return c.writes == 0 && c.failed == 0 && c.omitted == 0 && len(c.gaps) == 0
}

func (c *counts) add(u *update, verbs []string, refused bool, at time.Time) {
	c.writes++
	if refused {
		c.refused++
	}
	one := c.row(row{u.user, u.group, u.resource})
	if one == nil || !fits(u.namespace, v1alpha1.MaxObservedNamespaceLength) {
		c.omitted += int64(max(1, len(verbs)))
		return
	}
	one.writes++
	when := metav1.NewTime(at.Truncate(time.Second))
	for _, verb := range verbs {
		used := v1alpha1.ObservedVerb{Verb: verb, Count: 1, FirstTime: when, LastTime: when}
		u.describe(&used)
		c.use(one, &used)
	}
}

// row returns the counts of a user and resource, nil if there is no room for one more, or for their names.
func (c *counts) row(key row) *rowCount {
	if one := c.rows[key]; one != nil {
		return one
	}
	size := key.size()
	if !key.fits() || len(c.rows) >= v1alpha1.MaxObservedResources || c.bytes+size > maxBytes {
		return nil
	}
	c.bytes += size
	if c.rows == nil {
		c.rows = map[row]*rowCount{}
	}
	one := &rowCount{verbs: map[string]*v1alpha1.ObservedVerb{}}
	c.rows[key] = one
	return one
}

// use adds the uses of one verb.
func (c *counts) use(one *rowCount, used *v1alpha1.ObservedVerb) {
	known := one.verbs[used.Verb]
	if known == nil {
		size := sizeOfVerb(used)
		if !fits(used.Verb, v1alpha1.MaxObservedVerbLength) || c.verbs >= v1alpha1.MaxObservedVerbs || c.bytes+size > maxBytes {
			c.omitted += used.Count
			return
		}
		c.verbs++
		c.bytes += size
		first := *used
		one.verbs[used.Verb] = &first
		return
	}
	known.Count += used.Count
	if used.FirstTime.Before(&known.FirstTime) {
		known.FirstTime = used.FirstTime
	}
	if known.LastTime.Before(&used.LastTime) {
		known.LastTime = used.LastTime
		if used.Example.Name != "" {
			known.Example = used.Example
		}
	}
	if known.Example.Name == "" {
		known.Example = used.Example
	}
	known.MoreNamespaces = known.MoreNamespaces || used.MoreNamespaces
	for _, namespace := range used.Namespaces {
		at, found := slices.BinarySearch(known.Namespaces, namespace)
		switch {
		case found:
		case len(known.Namespaces) < v1alpha1.MaxObservedNamespaces && c.bytes+stored(namespace) <= maxBytes:
			c.bytes += stored(namespace)
			// The slice may be that of another verb's value.
			known.Namespaces = slices.Insert(slices.Clone(known.Namespaces), at, namespace)
		default:
			known.MoreNamespaces = true
		}
	}
}

// nearby is the distance in time below which two gaps of one reason are one.
const nearby = 5 * time.Minute

// miss adds a gap, or makes the last one longer.
func (c *counts) miss(gap v1alpha1.ObservationGap) { c.gaps = withGap(c.gaps, gap) }

// withGap returns the gaps with one more. Above the limit the first two become one, so that no gap is lost.
func withGap(gaps []v1alpha1.ObservationGap, gap v1alpha1.ObservationGap) []v1alpha1.ObservationGap {
	gap.Reason = shorten.Within(gap.Reason, v1alpha1.MaxGapReasonLength)
	if n := len(gaps); n > 0 && gaps[n-1].Reason == gap.Reason && gap.From.Sub(gaps[n-1].To.Time) < nearby {
		if gaps[n-1].To.Before(&gap.To) {
			gaps[n-1].To = gap.To
		}
		return gaps
	}
	gaps = append(gaps, gap)
	if len(gaps) > v1alpha1.MaxObservationGaps {
		gaps[1].From = gaps[0].From
		gaps = slices.Delete(gaps, 0, 1)
	}
	return gaps
}

// addAll adds other counts.
func (c *counts) addAll(more *counts) {
	c.writes += more.writes
	c.refused += more.refused
	c.failed += more.failed
	c.omitted += more.omitted
	for _, gap := range more.gaps {
		c.miss(gap)
	}
	for key, from := range more.rows {
		one := c.row(key)
		if one == nil {
			c.omitted += from.uses()
			continue
		}
		one.writes += from.writes
		for _, used := range from.verbs {
			c.use(one, used)
		}
	}
}

// uses returns the number of uses of verbs, one at least.
func (r *rowCount) uses() int64 {
	n := int64(0)
	for _, used := range r.verbs {
		n += used.Count
	}
	return max(1, n)
}

// withoutRows returns the counts with all uses of verbs as omitted.
func (c *counts) withoutRows() *counts {
	out := *c
	out.rows, out.verbs, out.bytes = nil, 0, 0
	for _, one := range c.rows {
		out.omitted += one.uses()
	}
	return &out
}

func now(c clock.PassiveClock) metav1.Time { return metav1.NewTime(c.Now().Truncate(time.Second)) }
