package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema"
)

// world is the content of an API server.
type world struct {
	paths       map[string]openapi.GroupVersionWithContext
	pathsErr    error
	services    allowlist.Services
	definitions []*unstructured.Unstructured
	fetched     int
	// asked is called whenever the index of documents is asked for, unless it is nil.
	asked func()
}

func (w *world) PathsWithContext(context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	if w.asked != nil {
		w.asked()
	}
	return w.paths, w.pathsErr
}

// defined returns the definitions as an informer of them does.
func (w *world) defined() ([]*Definition, error) { return defined(w.definitions) }

func defined(definitions []*unstructured.Unstructured) ([]*Definition, error) {
	out := make([]*unstructured.Unstructured, 0, len(definitions))
	for _, d := range definitions {
		out = append(out, d.DeepCopy())
	}
	return NewDefinitions(out)
}

type document struct {
	world    *world
	url, raw string
	err      error
	hangs    bool
}

// fetching guards the counts in documents, because several are fetched at the same time.
var fetching sync.Mutex

func (d document) SchemaWithContext(ctx context.Context, _ string) ([]byte, error) {
	fetching.Lock()
	d.world.fetched++
	fetching.Unlock()
	if d.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []byte(d.raw), d.err
}
func (d document) ServerRelativeURL() string { return d.url }

func (w *world) live(t *testing.T, files ...string) (*Live, error) {
	t.Helper()
	return New(t.Context(), Config{
		Files: files, OpenAPI: w,
		Services:    func(context.Context) (allowlist.Services, error) { return w.services, nil },
		Definitions: w.defined,
	})
}

