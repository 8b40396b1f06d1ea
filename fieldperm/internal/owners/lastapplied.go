package owners

import (
	"bytes"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Clients that change to server-side apply turn their former Update entries into an Apply entry. The next apply of an unchanged manifest
// then deletes every owned field that is not in the manifest (k8s.io/client-go/util/csaupgrade). kubectl converts the managers that own
// the annotation of client-side apply, and finds their other entries by manager name. Other clients convert fixed manager names.

// clientSideAppliers are the names of managers that kubectl, Argo CD, Flux and Helm take over.
var clientSideAppliers = []string{"kubectl-client-side-apply", "argocd-controller", "kustomize-controller", "helm", "helm-controller", beforeFirstApplyOwner}

// lastApplied is the annotation of client-side apply.
var lastApplied = smdpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation)

// inLastApplied is the end of its name. The slash before it may be escaped.
var inLastApplied = []byte(path.Base(corev1.LastAppliedConfigAnnotation))

// mayHaveApplied reports whether the entry may own the annotation. It reads the text only: few entries own the annotation, and entries
// are large to decode.
func (e *managedEntry) mayHaveApplied() bool {
	return bytes.Contains(e.raw.Raw(), inLastApplied) || bytes.Contains(e.raw.Raw(), []byte(`\u`))
}

// upgraded returns the names of the Update managers that own the annotation. kubectl will turn them into Apply managers.
func (m *managedFields) upgraded() map[string]bool {
	if m.upgradedNames == nil {
		m.upgradedNames = map[string]bool{}
		for i := range m.entries {
			if e := &m.entries[i]; e.operation == operationUpdate && e.mayHaveApplied() && e.set().Has(lastApplied) {
				m.upgradedNames[e.name] = true
			}
		}
	}
	return m.upgradedNames
}

// applies reports whether the next apply of a manager deletes the fields that the manager owns and no longer applies.
func (m *managedFields) applies(who manager) bool {
	return who.operation == operationApply || slices.Contains(clientSideAppliers, who.name) || m.upgraded()[who.name]
}

// manifest returns the manifest of client-side apply that a manager writes with the request, absent if it writes none.
func (o *owners) manifest(who manager) rawjson.Value {
	if who.operation == operationApply || !o.is.fields(who).Has(lastApplied) {
		return rawjson.Value{}
	}
	r := o.d.Resolve(lastApplied)
	if !r.Changed || !r.New.IsScalar() {
		return rawjson.Value{}
	}
	doc, err := rawjson.Scan([]byte(r.New.Text()))
	if err != nil || doc.Root().Get("apiVersion").Text() != o.version {
		return rawjson.Value{}
	}
	return doc.Root()
}

// isApplied reports whether a manifest has a value at a path. It is also true for the annotation that holds the manifest, which is not
// part of the manifest.
func (o *owners) isApplied(manifest rawjson.Value, p smdpath.Path) bool {
	if manifest.IsAbsent() {
		return false
	}
	at := o.d.Follow(o.d.Kind, manifest, p)
	return !at.End && !at.New.IsAbsent() || p.Equals(lastApplied)
}

// upgradedSince returns the managers that become appliers with the request, whether their entries changed or not.
func upgradedSince(was, is *managedFields) []manager {
	return slices.DeleteFunc(slices.Clone(is.order), func(who manager) bool { return was.applies(who) || !is.applies(who) })
}
