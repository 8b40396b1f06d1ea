package sources

import (
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// standing is how much of a PermissionSchema is in force, given the sets that it conflicts with.
type standing int

const (
	// whole: the PermissionSchema removes no verb that a set uses.
	whole standing = iota
	// barriersAlone: only entries that are barriers are in force, because other entries remove verbs that sets use.
	barriersAlone
	// nothing: its barriers remove such verbs too. Writes to its kind are refused.
	nothing
)

// conflicts finds PermissionSchemas that remove a verb by which a set protects a field, so that the set is faulty. Admission
// refuses the object that is created second, but neither if both are created at the same time. In that case the set is in force,
// and the PermissionSchema only as far as possible: each one is compiled as if it were created after the sets.
func (l *Live) conflicts(back retreats, compiled *trial, errs []error) (map[objectKey]standing, []error) {
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
	lost := func(from, to *trial) []schemacheck.Barrier {
		return slices.DeleteFunc(schemacheck.Lost(from.sets, to.sets), func(b schemacheck.Barrier) bool { return len(hurt[b.Source]) == 0 })
	}
	documents := l.all(back)
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
		var taken []schemacheck.Taken
		for _, kind := range l.objects.known[key].kinds(func() compile.Documents { return documents }) {
			taken = append(taken, schemacheck.TakenFrom(kind, without.Schema, compiled.Schema)...)
		}
		if slices.ContainsFunc(taken, func(t schemacheck.Taken) bool {
			return slices.ContainsFunc(all, func(b schemacheck.Barrier) bool { return t.Is(b.Verb) })
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

// refused returns the kinds of the PermissionSchemas of which nothing is in force.
func (o *objects) refused(standings map[objectKey]standing, all func() compile.Documents) map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for key, is := range standings {
		if is == nothing {
			for _, kind := range o.known[key].kinds(all) {
				out[kind] = true
			}
		}
	}
	return out
}

// barriersOf removes the entries that are not barriers.
func barriersOf(d compile.Documents) compile.Documents {
	out := d
	out.Permissions = nil
	for _, p := range d.Permissions {
		p.Entries = slices.DeleteFunc(slices.Clone(p.Entries), func(e compile.Entry) bool { return !e.IsBarrier() })
		if len(p.Entries)+len(p.Contains) > 0 {
			out.Permissions = append(out.Permissions, p)
		}
	}
	return out
}
