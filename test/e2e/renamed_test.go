//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
	"github.com/fieldperm/fieldperm/test/store"
)

const farmGroup = "renames.example.com"

// farmNames is a conversion without any loss.
var farmNames = renames{"replicas": "size", "image": "picture", "locked": "sealed"}

const (
	farmVerbs = `[{"path":".spec.replicas","verb":"scale"},{"path":".spec.image","verb":"image"},{"path":".spec.locked","verb":"example.com/lock","excluded":true}]`
	betaVerbs = `[{"path":".spec.size","verb":"scale"},{"path":".spec.picture","verb":"image"},{"path":".spec.sealed","verb":"example.com/lock","excluded":true}]`
)

// farms is a definition whose versions have different names for the same fields. declared is the value of the annotation that declares the
// conversion lossless, "" for none.
func farms(conversion, declared, v1beta1 string) string {
	version := func(name, storage, replicas, image, locked string) string {
		return fmt.Sprintf("  - name: %s\n    served: true\n    storage: %s\n    subresources: {status: {}, scale: {specReplicasPath: .spec.%s, statusReplicasPath: .status.replicas}}\n"+
			"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s: {type: integer}, %s: {type: string}, %s: {type: boolean}, note: {type: string}}}, status: {type: object, properties: {replicas: {type: integer}}}}}}\n",
			name, storage, replicas, replicas, image, locked)
	}
	annotations := "    fieldperm.dev/permission-verbs: '{\"v1\":" + farmVerbs + ",\"v1beta1\":" + v1beta1 + "}'\n"
	if declared != "" {
		annotations += "    fieldperm.dev/lossless-conversion: '" + declared + "'\n"
	}
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: farms." + farmGroup + "\n  annotations:\n" + annotations +
		"spec:\n  group: " + farmGroup + "\n  scope: Namespaced\n  names: {kind: Farm, plural: farms}\n  conversion: " + conversion + "\n" +
		"  versions:\n" + version("v1", "true", "replicas", "image", "locked") + version("v1beta1", "false", "size", "picture", "sealed")
}

// farm is one object in both versions, and in etcd.
type farm struct {
	v1, v1beta1 *thing
	etcd        *store.Store
}

// newFarm makes the API server serve the definition until the test ends, and creates an object through v1.
func newFarm(t *testing.T, s *stack.Stack, definition string) *farm {
	t.Helper()
	remove(t, s, "customresourcedefinition", "farms."+farmGroup)
	put(t, s, definition)
	established(t, s, "farms."+farmGroup)
	etcd, err := store.Open(t.Context(), s.EtcdURL())
	must(t, err)
	t.Cleanup(func() { must(t, etcd.Close()) })
	o := &thing{s, farmGroup + "/v1", "farms", "Farm", "one"}
	f := &farm{v1: o, v1beta1: o.in(farmGroup + "/v1beta1"), etcd: etcd}
	eventually(t, func() *corpus.Answer {
		return send(t, o.admin(t), http.MethodPost, o.collection(), "application/json", o.document(t, `{"spec":{"replicas":1,"image":"a","locked":true,"note":"n"}}`), "fieldManager=creator")
	}, http.StatusCreated)
	return f
}

// stored returns the specification in etcd.
func (f *farm) stored(t *testing.T) map[string]any {
	t.Helper()
	entry, err := f.etcd.Get(t.Context(), store.Prefix+farmGroup+"/farms/default/one", 0)
	must(t, err)
	object, err := store.Decode(entry.Value)
	must(t, err)
	if got := object["apiVersion"]; got != farmGroup+"/v1" {
		t.Fatalf("stored in %v", got)
	}
	spec, _, err := unstructured.NestedMap(object, "spec")
	must(t, err)
	return spec
}

