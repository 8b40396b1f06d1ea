package sources

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

func isBarred(l *Live, resource string) bool {
	for _, rule := range webhooks.Uncovered(l.Schema(), l.Documents().Uncovered, uncovered.Plurals(l.Documents().Topologies)) {
		if rule.Resources[0] == resource {
			return true
		}
	}
	return false
}

// TestC2_AGroupThatIsOnlyClaimedToBeBuiltInKeepsItsBarriers: the claim is a label of an APIService, which users may write.
func TestC2_AGroupThatIsOnlyClaimedToBeBuiltInKeepsItsBarriers(t *testing.T) {
	claimed := allowlist.Services{Claimed: map[string]string{"example.com": "v99.example.com"}}
	barred := widget("1", 1, entry(".spec.size", sizeIsUncovered))
	for name, steps := range map[string][]world{
		"a definition in force":     {{definitions: []*unstructured.Unstructured{barred}}, {definitions: []*unstructured.Unstructured{barred}, services: claimed}},
		"a definition made later":   {{services: claimed}, {definitions: []*unstructured.Unstructured{barred}, services: claimed}},
		"a barrier that came later": {{definitions: []*unstructured.Unstructured{widget("1", 1, "{}")}, services: claimed}, {definitions: []*unstructured.Unstructured{barred}, services: claimed}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			l := mustLive(t, w)
			for i := range steps {
				w.definitions, w.services = steps[i].definitions, steps[i].services
				mustRefresh(t, l)
			}
			if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.MayBar() || !isBarred(l, "widgets") {
				t.Errorf("the barrier is gone: %v", err)
			}
			faults := l.Faults()
			if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), "CustomResourceDefinition widgets.example.com:/spec/group: ") || !strings.Contains(faults[0].Error(), `delete APIService "v99.example.com"`) {
				t.Errorf("faults %v", faults)
			}
			w.services = allowlist.Services{}
			mustRefresh(t, l)
			if _, err := l.Schema().Kind(kindWidget()); err != nil || len(l.Faults()) > 0 {
				t.Errorf("the label is gone: %v, faults %v", err, l.Faults())
			}
		})
	}
}

// TestC2_AnotherServerDoesNotChangeKindsOfThisOne, in any version: it could make kinds of this API server lossy.
func TestC2_AnotherServerDoesNotChangeKindsOfThisOne(t *testing.T) {
	deployment := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	foreign := func(version string) string {
		return strings.ReplaceAll(thingDocument, `"version":"v1"`, `"version":"`+version+`"`)
	}
	for version, group := range map[string]string{"v99": "apps", "v98": "example.com", "v1": "apps"} {
		t.Run(version+"."+group, func(t *testing.T) {
			w := &world{definitions: []*unstructured.Unstructured{widget("1", 1, entry(".spec.size", sizeIsUncovered))}}
			w.paths = map[string]openapi.GroupVersionWithContext{"apis/" + group + "/" + version: document{world: w, url: "/x?hash=1", raw: foreign(version)}}
			w.services.Aggregated = []runtimeschema.GroupVersion{{Group: group, Version: version}}
			l := mustLive(t, w)
			mustRefresh(t, l)
			if w.fetched != 1 {
				t.Fatalf("%d documents were read", w.fetched)
			}
			for _, gvk := range []runtimeschema.GroupVersionKind{kindWidget(), deployment} {
				k, err := l.Schema().Kind(gvk)
				if err != nil {
					t.Errorf("%s: %v", gvk, err)
					continue
				}
				if k.Lossy() || k.Instead() != "" || k.Root.Map().IsField("a") {
					t.Errorf("%s: lossy %t, hides %t", gvk, k.Lossy(), k.Instead() != "")
				}
			}
			if _, err := l.Schema().Kind(deployment.GroupKind().WithVersion("v99")); err == nil {
				t.Error("a version of another server is known")
			}
		})
	}
}

// TestOpenAPI_IsReadOfTheVersionsOfOtherServersAlone: in a group of both a definition and another server, the published versions of
// the definition have no barriers.
func TestOpenAPI_IsReadOfTheVersionsOfOtherServersAlone(t *testing.T) {
	w := &world{services: allowlist.Services{Aggregated: []runtimeschema.GroupVersion{{Group: "example.com", Version: "v2"}}}}
	w.paths = map[string]openapi.GroupVersionWithContext{"apis/example.com/v1": document{world: w, url: "/x?hash=1", raw: thingDocument}}
	l := mustLive(t, w)
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err == nil || w.fetched != 0 {
		t.Errorf("a kind without its definition, so without its barriers: %v", err)
	}
}

// TestOpenAPI_AVersionThatChangesServersIsReadAgain: a group that moves to another server is read again, although its document is the
// same.
func TestOpenAPI_AVersionThatChangesServersIsReadAgain(t *testing.T) {
	w := &world{}
	w.paths = map[string]openapi.GroupVersionWithContext{
		"apis/apps/v1":        document{world: w, url: "/x?hash=1", raw: strings.ReplaceAll(thingDocument, `"Widget"`, `"Other"`)},
		"apis/example.com/v1": document{world: w, url: "/y?hash=1", raw: thingDocument},
	}
	foreign := []runtimeschema.GroupVersion{{Group: "apps", Version: "v1"}, {Group: "example.com", Version: "v1"}}
	l := mustLive(t, w)
	for _, aggregated := range [][]runtimeschema.GroupVersion{nil, foreign, nil} {
		w.services.Aggregated = aggregated
		mustRefresh(t, l)
		k, err := l.Schema().Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		if err != nil || k.Root.Map().IsField("a") != (aggregated == nil) {
			t.Errorf("aggregated %v: %v; the published Deployment is in force: %t", aggregated, err, k != nil && k.Root.Map().IsField("a"))
		}
		if _, err := l.Schema().Kind(kindWidget()); (err == nil) != (aggregated != nil) {
			t.Errorf("aggregated %v: the other server's kind: %v", aggregated, err)
		}
	}
}
