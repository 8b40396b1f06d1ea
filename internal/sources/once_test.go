package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

func (c *cluster) once(t *testing.T, files ...string) (*Snapshot, error) {
	t.Helper()
	return once(t.Context(), Config{
		Files: files, OpenAPI: &c.world,
		Services:    func(context.Context) (allowlist.Services, error) { return c.services, nil },
		Definitions: c.defined,
		Objects:     func(context.Context) ([]*unstructured.Unstructured, error) { return c.objects, c.err },
	})
}

func mustOnce(t *testing.T, c *cluster, files ...string) *Snapshot {
	t.Helper()
	s, err := c.once(t, files...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outline returns a text with everything that affects decisions, kind by kind.
func outline(s *schema.Schema) []string {
	var kinds []string
	for _, k := range s.Kinds() {
		var b strings.Builder
		fmt.Fprintf(&b, "%s lossy=%t\n", k, k.Lossy())
		k.Guarded(20_000, func(p fieldpath.Pattern, n *schema.Node) {
			for _, guard := range n.Permissions() {
				fmt.Fprintf(&b, " %s %s bars=%t\n", p, guard.Describe(), guard.MayBar())
			}
		})
		kinds = append(kinds, b.String())
	}
	slices.Sort(kinds)
	return kinds
}

// TestOnce_EqualsTheStartOfLive: definitions, other servers, PermissionSchemas and sets, valid and faulty.
func TestOnce_EqualsTheStartOfLive(t *testing.T) {
	barred := widget("1", 1, entry(".spec.size", sizeIsUncovered))
	for name, c := range map[string]*cluster{
		"nothing":                 {},
		"a definition":            {world: world{definitions: []*unstructured.Unstructured{barred}}},
		"a faulty definition":     {world: world{definitions: []*unstructured.Unstructured{widget("1", 1, "{")}}},
		"a group that is claimed": {world: world{definitions: []*unstructured.Unstructured{barred}, services: allowlist.Services{Claimed: map[string]string{"example.com": "v99.example.com"}}}},
		"a group of its own":      {world: world{definitions: []*unstructured.Unstructured{barred}, services: allowlist.Services{Own: []string{"example.com"}}}},
		"objects":                 {objects: []*unstructured.Unstructured{deployments("d", 1, pausedIsBarred), set("1", 1, `{uncoveredPermissions: ["granular:scale"]}`)}},
		"a faulty object":         {objects: []*unstructured.Unstructured{deployments("d", 1, noSuchPath)}},
		"two that conflict":       {objects: []*unstructured.Unstructured{namespaces(1, takesLabels), setOnNamespaces(1, "granular:label(pod-security.kubernetes.io)")}},
	} {
		t.Run(name, func(t *testing.T) {
			l := c.live(t)
			mustRefresh(t, l)
			s := mustOnce(t, c)
			got, want := outline(s.Schema), outline(l.Schema())
			for i := range want {
				if len(got) != len(want) || got[i] != want[i] {
					t.Fatalf("%d kinds, want %d; got\n%s\nwant\n%s", len(got), len(want), got[min(i, len(got)-1)], want[i])
				}
			}
			if got, want := fmt.Sprint(s.Warnings), fmt.Sprint(l.Faults()); got != want {
				t.Errorf("warnings %s, want %s", got, want)
			}
			for kind := range l.Unknown() {
				if err := s.Kind(kind.WithVersion("v1")); err == nil || errors.Is(err, schema.ErrUnknownKind) || !strings.Contains(err.Error(), "correct that document") {
					t.Errorf("%s: %v", kind, err)
				}
			}
		})
	}
}

// TestOnce_ASetThatIsFaultyLeavesNothingDecided: fieldperm may have an earlier generation of the set in force.
func TestOnce_ASetThatIsFaultyLeavesNothingDecided(t *testing.T) {
	_, err := (&cluster{objects: []*unstructured.Unstructured{set("1", 2, `{uncoveredPermissions: ["granular:Scale"]}`)}}).once(t)
	if err == nil || !strings.Contains(err.Error(), "UncoveredPermissionSet set: is faulty") || !strings.Contains(err.Error(), "correct it") {
		t.Errorf("got %v", err)
	}
}

func TestOnce_UnreadableSourcesAreNamed(t *testing.T) {
	forbidden := apierrors.NewForbidden(runtimeschema.GroupResource{}, "", errors.New("no"))
	c := &cluster{err: errors.New("permissionschemas.fieldperm.dev: down"), world: world{pathsErr: forbidden}}
	if _, err := c.once(t); err == nil || !strings.Contains(err.Error(), "permissionschemas.fieldperm.dev: down") || !strings.HasPrefix(err.Error(), "OpenAPI v3 of the API server: ") {
		t.Errorf("got %v", err)
	}
	c = &cluster{}
	c.paths = map[string]openapi.GroupVersionWithContext{"apis/apps/v1": document{world: &c.world, err: forbidden}}
	if _, err := c.once(t); err == nil || !strings.HasPrefix(err.Error(), "OpenAPI v3 of apis/apps/v1: cannot be read: ") || !strings.HasSuffix(err.Error(), ": allow get on the path /openapi/v3/*") {
		t.Errorf("a document of the API server: %v", err)
	}
}

// TestOnce_AnAPIThatCannotBeReadLeavesItsGroupUndecided, including the versions that could be read, but no other group.
func TestOnce_AnAPIThatCannotBeReadLeavesItsGroupUndecided(t *testing.T) {
	c := &cluster{world: world{services: aggregated("sea.example.com")}}
	c.services.Aggregated = append(c.services.Aggregated, runtimeschema.GroupVersion{Group: "sea.example.com", Version: "v2"})
	c.paths = map[string]openapi.GroupVersionWithContext{
		"apis/sea.example.com/v1": document{world: &c.world, raw: fischers(t)},
		"apis/sea.example.com/v2": document{world: &c.world, err: errors.New("503")},
	}
	s := mustOnce(t, c)
	fischer := runtimeschema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Fischer"}
	if err := s.Kind(fischer); err == nil || !strings.Contains(err.Error(), "OpenAPI v3 of apis/sea.example.com/v2: cannot be read: 503: see that it is served") {
		t.Errorf("got %v", err)
	}
	if len(s.Warnings) != 1 || s.Kind(kindDeployment()) != nil {
		t.Errorf("warnings %v", s.Warnings)
	}
	c.paths["apis/sea.example.com/v2"] = document{world: &c.world, raw: `{"components":{}}`}
	if err := mustOnce(t, c).Kind(fischer); err != nil {
		t.Error(err)
	}
}

// TestOnce_FilesReplaceObjectsOfTheServer, by kind and name. Everything else in the server stays in force.
func TestOnce_FilesReplaceObjectsOfTheServer(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, objects ...*unstructured.Unstructured) string {
		var text []byte
		for _, u := range objects {
			u = u.DeepCopy()
			unstructured.RemoveNestedField(u.Object, "metadata", "generation")
			raw, err := yaml.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			text = append(append(text, "---\n"...), raw...)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c := &cluster{
		world:   world{definitions: []*unstructured.Unstructured{widget("1", 1, entry(".spec.size", sizeIsUncovered))}},
		objects: []*unstructured.Unstructured{deployments("d", 1, pausedIsBarred), set("1", 1, `{uncoveredPermissions: ["granular:scale"]}`)},
	}
	file := write("same.yaml", widget("1", 1, "{}"), deployments("d", 1, "{path: .spec.paused, verb: example.com/pause}"), set("1", 1, `{uncoveredPermissions: ["granular:image"]}`))
	s := mustOnce(t, c, file)
	l := &Live{}
	l.current.Store(&state{schema: s.Schema})
	if k, err := s.Schema.Kind(kindWidget()); err != nil || k.MayBar() {
		t.Errorf("the definition: %v", err)
	}
	if barred(t, l) != "" || uncovers(t, l, "granular:scale") || !uncovers(t, l, "granular:image") {
		t.Errorf("barred %q, scale %t, image %t", barred(t, l), uncovers(t, l, "granular:scale"), uncovers(t, l, "granular:image"))
	}
	renamed := deployments("d", 1, "{path: .spec.paused, verb: example.com/pause}")
	renamed.SetName("another")
	l.current.Store(&state{schema: mustOnce(t, c, write("other.yaml", renamed)).Schema})
	// No PermissionSchema lifts the barrier of another one.
	if barred(t, l) == "" || !uncovers(t, l, "granular:scale") {
		t.Error("a file of another name lifts a barrier, or an entry of another object is missing")
	}
	// Another server does not define the kinds of a file either.
	other := &cluster{}
	other.paths = map[string]openapi.GroupVersionWithContext{"apis/example.com/v98": document{world: &other.world, raw: strings.ReplaceAll(thingDocument, `"version":"v1"`, `"version":"v98"`)}}
	other.services.Aggregated = []runtimeschema.GroupVersion{{Group: "example.com", Version: "v98"}}
	if k, err := mustOnce(t, other, write("widget.yaml", widget("1", 1, "{}"))).Schema.Kind(kindWidget()); err != nil || k.Lossy() || k.Instead() != "" {
		t.Errorf("another server speaks for the kind of a file: %v", err)
	}
	faulty := write("faulty.yaml", widgets(1, "{path: .spec.nope, verb: example.com/nope}"))
	if _, err := c.once(t, faulty); err == nil || !strings.HasPrefix(err.Error(), faulty) {
		t.Errorf("a faulty file: %v", err)
	}
	if s := mustOnce(t, &cluster{}, faulty); len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0].Error(), faulty) {
		t.Errorf("a file about an unknown kind: %v", s.Warnings)
	}
}

// TestOnce_ListsInstalledDefinitions, whatever the status of a definition says: users may write the status.
func TestOnce_ListsInstalledDefinitions(t *testing.T) {
	hidden := []*unstructured.Unstructured{own("permissionschemas", "PermissionSchema", false), own("uncoveredpermissionsets", "UncoveredPermissionSet", false)}
	p := newPlane(deployments("1", 1, pausedIsBarred))
	for name, c := range map[string]struct {
		definitions []*unstructured.Unstructured
		want        int
	}{"installed": {installed(), 1}, "a status that says nothing": {hidden, 1}, "not installed": {nil, 0}} {
		got, err := listOwn(t.Context(), p, packed(t, c.definitions))
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for reason, c := range map[string]struct {
		err  error
		want string
	}{
		"forbidden": {apierrors.NewForbidden(runtimeschema.GroupResource{}, "", errors.New("no")), "permissionschemas.fieldperm.dev: cannot be read: "},
		"not found": {apierrors.NewNotFound(runtimeschema.GroupResource{}, ""), "see that it is served"},
	} {
		p := newPlane()
		p.PrependReactor("list", "permissionschemas", fails(c.err))
		if _, err := listOwn(t.Context(), p, packed(t, installed())); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "list on permissionschemas.fieldperm.dev") {
			t.Errorf("%s: %v", reason, err)
		}
		if _, err := listOwn(t.Context(), p, packed(t, hidden)); (err == nil) != (reason == "not found") {
			t.Errorf("%s, of a kind that never was served: %v", reason, err)
		}
	}
}

func packed(t *testing.T, definitions []*unstructured.Unstructured) []*Definition {
	t.Helper()
	out, err := defined(definitions)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func fails(err error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
}
