package fieldperm

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Clients that come to apply on the server make their former entries of operation Update those of one who applies, and the next apply of an
// unchanged manifest deletes what is not in it (k8s.io/client-go/util/csaupgrade). kubectl takes the managers that own the annotation of
// client-side apply, by their names. Others know names.

// clientSideAppliers are the names of managers that kubectl, Argo CD, Flux and Helm take over.
var clientSideAppliers = []string{"kubectl-client-side-apply", "argocd-controller", "kustomize-controller", "helm", "helm-controller", beforeFirstApplyOwner}

// lastApplied is the annotation of client-side apply.
var lastApplied = fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation)

// mayHaveApplied reports whether the entry may own the annotation. Few do, and entries are large. The slash in its name may be escaped.
func (e *managedEntry) mayHaveApplied() bool {
	raw, name := e.raw.Raw(), corev1.LastAppliedConfigAnnotation
	return bytes.Contains(raw, []byte(name[bytes.IndexByte([]byte(name), '/')+1:])) || bytes.Contains(raw, []byte(`\u`))
}

// upgraded returns the names of those who update and own the annotation.
func (m *managedFields) upgraded() map[string]bool {
	out := map[string]bool{}
	for i := range m.entries {
		if e := &m.entries[i]; e.operation == operationUpdate && e.mayHaveApplied() && e.set().Has(lastApplied) {
			out[e.name] = true
		}
	}
	return out
}

// applies reports whether what a manager owns goes with its next apply without it.
func (o *owners) applies(who manager) bool {
	if who.operation == operationApply || slices.Contains(clientSideAppliers, who.name) {
		return true
	}
	return o.upgraded()[who.name]
}

// upgraded returns the names of those whom kubectl will make apply.
func (o *owners) upgraded() map[string]bool {
	if o.upgradedAfter == nil {
		o.upgradedAfter = o.is.upgraded()
	}
	return o.upgradedAfter
}

// writesManifest reports whether a manager writes with the request what it applies on the client: its manifest has what it changes.
func (o *owners) writesManifest(who manager) bool {
	if who.operation == operationApply || !o.is.fields(who).Has(lastApplied) {
		return false
	}
	r := o.d.resolve(lastApplied)
	return r.changed
}

// comesToApply reports whether a manager that updates is one that applies from this request on.
func (o *owners) comesToApply(who manager) bool {
	if who.operation == operationApply || slices.Contains(clientSideAppliers, who.name) || !o.applies(who) {
		return false
	}
	if o.upgradedBefore == nil {
		o.upgradedBefore = o.was.upgraded()
	}
	return !o.upgradedBefore[who.name]
}

// chargeUpgraded charges all that those own who come to apply, whether their entries changed or not. What changes its value is charged
// already.
func (o *owners) chargeUpgraded() {
	for _, who := range o.is.order {
		if !o.comesToApply(who) {
			continue
		}
		o.applied = true
		here, otherwise := o.split(o.is, who)
		if !otherwise.Empty() {
			o.chargeAll()
		}
		o.each(here, func(p fieldpath.Path) bool { return o.d.resolve(p).changed })
		o.chargeUnheld(here)
	}
}
