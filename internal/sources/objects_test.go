package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/verbs"
)

// inCluster returns an object with a specification in YAML.
func inCluster(kind, name, uid string, generation int64, spec string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	text := fmt.Sprintf("{apiVersion: fieldperm.dev/v1alpha1, kind: %s, metadata: {name: %s, uid: %q, generation: %d}, spec: %s}", kind, name, uid, generation, spec)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	u.SetGeneration(generation)
	return u
}

func deployments(uid string, generation int64, entry string) *unstructured.Unstructured {
	return inCluster("PermissionSchema", "deployments", uid, generation, "{group: apps, kind: Deployment, permissions: ["+entry+"]}")
}

func widgets(generation int64, entry string) *unstructured.Unstructured {
	return inCluster("PermissionSchema", "widgets", "w", generation, "{group: example.com, kind: Widget, permissions: ["+entry+"]}")
}

func set(uid string, generation int64, spec string) *unstructured.Unstructured {
	return inCluster("UncoveredPermissionSet", "set", uid, generation, spec)
}

// cluster is a world with objects.
type cluster struct {
	world
	objects []*unstructured.Unstructured
	err     error
}

func (c *cluster) live(t *testing.T, files ...string) *Live {
	t.Helper()
	l, err := New(t.Context(), Config{
		Files: files, OpenAPI: &c.world,
		Services:    func(context.Context) (allowlist.Services, error) { return c.services, nil },
		Definitions: c.defined,
		Objects:     func(context.Context) ([]*unstructured.Unstructured, error) { return c.objects, c.err },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *cluster) is(t *testing.T, l *Live, objects ...*unstructured.Unstructured) {
	t.Helper()
	c.objects = objects
	mustRefresh(t, l)
}

func kindDeployment() runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
}

// barred returns the verb of .spec.paused, "" if the field has no barrier.
func barred(t *testing.T, l *Live) string {
	t.Helper()
	k, err := l.Schema().Kind(kindDeployment())
	if err != nil {
		return err.Error()
	}
	for _, p := range k.Root.Map().Child("spec").Map().Child("paused").Permissions() {
		if p.MayBar() {
			return p.Base().String()
		}
	}
	return ""
}

func uncovers(t *testing.T, l *Live, verb string) bool {
	t.Helper()
	v, err := verbs.Parse(verb)
	if err != nil {
		t.Fatal(err)
	}
	set, _ := l.Schema().Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, nil)
	return set.Has(v)
}

func stateOf(t *testing.T, l *Live, name string) ObjectState {
	t.Helper()
	for _, s := range l.Objects() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no state of %q among %v", name, l.Objects())
	return ObjectState{}
}

const (
	pausedIsBarred = "{path: .spec.paused, verb: example.com/pause, excluded: true}"
	noSuchPath     = "{path: .spec.nope, verb: example.com/pause, excluded: true}"
)

func TestLastGood_PermissionSchemaStaysWhenItTurnsFaulty(t *testing.T) {
	for name, faulty := range map[string]*unstructured.Unstructured{
		"unknown path":   deployments("1", 2, noSuchPath),
		"unknown key":    deployments("1", 2, "{path: .spec.paused, verb: example.com/pause, unless: true}"),
		"no permissions": deployments("1", 2, ""),
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			l := c.live(t)
			c.is(t, l, deployments("1", 1, pausedIsBarred))
			if got := barred(t, l); got != "granular:example.com/pause" || len(l.Faults()) > 0 {
				t.Fatalf("got %q, faults %v", got, l.Faults())
			}
			c.is(t, l, faulty)
			if got := barred(t, l); got != "granular:example.com/pause" {
				t.Errorf("the barrier is gone: %q", got)
			}
			s := stateOf(t, l, "deployments")
			if s.Generation != 2 || len(s.Faults) == 0 || !strings.HasPrefix(s.Faults[0].Error(), "PermissionSchema deployments:") || !s.Bars() || len(l.Faults()) == 0 {
				t.Errorf("state %+v, faults %v", s, l.Faults())
			}
			c.is(t, l, deployments("1", 3, "{path: .spec.paused, verb: example.com/other}"))
			s = stateOf(t, l, "deployments")
			if got := barred(t, l); got != "" || len(l.Faults()) > 0 || len(s.Faults) > 0 || s.Bars() {
				t.Errorf("not repaired: %q, %+v", got, s)
			}
			c.is(t, l)
			if len(l.Objects()) > 0 {
				t.Errorf("deleted, and still there: %v", l.Objects())
			}
		})
	}
}

