package sources

import (
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// standing is how much of a PermissionSchema is in force beside the sets that it conflicts with.
type standing int

const (
	// whole: it takes no verb from a set.
	whole standing = iota
	// barriersAlone: entries that are no barriers are left out, since some take verbs from sets.
	barriersAlone
	// nothing: its barriers take verbs from sets too. Its kind is refused.
	nothing
)

// conflicts finds PermissionSchemas that take a verb away by which a set bars a field, so that the set is faulty. Admission
// refuses whichever is made second, and neither when both are made at the same time. Then the set holds, and the PermissionSchema
// stands back as far as it must: one after the other is compiled as if it were made after the sets.
func (l *Live) conflicts(back retreats, compiled *schema.Schema, errs []error) (map[objectKey]standing, []error) {
	hurt, _ := bySource(errs)
	before := back
	before.standing = map[objectKey]standing{}
	for key := range l.objects.known {
		if key.kind == v1alpha1.PermissionSchemaKind {
			before.standing[key] = nothing
		}
	}
	if len(before.standing) == 0 || !slices.ContainsFunc(l.objects.keys(), func(key objectKey) bool {
		return key.kind == v1alpha1.UncoveredPermissionSetKind && len(hurt[key.source()]) > 0
	}) {
		return nil, nil
	}
	lost := func(from, to *schema.Schema) []schema.Borne {
		return slices.DeleteFunc(schema.Unborne(from, to), func(b schema.Borne) bool { return len(hurt[b.Source]) == 0 })
	}
	_, without, _ := l.trial(before)
	all := lost(without, compiled)
	if len(all) == 0 {
		return nil, nil
	}
	out := maps.Clone(before.standing)
	var suspects []objectKey
	for _, key := range l.objects.keys() {
		if _, ok := out[key]; !ok {
			continue
		}
		taken := schema.TakenFrom(l.objects.known[key].guards, without, compiled)
		if slices.ContainsFunc(taken, func(t schema.Taken) bool {
			return slices.ContainsFunc(all, func(b schema.Borne) bool { return t.Is(b.Verb) })
		}) {
			suspects = append(suspects, key)
		} else {
			out[key] = whole
		}
	}
	var faults []error
	before.standing = out
	_, last, _ := l.trial(before)
	for _, key := range suspects {
		out[key] = whole
		_, next, _ := l.trial(before)
		if taken := lost(last, next); len(taken) > 0 {
			for _, b := range taken {
				faults = append(faults, b.TakenBy(key.source()))
			}
			out[key] = barriersAlone
			if _, next, _ = l.trial(before); len(lost(last, next)) > 0 {
				out[key] = nothing
				continue
			}
		}
		last = next
	}
	return out, faults
}

// refused are the kinds of which nothing is in force beside the sets.
func (o *objects) refused(standings map[objectKey]standing) map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for key, is := range standings {
		if is == nothing {
			out[o.known[key].guards] = true
		}
	}
	return out
}

// barriersOf leaves out the entries that are no barriers.
func barriersOf(d schema.Documents) schema.Documents {
	out := d
	out.Permissions = nil
	for _, p := range d.Permissions {
		p.Entries = slices.DeleteFunc(slices.Clone(p.Entries), func(e schema.Entry) bool { return !e.IsBarrier() })
		if len(p.Entries) > 0 {
			out.Permissions = append(out.Permissions, p)
		}
	}
	return out
}