func mustLive(t *testing.T, w *world, files ...string) *Live {
	t.Helper()
	l, err := w.live(t, files...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustRefresh(t *testing.T, l *Live) {
	t.Helper()
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// widget returns a definition with the property size, protected by the entries in verbs.
func widget(uid string, generation int64, verbs string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	definition := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"widgets.example.com","uid":%q,"generation":%d,"annotations":{%q:%q}},
		"spec":{"group":"example.com","names":{"kind":"Widget","plural":"widgets"},"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]},
		"status":{"acceptedNames":{"kind":"Widget","plural":"widgets"},"storedVersions":["v1"],"conditions":[{"type":"Established","status":"True"}]}}`, uid, generation, v1alpha1.PermissionVerbsAnnotation, verbs)
	if err := json.Unmarshal([]byte(definition), &u.Object); err != nil {
		panic(err)
	}
	return u
}

func entry(path, rest string) string { return fmt.Sprintf(`{"v1":[{"path":%q,%s}]}`, path, rest) }

const sizeIsUncovered = `"verb":"example.com/size","excluded":true`

func kindWidget() runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
}

// TestReadiness_NothingIsInForceBeforeTheServerIsRead, not even built-in kinds: a set in the server may protect them.
func TestReadiness_NothingIsInForceBeforeTheServerIsRead(t *testing.T) {
	w := &world{pathsErr: errors.New("connection refused"), definitions: []*unstructured.Unstructured{widget("1", 1, "{}")}}
	l := mustLive(t, w)
	if err := l.Refresh(t.Context()); err == nil {
		t.Error("no error though the server is down")
	}
	if l.Ready() == nil || l.Documents() != nil || l.Schema() != nil {
		t.Error("something is in force without a server")
	}
	w.pathsErr = nil
	mustRefresh(t, l)
	if err := l.Ready(); err != nil || l.Documents() == nil {
		t.Error(err)
	}
	if _, err := l.Schema().Kind(kindWidget()); err != nil {
		t.Error(err)
	}
}

func TestReadiness_WaitsForTheListOfDefinitions(t *testing.T) {
	synced := false
	l, err := New(t.Context(), Config{OpenAPI: &world{}, Services: func(context.Context) (allowlist.Services, error) { return allowlist.Services{}, nil },
		Definitions: func() ([]*Definition, error) { return nil, nil }, Synced: func() bool { return synced }})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Refresh(t.Context()); err == nil || l.Ready() == nil {
		t.Errorf("refresh %v, ready %v", err, l.Ready())
	}
	synced = true
	mustRefresh(t, l)
}

func TestLastGood_StaysWhenADefinitionTurnsFaulty(t *testing.T) {
	for name, faulty := range map[string]string{
		"unknown path": entry(".spec.nope", sizeIsUncovered),
		"no JSON":      `{`,
		"bad verb":     entry(".spec.size", `"verb":"Size"`),
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{definitions: []*unstructured.Unstructured{widget("1", 1, entry(".spec.size", sizeIsUncovered))}}
			l := mustLive(t, w)
			mustRefresh(t, l)
			if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.MayBar() || len(l.Faults()) != 0 {
				t.Fatalf("%v, faults %v", err, l.Faults())
			}
			w.definitions = []*unstructured.Unstructured{widget("1", 1, faulty)}
			mustRefresh(t, l)
			if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.MayBar() {
				t.Errorf("the barrier is gone: %v", err)
			}
			if faults := l.Faults(); len(faults) == 0 || !strings.HasPrefix(faults[0].Error(), "CustomResourceDefinition widgets.example.com:/metadata/annotations/") {
				t.Errorf("faults %v", faults)
			}
			w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
			mustRefresh(t, l)
			if k, err := l.Schema().Kind(kindWidget()); err != nil || k.MayBar() || len(l.Faults()) != 0 {
				t.Errorf("not repaired: %v, faults %v", err, l.Faults())
			}
		})
	}
}

func TestLastGood_DefinitionThatNeverCompiledIsRefused(t *testing.T) {
	w := &world{definitions: []*unstructured.Unstructured{widget("1", 1, entry(".spec.nope", sizeIsUncovered))}}
	l := mustLive(t, w)
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err == nil || errors.Is(err, schema.ErrUnknownKind) || !strings.Contains(err.Error(), ".spec.nope") {
		t.Errorf("got %v", err)
	}
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{")}
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err == nil {
		t.Error("a definition that is no JSON is let through without its barriers")
	}
	// A definition that is created again with the same name has no earlier form.
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	mustRefresh(t, l)
	w.definitions = []*unstructured.Unstructured{widget("2", 1, entry(".spec.nope", sizeIsUncovered))}
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err == nil {
		t.Error("the documents of a deleted definition are in force")
	}
}

func TestDefinitions_UnservedOrDeletedAreIgnored(t *testing.T) {
	contender := widget("1", 1, "{}")
	contender.Object["status"].(map[string]any)["acceptedNames"] = map[string]any{"kind": ""}
	w := &world{definitions: []*unstructured.Unstructured{contender}}
	l := mustLive(t, w)
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); !errors.Is(err, schema.ErrUnknownKind) {
		t.Errorf("a definition that is not served: %v", err)
	}
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err != nil {
		t.Errorf("once it is served: %v", err)
	}
	w.definitions = nil
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); !errors.Is(err, schema.ErrUnknownKind) {
		t.Errorf("deleted: %v", err)
	}
}

// TestC2_NoStatusTakesADefinitionAway: users may write the status, and kube-apiserver continues to serve.
func TestC2_NoStatusTakesADefinitionAway(t *testing.T) {
	barred := entry(".spec.size", sizeIsUncovered)
	for name, status := range writtenStatuses() {
		t.Run(name, func(t *testing.T) {
			w := &world{definitions: []*unstructured.Unstructured{widget("1", 1, barred)}}
			l := mustLive(t, w)
			mustRefresh(t, l)
			written := widget("1", 1, barred)
			written.Object["status"] = status
			w.definitions = []*unstructured.Unstructured{written}
			mustRefresh(t, l)
			if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.MayBar() || !isBarred(l, "widgets") {
				t.Errorf("the kind or its barrier is gone: %v", err)
			}
			// A definition that was created again, or that names another kind, was not served before.
			for what, change := range map[string]func(*unstructured.Unstructured) error{
				"made anew": func(u *unstructured.Unstructured) error { u.SetUID("2"); return nil },
				"renamed": func(u *unstructured.Unstructured) error {
					return unstructured.SetNestedField(u.Object, "Gadget", "spec", "names", "kind")
				},
			} {
				other := written.DeepCopy()
				if err := change(other); err != nil {
					t.Fatal(err)
				}
				served := name == "not established" && what == "made anew"
				w.definitions = []*unstructured.Unstructured{other}
				mustRefresh(t, l)
				if _, err := l.Schema().Kind(kindWidget()); (err == nil) != served {
					t.Errorf("%s: %v", what, err)
				}
				gadget := runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
				if _, err := l.Schema().Kind(gadget); err == nil {
					t.Errorf("%s: a kind that the API server never accepted is known", what)
				}
				w.definitions = []*unstructured.Unstructured{widget("1", 1, barred)}
				mustRefresh(t, l)
			}
		})
	}
}

const thingDocument = `{"openapi":"3.0.0","info":{"title":"x","version":"1"},"paths":{},"components":{"schemas":{
	"Thing":{"type":"object","properties":{"metadata":{"type":"object"},"a":{"type":"string"}},"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"},{"group":"apps","version":"v1","kind":"Deployment"}]}}}}`

func TestOpenAPI_IsNotUsedForCustomResources(t *testing.T) {
	w := &world{}
	w.paths = map[string]openapi.GroupVersionWithContext{"apis/example.com/v1": document{world: w, url: "/x?hash=1", raw: thingDocument}, "version": document{world: w}}
	l := mustLive(t, w)
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); !errors.Is(err, schema.ErrUnknownKind) || w.fetched != 0 {
		t.Errorf("a kind without its definition, so without its barriers: %v", err)
	}
	w.services.Aggregated = []runtimeschema.GroupVersion{{Group: "example.com", Version: "v1"}}
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err != nil || w.fetched != 1 {
		t.Errorf("aggregated: %v, fetched %d", err, w.fetched)
	}
	if k, err := l.Schema().Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); err != nil || k.Root.Map().IsField("a") {
		t.Errorf("another server has redefined a kind of this one: %v", err)
	}
	before := l.Schema()
	mustRefresh(t, l)
	if w.fetched != 1 || l.Schema() != before {
		t.Error("nothing changed, and yet it was fetched or compiled anew")
	}
	w.paths["apis/example.com/v1"] = document{world: w, url: "/x?hash=2", err: errors.New("503")}
	mustRefresh(t, l)
	if _, err := l.Schema().Kind(kindWidget()); err != nil {
		t.Errorf("a fetch failed and the kind is gone: %v", err)
	}
}

func TestLastGood_DefinitionsCompileThoughOpenAPIFails(t *testing.T) {
	w := &world{}
	l := mustLive(t, w)
	mustRefresh(t, l)
	w.pathsErr = errors.New("503")
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	if err := l.Refresh(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	if _, err := l.Schema().Kind(kindWidget()); err != nil {
		t.Error(err)
	}
}

func TestStart_FaultyFileIsFatalAndNamed(t *testing.T) {
	permissions := func(group, kind, entry string) string {
		return fmt.Sprintf("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec:\n  group: %q\n  kind: %s\n  permissions:\n  - %s\n", group, kind, entry)
	}
	for name, c := range map[string]struct{ content, want string }{
		"bad verb":                     {permissions("apps", "Deployment", "{path: .spec.replicas, verb: Scale}"), `"Scale"`},
		"unknown path":                 {permissions("apps", "Deployment", "{path: .spec.nope, verb: example.com/nope}"), ".spec.nope"},
		"parameter that nothing emits": {permissions("apps", "Deployment", "{path: .spec.replicas, verb: example.com/x, parameterizedBy: nothing}"), `"nothing"`},
		"CEL that does not compile":    {permissions("apps", "Deployment", "{path: .spec.replicas, verb: example.com/x, excludedWhen: 'self =='}"), "/spec/permissions/0"},
		"twice the same path":          {permissions("apps", "Deployment", "{path: .spec.replicas, verb: example.com/x}\n  - {path: .spec.replicas, verb: example.com/y}"), ".spec.replicas"},
		"no YAML":                      {"a: [", "a.yaml"},
		"another kind":                 {"apiVersion: v1\nkind: ConfigMap\n", "ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.yaml")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := (&world{}).live(t, dir)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q and %q in it", err, path, c.want)
			}
		})
	}
	if _, err := (&world{}).live(t, filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("missing file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "later.yaml")
	if err := os.WriteFile(path, []byte(permissions("example.com", "Widget", "{path: .spec.size, verb: example.com/size, excluded: true}")), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	l := mustLive(t, w, path)
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	mustRefresh(t, l)
	if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.MayBar() {
		t.Errorf("a file about a kind that came later does not bear on it: %v", err)
	}
}

func TestRun_RefreshesOnSignal(t *testing.T) {
	compiled := make(chan int, 8)
	w := &world{}
	l, err := New(t.Context(), Config{OpenAPI: w, Services: func(context.Context) (allowlist.Services, error) { return allowlist.Services{}, nil },
		Definitions: w.defined,
		Compiled:    func(kinds, _, _ int, _ time.Time, _ time.Duration) { compiled <- kinds }})
	if err != nil {
		t.Fatal(err)
	}
	<-compiled
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	before := <-compiled
	w.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	l.Changed()
	l.Changed()
	if after := <-compiled; after != before+1 {
		t.Errorf("%d kinds, then %d", before, after)
	}
	cancel()
	<-done
}

// TestA1_StoredVersionsAreFollowed: they change without a new generation, and they determine which fields a version loses.
func TestA1_StoredVersionsAreFollowed(t *testing.T) {
	definition := widget("1", 1, "{}")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	older, _ := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	older["name"], older["storage"] = "v1beta1", false
	properties, _, _ := unstructured.NestedMap(older, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	properties["color"] = map[string]any{"type": "string"}
	if err := unstructured.SetNestedMap(older, properties, "schema", "openAPIV3Schema", "properties", "spec", "properties"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(definition.Object, append(versions, any(older)), "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	w := &world{definitions: []*unstructured.Unstructured{definition}}
	l := mustLive(t, w)
	for _, c := range []struct {
		stored []any
		lossy  bool
	}{{[]any{"v1"}, false}, {[]any{"v1beta1", "v1"}, true}, {[]any{"v1"}, false}} {
		next := definition.DeepCopy()
		if err := unstructured.SetNestedSlice(next.Object, c.stored, "status", "storedVersions"); err != nil {
			t.Fatal(err)
		}
		w.definitions = []*unstructured.Unstructured{next}
		mustRefresh(t, l)
		k, err := l.Schema().Kind(kindWidget())
		if err != nil || k.Lossy() != c.lossy {
			t.Errorf("stored in %v: %v, lossy %v, want %v", c.stored, err, k.Lossy(), c.lossy)
		}
	}
}
