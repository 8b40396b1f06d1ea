package corpus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// TestC1_ExplainHasTheChainsOfDecisions compares what explain says of a field with what every scenario is decided by: the chain of each
// changed field, and its barrier. Changes of owners, and those that a version hides, have chains of their own.
func TestC1_ExplainHasTheChainsOfDecisions(t *testing.T) {
	files, err := SchemaFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	_, compiled, _, err := sources.TracedFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	compared, barred := 0, 0
	for _, s := range scenarios(t) {
		for _, step := range s.Reviewed() {
			req, err := s.Request(step)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requirements(compiled, req) {
				ref, gvk := refOf(req)
				k, err := fieldtree.Of(compiled, gvk, ref)
				if err != nil {
					t.Fatal(err)
				}
				p, err := k.Find(strings.TrimPrefix(r.Path.String(), "."))
				if err != nil {
					continue // A field that the schema does not know, or that the subresource does not write.
				}
				compared++
				if r.Barrier > 0 {
					barred++
				}
				chains := p.Chains()
				if r.Operation == change.Created {
					chains = [][]fieldtree.Link{k.Existence()}
				}
				if !slices.ContainsFunc(chains, func(chain []fieldtree.Link) bool { return isOf(chain, &r) }) {
					t.Errorf("%s, step %q: %s has the chain %v with barrier %d; explain says %s", s.Name, step.Name, r.Path, r.Chain, r.Barrier, chainText(chains))
				}
			}
		}
	}
	t.Logf("%d changes were compared, %d of them behind a barrier", compared, barred)
	if compared < 200 || barred < 5 {
		t.Errorf("%d changes, %d behind a barrier: this test proves little", compared, barred)
	}
}

// requirements returns the changes of a request, without those whose chain does not depend on the field alone.
func requirements(compiled *schema.Schema, req *admissionv1.AdmissionRequest) []fieldperm.Requirement {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return nil
	}
	ref, gvk := refOf(req)
	k, err := compiled.KindFor(gvk, ref)
	if err != nil || k.Lossy() {
		return nil
	}
	all, err := fieldperm.Diff(context.Background(), req.OldObject.Raw, req.Object.Raw, k, nil)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(r fieldperm.Requirement) bool {
		return r.Operation == change.Ownership || len(r.Chain) < 2 || k.Instead() != ""
	})
}

func refOf(req *admissionv1.AdmissionRequest) (schema.ResourceRef, runtimeschema.GroupVersionKind) {
	return schema.ResourceRef{Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource, Subresource: req.SubResource}, runtimeschema.GroupVersionKind(req.Kind)
}

// isOf reports whether a chain of explain has the verbs of a change, from general to specific, and the barrier of the change. No sets are
// compared.
func isOf(chain []fieldtree.Link, r *fieldperm.Requirement) bool {
	var words []string
	for i := range chain {
		l := &chain[i]
		bySchema := slices.DeleteFunc(slices.Clone(l.Lost), func(x fieldtree.Loss) bool { return x.Set != "" })
		isBarred := len(bySchema) > 0
		always := slices.ContainsFunc(bySchema, func(x fieldtree.Loss) bool { return len(x.When) == 0 })
		switch {
		case l.Of == nil:
			if r.Barrier >= 0 && !isBarred || r.Barrier < 0 && always {
				return false
			}
			continue
		case len(words) < r.Barrier && !isBarred, len(words) >= r.Barrier && always:
			return false
		}
		words = append(words, l.Verb)
	}
	return slices.EqualFunc(words, r.Chain, func(a string, b verbs.Verb) bool { return a == b.String() })
}

func chainText(chains [][]fieldtree.Link) string {
	var out strings.Builder
	for _, chain := range chains {
		for i := range chain {
			fmt.Fprintf(&out, " %s%v", chain[i].Verb, chain[i].Lost)
		}
		out.WriteString(" |")
	}
	return out.String()
}
