package plugin

import (
	"context"
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// noBarriers says that a proposal from files is not proven.
const noBarriers = "BARRIERS WERE NOT LOOKED AT: no cluster and no --permissions say which verbs pass one. update and patch do not pass a barrier, and a verb of the proposal may. Give --permissions and --crd, or use the cluster"

// barriersUnknown reports whether a proposal is made from files without any that may have UncoveredPermissionSets.
func (o *tightening) barriersUnknown() bool { return o.offline() && len(o.permissions) == 0 }

// noPolicies says that a proposal from files does not know the policies.
const noPolicies = "ConditionalPolicies were not looked at: give those of the cluster with --policies, or use the cluster"

// policiesUnknown reports whether a proposal is made from files without any that may have ConditionalPolicies.
func (o *tightening) policiesUnknown() bool { return o.offline() && len(o.policyFiles) == 0 }

// offlineObjects reads the RBAC objects of --grants, and the schemas and policies of files.
func (o *tightening) offlineObjects(ctx context.Context) (*knownCluster, error) {
	objects, err := rbac.Read(o.grants)
	if err != nil {
		return nil, err
	}
	known := &knownCluster{objects: objects, decides: decidesOffline, undecided: undecidedOffline(), barriers: &tighten.Barriers{Unknown: true}}
	if known.policies, err = policies.All(ctx, nil, o.policyFiles); err != nil {
		return nil, err
	}
	if len(o.files()) == 0 {
		return known, nil
	}
	documents, compiled, unmatched, err := sources.Files(o.files())
	if err != nil {
		return nil, err
	}
	for _, err := range unmatched {
		o.warn("%v", err)
	}
	known.barriers = tighten.NewBarriers(documents, compiled, func(runtimeschema.GroupVersionKind) error { return nil })
	known.barriers.Unknown = o.barriersUnknown()
	return known, nil
}

// readBarriers reads the schemas and the UncoveredPermissionSets of the cluster, as the other commands do.
func (o *tightening) readBarriers(ctx context.Context, known *knownCluster) error {
	snapshot, err := sources.Once(ctx, known.config, o.files())
	if err != nil {
		return fmt.Errorf("barriers: %w", err)
	}
	for _, warning := range snapshot.Warnings {
		o.warn("%v", warning)
	}
	known.schema = snapshot.Schema
	known.barriers = tighten.NewBarriers(snapshot.Documents, snapshot.Schema, snapshot.Kind)
	return nil
}

// prove finds the new access of a proposal, for the subject and for others. Accepted rights to read become notes.
func (o *tightening) prove(p *tighten.Proposal, known *knownCluster) *tighten.Proof {
	proof := tighten.Prove(p, &known.objects, o.groups, known.barriers)
	for _, b := range tighten.Foreign(p, &known.objects) {
		proof.New = append(proof.New, fmt.Sprintf("%s is not of the proposal and names %s: its subjects would get the rules: find out who made it, and delete it", b.Ref, b.Role))
	}
	for _, a := range tighten.Aggregating(p, &known.objects) {
		proof.New = append(proof.New, fmt.Sprintf("%s is aggregated and selects %s: its subjects would get the rules: %s", a.By, a.Role, a.Cure()))
	}
	if o.allowRead {
		p.Notes, proof.Read = append(p.Notes, proof.Read...), nil
	}
	return proof
}