func TestLastGood_PermissionSchemaThatNeverWasGoodFailsItsKind(t *testing.T) {
	for name, faulty := range map[string]string{"does not compile": noSuchPath, "does not decode": "{path: .spec.paused, unless: true}"} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			l := c.live(t)
			c.is(t, l, deployments("1", 1, faulty))
			if k, err := l.Schema().Kind(kindDeployment()); err == nil {
				t.Errorf("the kind is served: %v", k)
			}
			if _, err := l.Schema().Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}); err != nil {
				t.Errorf("another kind fails too: %v", err)
			}
			// An object that is created again with the same name has no earlier form.
			c.is(t, l, deployments("1", 2, pausedIsBarred))
			if got := barred(t, l); got != "granular:example.com/pause" {
				t.Errorf("not repaired: %q", got)
			}
			c.is(t, l, deployments("2", 1, faulty))
			if k, err := l.Schema().Kind(kindDeployment()); err == nil {
				t.Errorf("a deleted object is in force: %v", k)
			}
			c.is(t, l)
			if got := barred(t, l); got != "" || len(l.Faults()) > 0 {
				t.Errorf("deleted, and still in force: %q, faults %v", got, l.Faults())
			}
		})
	}
}

func TestLastGood_UncoveredSet(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	const faulty = `{uncoveredPermissions: ["granular:scale", "granular:Bad"], matchConditions: [{name: a, expression: "request.userInfo.username =="}]}`
	c.is(t, l, set("1", 1, faulty))
	if !uncovers(t, l, "granular:scale") {
		t.Error("of a set that never was good, a verb that compiles does not hold")
	}
	if s := stateOf(t, l, "set"); len(s.Faults) != 2 || !s.Bars() {
		t.Errorf("got %+v", s)
	}
	c.is(t, l, set("2", 1, `{uncoveredPermissions: ["granular:scale"], resources: [{apiGroups: [apps], resources: [deployments]}], narrowedByANewerVersion: true}`))
	if !uncovers(t, l, "granular:scale") || len(stateOf(t, l, "set").Faults) != 1 {
		t.Errorf("what this version does not know lets the barrier fall: %+v", stateOf(t, l, "set"))
	}
	c.is(t, l, set("3", 1, `{uncoveredPermissions: ["granular:specification"]}`))
	c.is(t, l, set("3", 2, faulty))
	if !uncovers(t, l, "granular:specification") || uncovers(t, l, "granular:scale") {
		t.Error("the last good set is not in force")
	}
	c.is(t, l)
	if uncovers(t, l, "granular:specification") {
		t.Error("deleted, and still in force")
	}
}

// A set names verbs of kinds. If a kind fails for a while, the set is not faulty because of that.
func TestLastGood_SetIsJudgedAfterTheSchemasItNames(t *testing.T) {
	c := &cluster{}
	c.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	l := c.live(t)
	// The verb has a parameter in one kind but not in the other.
	const plain = "{path: .spec.paused, verb: example.com/x}"
	withParameter := `{path: .spec.size, verb: example.com/x, parameterSource: size, parameterizedBy: size}`
	named := func(generation int64, verb string) *unstructured.Unstructured {
		return set("s", generation, `{uncoveredPermissions: ["`+verb+`"]}`)
	}
	c.is(t, l, deployments("1", 1, plain), widgets(1, withParameter), named(1, "granular:example.com/x"))
	c.is(t, l, deployments("1", 1, plain), widgets(2, noSuchPath), named(2, "granular:example.com/x(3)"))
	if s := stateOf(t, l, "set"); len(s.Faults) > 0 || !uncovers(t, l, "granular:example.com/x(3)") {
		t.Errorf("got %+v, faults %v", s, l.Faults())
	}
	if s := stateOf(t, l, "widgets"); len(s.Faults) == 0 {
		t.Errorf("got %+v", s)
	}
}

func TestLastGood_DefinitionStandsBackWhereTheObjectsAreAsTheyWere(t *testing.T) {
	c := &cluster{}
	c.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	l := c.live(t)
	c.is(t, l, widgets(1, "{path: .spec.size, verb: example.com/size, excluded: true}"))
	renamed := widget("1", 2, "{}")
	raw, err := yaml.Marshal(renamed.Object)
	if err != nil {
		t.Fatal(err)
	}
	renamed.Object = map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(raw), "size:", "length:")), &renamed.Object); err != nil {
		t.Fatal(err)
	}
	renamed.SetGeneration(2)
	c.definitions = []*unstructured.Unstructured{renamed}
	mustRefresh(t, l)
	k, err := l.Schema().Kind(kindWidget())
	if err != nil || !k.MayBar() || !k.Root.Map().Child("spec").Map().IsField("size") {
		t.Fatalf("the last good definition is not in force: %v", err)
	}
	// The set is valid with the new form.
	c.is(t, l, widgets(2, "{path: .spec.length, verb: example.com/size, excluded: true}"))
	if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.Root.Map().Child("spec").Map().IsField("length") || len(l.Faults()) > 0 {
		t.Errorf("got %v, faults %v", err, l.Faults())
	}
}

