package compile

import (
	"runtime"
	"sync"
	"testing"
	"weak"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// apart returns documents in which A and B have separate topologies with equal content.
func apart(t *testing.T, documents ...PermissionDocument) Documents {
	t.Helper()
	docs := things(t, documents...)
	docs.Topologies = nil
	for _, name := range []string{"A", "B"} {
		parser, err := typed.NewParser(thingTypes)
		if err != nil {
			t.Fatal(err)
		}
		docs.Topologies = append(docs.Topologies, Topology{Source: "types of " + name, Types: &parser.Schema,
			Kinds: map[runtimeschema.GroupVersionKind]string{kindOf(name): "a"}})
	}
	return docs
}

func spec(t *testing.T, s *schema.Schema, kind string) *schema.Node {
	t.Helper()
	return compiledKind(t, s, kind).Root.Map().Child("spec")
}

func TestCompile_EqualTopologiesAreShared(t *testing.T) {
	same := func(source, kind string) PermissionDocument {
		return document(source, kind, RankAdministrator,
			v1alpha1.FieldPermission{Path: ".spec.labels", ParameterSource: "key"},
			v1alpha1.FieldPermission{Path: ".spec.labels[*]", Verb: "label", ParameterizedBy: "key", ParameterExpression: "self.split('.')[0]"},
			v1alpha1.FieldPermission{Path: ".spec.parts[*].size", Verb: "size", ExcludedWhen: "self == 1"})
	}
	docs := apart(t, same("a.yaml", "A"), same("b.yaml", "B"))
	s, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if spec(t, s, "A") != spec(t, s, "B") {
		t.Error("two kinds with the same fields and the same verbs have a tree each")
	}
	docs.Permissions[1].Entries[2].ExcludedWhen = "self == 2"
	if s, errs = Compile(docs); len(errs) > 0 {
		t.Fatal(errs)
	}
	a, b := spec(t, s, "A"), spec(t, s, "B")
	if a == b || a.Map().Child("parts") == b.Map().Child("parts") {
		t.Error("two kinds with other conditions have one tree")
	}
	if a.Map().Child("labels") != b.Map().Child("labels") {
		t.Error("the labels, which are the same, are two nodes")
	}
	size := func(n *schema.Node) *schema.Permission {
		return n.Map().Child("parts").List().Item().Map().Child("size").Permissions()[0]
	}
	if !size(a).Bars(t.Context(), nil, int64(1)) || size(a).Bars(t.Context(), nil, int64(2)) || !size(b).Bars(t.Context(), nil, int64(2)) {
		t.Error("a barrier has the condition of another kind")
	}
}

// TestCompile_EveryDocumentWithAFaultIsNamed: parts that kinds share must not hide a second document with the same fault.
func TestCompile_EveryDocumentWithAFaultIsNamed(t *testing.T) {
	bad := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self ="}
	documents := []PermissionDocument{document("a.yaml", "A", RankAdministrator, bad), document("b.yaml", "B", RankAdministrator, bad)}
	for name, docs := range map[string]Documents{"one topology": things(t, documents...), "two": apart(t, documents...)} {
		s, errs := Compile(docs)
		sources := map[string]bool{}
		for _, err := range errs {
			sources[err.(*schema.Error).Source] = true
		}
		if len(errs) != 2 || !sources["a.yaml"] || !sources["b.yaml"] {
			t.Errorf("%s: errors %v, want one of each document", name, errs)
		}
		if len(s.Kinds()) > 0 || len(s.Failed()) != 2 {
			t.Errorf("%s: kinds %v, failed %v", name, s.Kinds(), s.Failed())
		}
	}
}

func TestCompile_TheSchemaKeepsNoTypes(t *testing.T) {
	docs := apart(t, document("f.yaml", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self == 1"}))
	s, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	types, entries := weak.Make(docs.Topologies[0].Types), weak.Make(&docs.Permissions[0].Entries[0])
	runtime.GC()
	if types.Value() == nil || entries.Value() == nil {
		t.Fatal("the documents are gone while they are held")
	}
	runtime.KeepAlive(&docs)
	docs = Documents{}
	runtime.GC()
	if types.Value() != nil || entries.Value() != nil {
		t.Error("a schema keeps its source documents in memory")
	}
	runtime.KeepAlive(s)
}

// TestCompile_LeavesTheDocumentsAsTheyAre: other goroutines may compile the same documents at the same time.
func TestCompile_LeavesTheDocumentsAsTheyAre(t *testing.T) {
	docs := apart(t,
		document("high", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec", Verb: "high"}),
		document("low", "A", RankCatalogue, v1alpha1.FieldPermission{Path: ".spec", Verb: "low"}))
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			if s, errs := Compile(docs); len(errs) > 0 || spec(t, s, "A").Permissions()[0].Base().Name() != "high" {
				t.Errorf("errors %v", errs)
			}
		})
	}
	running.Wait()
	if docs.Permissions[0].Source != "high" {
		t.Error("the documents are in another order")
	}
}

func TestKind_LookingUpAllocatesNothing(t *testing.T) {
	docs := apart(t, document("f.yaml", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"}))
	docs.Topologies[0].Lossy = map[runtimeschema.GroupVersionKind]string{kindOf("A"): "elsewhere"}
	docs.Topologies = append(docs.Topologies, scaleTopology(t))
	s, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, ref := range []schema.ResourceRef{
		{Group: "example.com", Version: "v1", Resource: "as", Subresource: "scale"},
		{Group: "example.com", Version: "v1", Resource: "bs", Subresource: "scale"},
		{Group: "example.com", Version: "v1", Resource: "as"},
	} {
		gvk := kindOf("A")
		if ref.Subresource != "" {
			gvk = schema.ScaleKind()
		}
		var k *schema.Kind
		var err error
		if n := testing.AllocsPerRun(100, func() { k, err = s.KindFor(gvk, ref) }); n != 0 || err != nil {
			t.Errorf("%+v: %v allocations, %v", ref, n, err)
		}
		if want := ref.Resource == "as"; k.Lossy() != want {
			t.Errorf("%+v: lossy %v, want %v", ref, k.Lossy(), want)
		}
	}
}
