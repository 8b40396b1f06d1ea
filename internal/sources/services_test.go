package sources

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

// TestA2_ADefinitionInABuiltInGroupIsIgnored: kube-apiserver marks it as established, lists and publishes its versions, but serves
// none of them.
func TestA2_ADefinitionInABuiltInGroupIsIgnored(t *testing.T) {
	foreign := func(replaced ...string) *unstructured.Unstructured {
		raw, err := json.Marshal(widget("1", 1, entry(".spec", sizeIsUncovered)).Object)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(strings.NewReplacer(replaced...).Replace(string(raw))), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	w := &world{definitions: []*unstructured.Unstructured{
		foreign("widgets.example.com", "networkpolicies.networking.k8s.io", "example.com\"", "networking.k8s.io\"", "Widget", "NetworkPolicy", "widgets\"", "networkpolicies\"", `"v1"`, `"v9"`),
		foreign("widgets.example.com", "deployments.apps", "example.com\"", "apps\"", "Widget", "Deployment", "widgets\"", "deployments\""),
	}}
	published := strings.NewReplacer("example.com", "networking.k8s.io", "Widget", "NetworkPolicy", `"v1"`, `"v1beta1"`).Replace(thingDocument)
	w.paths = map[string]openapi.GroupVersionWithContext{"apis/networking.k8s.io/v1beta1": document{world: w, url: "/x?hash=1", raw: published}}
	w.services = allowlist.Services{Own: []string{"apps", "networking.k8s.io"}, Defined: []runtimeschema.GroupVersion{{Group: "networking.k8s.io", Version: "v9"}, {Group: "networking.k8s.io", Version: "v1beta1"}}}
	l := mustLive(t, w)
	mustRefresh(t, l)
	for _, gvk := range []runtimeschema.GroupVersionKind{{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, {Group: "apps", Version: "v1", Kind: "Deployment"}} {
		k, err := l.Schema().Kind(gvk)
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		if k.Lossy() || k.Instead() != "" || k.MayBar() {
			t.Errorf("%s: lossy %t, hides %t, may bar %t", gvk, k.Lossy(), k.Instead() != "", k.MayBar())
		}
	}
	if len(l.Unknown()) > 0 || len(l.Faults()) > 0 || w.fetched > 0 {
		t.Errorf("unknown %v, faults %v, documents read %d", l.Unknown(), l.Faults(), w.fetched)
	}
	// A group that the server no longer has built in belongs to the definition. Its kind is unknown then.
	w.services = allowlist.Services{}
	mustRefresh(t, l)
	if !l.Unknown()[runtimeschema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}] {
		t.Errorf("unknown are %v", l.Unknown())
	}
}