func TestObjects_ComeAfterTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: apps, kind: Deployment, permissions: [{path: .spec.paused, verb: example.com/file, excluded: true}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &cluster{}
	l := c.live(t, path)
	c.is(t, l, deployments("1", 1, pausedIsBarred))
	if got := barred(t, l); got != "granular:example.com/pause" {
		t.Errorf("got %q", got)
	}
	c.is(t, l)
	if got := barred(t, l); got != "granular:example.com/file" {
		t.Errorf("got %q", got)
	}
}

func TestObjects_UnmatchedIsNoFaultAndHoldsOnceItsKindIsThere(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	c.is(t, l, widgets(1, "{path: .spec.size, verb: example.com/size, excluded: true}"))
	if s := stateOf(t, l, "widgets"); len(s.Faults) > 0 || len(s.Unmatched) != 1 || !s.Bars() || len(l.Faults()) > 0 {
		t.Errorf("got %+v", s)
	}
	c.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	mustRefresh(t, l)
	if k, err := l.Schema().Kind(kindWidget()); err != nil || !k.MayBar() || len(stateOf(t, l, "widgets").Unmatched) > 0 {
		t.Errorf("got %v", err)
	}
}

func TestObjects_StatusAloneCompilesNothing(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	c.is(t, l, deployments("1", 1, pausedIsBarred))
	before, again := l.Schema(), deployments("1", 1, pausedIsBarred)
	again.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Compiled", "status": "True", "reason": "Compiled", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
	c.is(t, l, again)
	if l.Schema() != before {
		t.Error("compiled anew")
	}
	again = again.DeepCopy()
	again.SetGeneration(2)
	c.is(t, l, again)
	if s := stateOf(t, l, "deployments"); len(s.Faults) > 0 {
		t.Errorf("an object with a status is faulty: %v", s.Faults)
	}
}

func TestReadiness_WaitsForTheObjects(t *testing.T) {
	c := &cluster{err: errors.New("permissionschemas.fieldperm.dev: cannot be listed: forbidden: grant list")}
	l := c.live(t)
	if err := l.Refresh(t.Context()); err == nil || l.Ready() == nil || !strings.Contains(l.Ready().Error(), "grant list") {
		t.Errorf("refresh %v, ready %v", err, l.Ready())
	}
	c.err = nil
	c.is(t, l, deployments("1", 1, pausedIsBarred))
	if err := l.Ready(); err != nil {
		t.Error(err)
	}
	// A later failure is an error. The known objects stay, and everything else continues.
	c.err, c.objects = errors.New("down"), nil
	c.definitions = []*unstructured.Unstructured{widget("1", 1, "{}")}
	if err := l.Refresh(t.Context()); err == nil || l.Ready() != nil {
		t.Errorf("refresh %v, ready %v", err, l.Ready())
	}
	if _, err := l.Schema().Kind(kindWidget()); err != nil || barred(t, l) == "" {
		t.Errorf("kind %v, barrier %q", err, barred(t, l))
	}
}

func TestObjectState_Bars(t *testing.T) {
	entry := func(p v1alpha1.FieldPermission) ObjectState {
		return ObjectState{Documents: compile.Documents{Permissions: []compile.PermissionDocument{{Entries: []compile.Entry{{FieldPermission: p}}}}}}
	}
	for name, c := range map[string]struct {
		state ObjectState
		want  bool
	}{
		"nothing":   {ObjectState{}, false},
		"verb":      {entry(v1alpha1.FieldPermission{Path: ".a", Verb: "a"}), false},
		"barrier":   {entry(v1alpha1.FieldPermission{Path: ".a", Verb: "a", Excluded: true}), true},
		"condition": {entry(v1alpha1.FieldPermission{Path: ".a", Verb: "a", ExcludedWhen: "self == 1"}), true},
		"set":       {ObjectState{Documents: compile.Documents{Uncovered: make([]sets.Document, 1)}}, true},
	} {
		if got := c.state.Bars(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