// is checks the specification in etcd.
func (f *farm) is(t *testing.T, want string) {
	t.Helper()
	spec, err := store.Decode([]byte(want))
	must(t, err)
	if got := f.stored(t); !reflect.DeepEqual(got, spec) {
		t.Errorf("stored is %v, want %s", got, want)
	}
}

// farmUsers gives the users of these tests their verbs.
func farmUsers(t *testing.T, s *stack.Stack) {
	t.Helper()
	resource, scale := []string{"farms"}, []string{"farms/scale"}
	grant(t, s, "farm-scaler", rule(farmGroup, resource, "get", "granular", "granular:scale"), rule(farmGroup, scale, "get", "granular", "granular:scale"))
	grant(t, s, "farm-painter", rule(farmGroup, resource, "get", "granular", "granular:image"), rule(farmGroup, scale, "get", "granular", "granular:image"))
	grant(t, s, "farm-updater", rule(farmGroup, resource, "get", "update", "patch"))
	grant(t, s, "farm-locker", rule(farmGroup, resource, "get", "update", "patch", "granular:example.com/lock"))
	grant(t, s, "farm-capacity", rule(farmGroup, resource, "get", "granular", "granular:capacity"))
}

// TestC3_TheSameGrantsThroughBothVersions: a user may change a field under either name, or under neither, if its owner wrote it
// under the same name (D8). etcd has what was allowed, and nothing else.
func TestC3_TheSameGrantsThroughBothVersions(t *testing.T) {
	s := start(t)
	farmUsers(t, s)
	f := newFarm(t, s, farms(farmNames.serve(t), "true", betaVerbs))
	inForce(t, "the verbs", func() *corpus.Answer {
		return send(t, wire(t, s, "farm-scaler"), http.MethodPatch, f.v1.path(), merge, fields(t, `{"spec":{"replicas":2}}`), "dryRun=All")
	}, 200)
	inForce(t, "the barrier", func() *corpus.Answer {
		return send(t, wire(t, s, "farm-updater"), http.MethodPatch, f.v1.path(), merge, fields(t, `{"spec":{"locked":false}}`), "dryRun=All")
	}, 403)

	const replicas, image, locked = "replicas", "image", "locked"
	may := map[string][]string{"farm-scaler": {replicas}, "farm-painter": {image}, "farm-updater": {replicas, image, "note"}, "farm-locker": {replicas, image, locked, "note"}}
	names := map[*thing]map[string]string{
		f.v1:      {replicas: "replicas", image: "image", locked: "locked", "note": "note"},
		f.v1beta1: {replicas: "size", image: "picture", locked: "sealed", "note": "note"},
	}
	values := map[string][]any{replicas: {int64(3), int64(4)}, image: {"b", "c"}, locked: {false, true}, "note": {"o", "p"}}
	for user, allowed := range may {
		for field, of := range values {
			for i, version := range []*thing{f.v1, f.v1beta1} {
				name := names[version][field]
				value := of[i]
				merge, err := json.Marshal(map[string]any{"spec": map[string]any{name: value}})
				must(t, err)
				patch := func(t *testing.T, as *corpus.Wire) *corpus.Answer { return version.patch(t, as, string(merge)) }
				put := func(t *testing.T, as *corpus.Wire) *corpus.Answer {
					return version.put(t, as, func(object map[string]any) { must(t, unstructured.SetNestedField(object, value, "spec", name)) })
				}
				// Each write has a value to change.
				for how, write := range map[string]request{"patch": patch, "put": put} {
					// Its owner has written it under the same name.
					reset(t, version, name, of[i])
					reset(t, version, name, of[1-i])
					expected, want := f.stored(t), 403
					if slices.Contains(allowed, field) {
						expected[field], want = value, 200
					}
					answer := write(t, wire(t, s, user))
					if answer.Code != want {
						t.Fatalf("%s of .spec.%s through %s as %s: %d, want %d: %s", how, name, version.apiVersion, user, answer.Code, want, answer.Body)
					}
					if got := f.stored(t); !reflect.DeepEqual(got, expected) {
						t.Fatalf("%s of .spec.%s through %s as %s: etcd has %v, want %v", how, name, version.apiVersion, user, got, expected)
					}
				}
			}
		}
	}

	for _, version := range []*thing{f.v1, f.v1beta1} {
		for user, want := range map[string]int{"farm-scaler": 200, "farm-painter": 403} {
			if answer := version.patch(t, wire(t, s, user), `{"spec":{"replicas":9}}`, "scale"); answer.Code != want {
				t.Errorf("scale through %s as %s: %d, want %d: %s", version.apiVersion, user, answer.Code, want, answer.Body)
			}
		}
		if got := f.stored(t)[replicas]; got != int64(9) {
			t.Errorf("through %s: etcd has %v replicas", version.apiVersion, got)
		}
		reset(t, f.v1, "replicas", int64(1))
	}
}

