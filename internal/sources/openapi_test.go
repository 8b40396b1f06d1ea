package sources

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

func fischers(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../schema/load/testdata/fischers.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func aggregated(groups ...string) allowlist.Services {
	out := allowlist.Services{}
	for _, group := range groups {
		out.Aggregated = append(out.Aggregated, runtimeschema.GroupVersion{Group: group, Version: "v1"})
	}
	return out
}

// TestOpenAPI_OneBrokenAPIDoesNotFailTheRest: and no API defines kinds of another, or kinds of definitions.
func TestOpenAPI_OneBrokenAPIDoesNotFailTheRest(t *testing.T) {
	good := fischers(t)
	w := &world{services: aggregated("sea.example.com", "down.example.com", "odd.example.com", "bad.example.com", "thief.example.com")}
	w.paths = map[string]openapi.GroupVersionWithContext{
		"apis/sea.example.com/v1":  document{world: w, raw: good},
		"apis/down.example.com/v1": document{world: w, err: errors.New("503")},
		"apis/odd.example.com/v1":  document{world: w, raw: "<html>"},
		"apis/bad.example.com/v1":  document{world: w, raw: strings.Replace(good, "x-kubernetes-permission-verb", "x-kubernetes-permission-vreb", 1)},
		// It claims the kind of another group.
		"apis/thief.example.com/v1":  document{world: w, raw: good},
		"apis/custom.example.com/v1": document{world: w, raw: strings.ReplaceAll(good, "sea.example.com", "custom.example.com")},
		"apis/sea.example.com":       document{world: w, raw: good},
		"version":                    document{world: w, raw: good},
	}
	p := published{client: w, known: map[string]groupVersion{}}
	if !p.read(t.Context(), w.paths, &w.services) {
		t.Error("nothing was read")
	}
	missing := p.missing(&w.services)
	for group, want := range map[string]bool{"sea.example.com": false, "down.example.com": true, "odd.example.com": true, "bad.example.com": true, "custom.example.com": false} {
		if missing[group] != want {
			t.Errorf("%s: missing %t, want %t", group, missing[group], want)
		}
	}
	if hiding := p.hiding(map[runtimeschema.GroupKind]bool{{Group: "sea.example.com", Kind: "Fischer"}: true}); len(hiding) != 1 || !hiding["sea.example.com"] {
		t.Errorf("a kind of another server is left out of %v", hiding)
	}
	kinds := map[string]bool{}
	for _, topology := range p.topologies(nil, nil) {
		for gvk := range topology.Kinds {
			kinds[gvk.GroupVersion().String()+" of "+topology.Source] = true
		}
	}
	if len(kinds) != 1 || !kinds["sea.example.com/v1 of openapi/v3/apis/sea.example.com/v1"] {
		t.Errorf("kinds of %v", kinds)
	}
	if len(p.unread) != 3 {
		t.Errorf("unread are %v", p.unread)
	}
	for path, want := range map[string]string{
		"apis/down.example.com/v1": "503", "apis/odd.example.com/v1": "openapi/v3/apis/odd.example.com/v1:: no OpenAPI v3 document",
		"apis/bad.example.com/v1": "/components/schemas/com.example.sea.v1.FischerSpec/properties/catch/x-kubernetes-permission-vreb: ",
	} {
		if one := p.unread[path]; one.why == nil || !strings.Contains(one.why.Error(), want) || !one.foreign {
			t.Errorf("%s: %v", path, one)
		}
	}
}

// TestOpenAPI_AHangingAPICostsTenSeconds: several APIs that hang time out in parallel, and the others are read.
func TestOpenAPI_AHangingAPICostsTenSeconds(t *testing.T) {
	good := fischers(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{services: aggregated("sea.example.com")}
		w.paths = map[string]openapi.GroupVersionWithContext{"apis/sea.example.com/v1": document{world: w, raw: good}}
		for i := range 8 {
			group := fmt.Sprintf("hung%d.example.com", i)
			w.services.Aggregated = append(w.services.Aggregated, runtimeschema.GroupVersion{Group: group, Version: "v1"})
			w.paths["apis/"+group+"/v1"] = document{world: w, hangs: true}
		}
		p := published{client: w, known: map[string]groupVersion{}}
		started := time.Now()
		p.read(t.Context(), w.paths, &w.services)
		if took := time.Since(started); took != 20*time.Second {
			t.Errorf("8 documents that hang took %s", took)
		}
		if len(p.known) != 1 || len(p.unread) != 8 {
			t.Errorf("known are %d, unread %d", len(p.known), len(p.unread))
		}
	})
}
