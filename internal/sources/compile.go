package sources

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// retreats names the objects whose last valid form is in force instead of the current one.
type retreats struct {
	objects     map[objectKey]bool
	definitions map[string]bool
	// standing is how much of each PermissionSchema is in force. refused are the kinds of the PermissionSchemas of which nothing is
	// in force; see conflicts.
	standing map[objectKey]standing
	refused  map[runtimeschema.GroupKind]bool
}

// trial is a compile of sources.
type trial struct {
	*schema.Schema
	sets *schemacheck.Sets
}

// trial compiles all sources without putting the result in force.
func (l *Live) trial(back retreats) (compile.Documents, *trial, []error) {
	documents := l.all(back)
	documents.Topologies = without(without(documents.Topologies, l.objects.unknown(func() compile.Documents { return documents })), back.refused)
	compiled, sets, errs := schemacheck.Compile(documents)
	return documents, &trial{compiled, sets}, errs
}

// all returns all sources, with the kinds whose barriers are not known.
func (l *Live) all(back retreats) compile.Documents {
	documents := l.base.Append(compile.Documents{Topologies: l.published.topologies(l.ownKinds(), l.definitions.claims())})
	documents.Topologies = without(documents.Topologies, l.definitions.unknown())
	return documents.Append(l.definitions.documents(back.definitions)).Append(l.objects.documents(back), l.proposed.documents)
}

// ownKinds returns the kinds of this API server, in any version: the kinds of Kubernetes and of definitions. A file of the
// administrator may be about a kind of another API server.
func (l *Live) ownKinds() map[runtimeschema.GroupKind]bool {
	out := l.definitions.kinds()
	for i := range l.base.Topologies {
		if t := &l.base.Topologies[i]; t.RoundTrips {
			for gvk := range t.Kinds {
				out[gvk.GroupKind()] = true
			}
		}
	}
	for i := range l.proposed.documents.Topologies {
		for gvk := range l.proposed.documents.Topologies[i].Kinds {
			out[gvk.GroupKind()] = true
		}
	}
	return out
}

// compile puts the schema in force. If an object no longer compiles, its last valid form stays in force. If a definition or
// PermissionSchema never compiled, its kinds fail and writes to them are refused. If an UncoveredPermissionSet never compiled,
// those of its verbs that compile are in force.
//
// PermissionSchemas retreat to their last valid form before definitions, because they name fields of definitions. Both retreat
// before UncoveredPermissionSets, because these name verbs of kinds that have not failed. A PermissionSchema that removes such a
// verb retreats before the set does.
func (l *Live) compile(ctx context.Context) {
	started, log := time.Now(), klog.FromContext(ctx)
	var back retreats
	documents, compiled, errs := l.trial(back)
	next := &state{faults: slices.Concat(l.definitions.faults(), l.objects.faults(), aboutSets(documents, errs, false))}
	schemaErrs := errs
	if back.objects = l.objects.failing(v1alpha1.PermissionSchemaKind, errs); len(back.objects) > 0 {
		documents, compiled, errs = l.trial(back)
	}
	back.definitions = l.definitions.failing(compiled.Failed())
	l.definitions.settle(compiled.Failed())
	if len(back.definitions) > 0 {
		documents, compiled, errs = l.trial(back)
	}
	var taken []error
	if back.standing, taken = l.conflicts(back, compiled, errs); len(taken) > 0 {
		// The conflicts are known now, so both objects are treated as if the other had been refused.
		back.refused = l.objects.refused(back.standing, func() compile.Documents { return l.all(back) })
		documents, compiled, errs = l.trial(back)
		schemaErrs, next.faults = slices.Concat(schemaErrs, taken), slices.Concat(next.faults, taken)
	}
	next.faults = append(next.faults, aboutSets(documents, errs, true)...)
	l.objects.settle(v1alpha1.PermissionSchemaKind, schemaErrs)
	sets := l.objects.failing(v1alpha1.UncoveredPermissionSetKind, errs)
	l.objects.settle(v1alpha1.UncoveredPermissionSetKind, errs)
	if len(sets) > 0 {
		for key := range back.objects {
			sets[key] = true
		}
		back.objects = sets
		documents, compiled, _ = l.trial(back)
	}
	next.documents, next.schema, next.objects = documents, compiled.Schema, l.objects.states(compiled.sets, back)
	next.unknown = l.definitions.unknown()
	maps.Copy(next.unknown, l.objects.unknown(func() compile.Documents { return l.all(back) }))
	maps.Copy(next.unknown, back.refused)
	next.hiding = l.published.hiding(l.ownKinds())
	for _, err := range slices.Concat(schemaErrs, errs) {
		if isUnmatched(err) {
			log.V(2).Info("A permission schema is about what is not known yet", "err", err)
			next.unmatched = append(next.unmatched, err)
		}
	}
	for _, err := range next.faults {
		log.Error(err, "A permission schema is faulty")
	}
	l.store(next, started)
	log.V(2).Info("Compiled the permission schema", "kinds", len(compiled.Kinds()), "failed", len(compiled.Failed()), "took", time.Since(started))
}

// aboutSets returns the faults of UncoveredPermissionSets if sets is true, else all other faults.
func aboutSets(documents compile.Documents, errs []error, sets bool) []error {
	isSet := map[string]bool{}
	for i := range documents.Uncovered {
		isSet[documents.Uncovered[i].Source] = true
	}
	var out []error
	for _, err := range errs {
		var e *schema.Error
		isAbout := errors.As(err, &e) && isSet[e.Source]
		if isAbout == sets && !isUnmatched(err) {
			out = append(out, err)
		}
	}
	return out
}