// reset gives a field a value, as an administrator.
func reset(t *testing.T, version *thing, name string, value any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"spec": map[string]any{name: value}})
	must(t, err)
	expect(t, version.patch(t, version.admin(t), string(text)), 200)
}

// TestC3_AnUndeclaredConversionThatLosesAField: the conversion drops the lock, which only v1 has. Without the declaration no verb of
// v1beta1 lets a user write through it. With the declaration, which is false, the barrier of v1 is hidden in v1beta1, and still holds.
func TestC3_AConversionThatLosesAField(t *testing.T) {
	for name, c := range map[string]struct{ declared, verbs string }{
		"not declared":      {"", `[{"path":".spec.size","verb":"scale"},{"path":".spec.picture","verb":"image"}]`},
		"declared, falsely": {"true", `[{"path":".spec.size","verb":"scale"},{"path":".spec.picture","verb":"image"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			farmUsers(t, s)
			lossy := renames{"replicas": "size", "image": "picture", "locked": ""}
			f := newFarm(t, s, farms(lossy.serve(t), c.declared, c.verbs))
			inForce(t, "the barrier", func() *corpus.Answer {
				return send(t, wire(t, s, "farm-updater"), http.MethodPatch, f.v1beta1.path(), merge, fields(t, `{"spec":{"note":"o"}}`), "dryRun=All")
			}, 403)
			// The scaler lacks granular:* too. Both webhooks are asked at once, and the first answer counts.
			for user, need := range map[string]string{"farm-scaler": "granular:", "farm-updater": "granular:example.com/lock"} {
				refusedFor(t, f.v1beta1.patch(t, wire(t, s, user), `{"spec":{"size":7}}`), need)
			}
			f.is(t, `{"replicas":1,"image":"a","locked":true,"note":"n"}`)
			// A holder of the barrier's verb loses the field with the same request: this is what the barrier protects.
			expect(t, f.v1beta1.patch(t, wire(t, s, "farm-locker"), `{"spec":{"size":7}}`), 200)
			f.is(t, `{"replicas":7,"image":"a","note":"n"}`)
		})
	}
}

// TestD8_AFieldThatAnotherVersionRenames: an owner loses what a user changes under the name of another version. fieldperm does not know which field
// of one version is which of another. So the whole object is charged.
func TestD8_AFieldThatAnotherVersionRenames(t *testing.T) {
	s := start(t)
	farmUsers(t, s)
	f := newFarm(t, s, farms(farmNames.serve(t), "true", betaVerbs))
	scaler := wire(t, s, "farm-scaler")
	inForce(t, "the verbs of v1", func() *corpus.Answer {
		return send(t, scaler, http.MethodPatch, f.v1.path(), merge, fields(t, `{"spec":{"replicas":2}}`), "dryRun=All")
	}, 200)
	refusedFor(t, send(t, scaler, http.MethodPatch, f.v1beta1.path(), merge, fields(t, `{"spec":{"size":2}}`)), "the object as a whole")
}
