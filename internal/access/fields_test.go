package access

import (
	"reflect"
	"slices"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// The answer about all fields is, for each field, the answer about that field. No rule names the verb of the last policy.
func TestC1K5_AllFieldsHaveTheAnswerOfEachField(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t, schematest.UncoveredSet("web", "{uncoveredPermissions: ['granular:image(web)', 'granular:strategy'], resources: [{apiGroups: [apps], resources: [deployments]}]}"))
	root := place(t, compiled, runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, "")
	var g rbac.Grants
	grant(&g, "ann", "shop", nil, "update")
	grant(&g, "bob", "", []string{"web"}, "granular", "get", "granular:scale")
	grant(&g, "cat", "dev", nil, "granular", "get", "granular:image(web)", "granular:template")
	grant(&g, "dan", "", nil, "granular", "get", "granular:*")
	grant(&g, "eve", "", nil, "*")
	grant(&g, "pat", "", nil, "granular", "get")
	for name, policies := range map[string]Policies{
		"no policies": nil,
		"policies": given{
			"granular:scale":      {{Name: "deny", Effect: Deny, Condition: "c"}},
			"granular:suspension": {{Name: "allow", Effect: Allow, Condition: "c"}},
		},
	} {
		for _, verb := range []string{"update", "create"} {
			c, err := New(g, policies)
			must(t, err)
			w := &Write{Verb: verb, Group: "apps", Version: "v1", Resource: "deployments", AllNamespaces: true, TakesMarker: true}
			of, truncated := c.Of(w, root.Kind, "all")
			if truncated {
				t.Fatal("truncated")
			}
			compared := 0
			var visit func(*fieldtree.Place, []page.Holder)
			visit = func(p *fieldtree.Place, got []page.Holder) {
				if own, ok := of.Paths[p.Path.String()]; ok {
					got = own
				}
				compared++
				if want := each(c, w, p, of); !reflect.DeepEqual(got, want) && !(len(got) == 0 && len(want) == 0) {
					t.Fatalf("%s, %s, %s: got %+v, want %+v", name, verb, p.Path, got, want)
				}
				for _, child := range p.Node().Children {
					if below := p.Child(child); below.Repeats() == nil {
						visit(below, got)
					}
				}
			}
			visit(root, nil)
			if compared < 500 || len(of.Paths) < 5 {
				t.Errorf("%s, %s: %d fields and %d lists", name, verb, compared, len(of.Paths))
			}
		}
	}
}

// each asks about one field.
func each(c *Cluster, w *Write, p *fieldtree.Place, of *page.Access) []page.Holder {
	var out []page.Holder
	rows := c.WhoCan(w, p)
	for i := range rows {
		s := page.Subject{Kind: rows[i].Subject.Kind, Name: rows[i].Subject.String()}
		out = append(out, page.Holder{Subject: slices.Index(of.Subjects, s), How: string(rows[i].How()), Through: rows[i].Ways[0].through()})
	}
	return out
}
