//go:build integration

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// thing is an object in the namespace default. The requests of the tests change its owners.
type thing struct {
	s                          *stack.Stack
	apiVersion, resource, kind string
	name                       string
}

func (o *thing) collection() string {
	root := "/apis/"
	if !strings.Contains(o.apiVersion, "/") {
		root = "/api/"
	}
	return root + o.apiVersion + "/namespaces/default/" + o.resource
}

func (o *thing) path() string { return o.collection() + "/" + o.name }

// in is the same object in another version.
func (o *thing) in(version string) *thing {
	out := *o
	out.apiVersion = version
	return &out
}

// document is the object with the given content, a JSON object that may have metadata.
func (o *thing) document(t *testing.T, content string) map[string]any {
	t.Helper()
	out := fields(t, content)
	out["apiVersion"], out["kind"] = o.apiVersion, o.kind
	must(t, unstructured.SetNestedField(out, o.name, "metadata", "name"))
	return out
}

// create creates the object as the manager creator.
func (o *thing) create(t *testing.T, content string) {
	t.Helper()
	remove(t, o.s, o.resource, o.name)
	expect(t, send(t, o.admin(t), http.MethodPost, o.collection(), "application/json", o.document(t, content), "fieldManager=creator"), 201)
}

func (o *thing) admin(t *testing.T) *corpus.Wire {
	t.Helper()
	return wire(t, o.s, "admin", "system:masters")
}

// apply applies content as a manager, by force. A subresource may follow.
func (o *thing) apply(t *testing.T, as *corpus.Wire, manager, content string, subresource ...string) *corpus.Answer {
	t.Helper()
	path := strings.Join(append([]string{o.path()}, subresource...), "/")
	return send(t, as, http.MethodPatch, path, "application/apply-patch+yaml", o.document(t, content), "fieldManager="+manager, "force=true")
}

func (o *thing) patch(t *testing.T, as *corpus.Wire, content string, subresource ...string) *corpus.Answer {
	t.Helper()
	path := strings.Join(append([]string{o.path()}, subresource...), "/")
	return send(t, as, http.MethodPatch, path, merge, fields(t, content), "fieldManager=patcher")
}

func (o *thing) read(t *testing.T) map[string]any {
	t.Helper()
	answer := send(t, o.admin(t), http.MethodGet, o.path(), "", nil)
	expect(t, answer, 200)
	var out map[string]any
	must(t, json.Unmarshal(answer.Body, &out))
	return out
}

// put writes the stored object back with a change.
func (o *thing) put(t *testing.T, as *corpus.Wire, change func(object map[string]any)) *corpus.Answer {
	t.Helper()
	object := o.read(t)
	change(object)
	return send(t, as, http.MethodPut, o.path(), "application/json", object, "fieldManager=putter")
}

// has reports whether the stored object has a field.
func (o *thing) has(t *testing.T, path ...string) bool {
	t.Helper()
	_, found, err := unstructured.NestedFieldNoCopy(o.read(t), path...)
	must(t, err)
	return found
}

// entryOf returns the entry of a manager in an object, to be changed. It is nil if the manager owns nothing.
func entryOf(object map[string]any, manager string) map[string]any {
	for _, e := range entries(object) {
		if entry := e.(map[string]any); entry["manager"] == manager {
			return entry["fieldsV1"].(map[string]any)
		}
	}
	return nil
}

func entries(object map[string]any) []any {
	out, _ := object["metadata"].(map[string]any)["managedFields"].([]any)
	return out
}

// give makes a manager the owner of a path.
func give(t *testing.T, object map[string]any, manager string, path ...string) {
	t.Helper()
	must(t, unstructured.SetNestedMap(entryOf(object, manager), map[string]any{}, path...))
}

// take removes a path from the entry of a manager.
func take(t *testing.T, object map[string]any, manager string, path ...string) {
	t.Helper()
	if _, owned, err := unstructured.NestedFieldNoCopy(entryOf(object, manager), path...); err != nil || !owned {
		t.Fatalf("manager %q does not own %q: %v", manager, path, entries(object))
	}
	unstructured.RemoveNestedField(entryOf(object, manager), path...)
}

// leave removes all entries except the entries of one manager.
func leave(object map[string]any, manager string) {
	var left []any
	for _, e := range entries(object) {
		if e.(map[string]any)["manager"] == manager {
			left = append(left, e)
		}
	}
	object["metadata"].(map[string]any)["managedFields"] = left
}

// request is one request of a thief.
type request = func(t *testing.T, thief *corpus.Wire) *corpus.Answer

// theft is a way to remove a field without its verb: a manager that applies becomes the owner of the field, so that the next apply of this
// manager's unchanged manifest removes the field.
type theft struct {
	// first is sent before the steps, if it is set. It is allowed.
	first request
	// steps are the requests of the thief. The first one has to be refused. The others have no effect without it.
	steps []request
	// needs is the verb that the refusal names.
	needs string
	// holder is a user with this verb: an administrator, if it is empty.
	holder string
	// victim applies the unchanged manifest.
	victim func(t *testing.T) *corpus.Answer
	// stays reports whether the field exists.
	stays func(t *testing.T) bool
}

// fails checks that the thief is refused and the field stays. Then the holder of the verb takes the same steps and the field is removed.
// Otherwise the test would prove nothing.
func (a *theft) fails(t *testing.T, s *stack.Stack, thief string) {
	t.Helper()
	begin := func(as *corpus.Wire) {
		if a.first != nil {
			expect(t, a.first(t, as), 200)
		}
	}
	begin(wire(t, s, thief))
	for i, step := range a.steps {
		if answer := step(t, wire(t, s, thief)); i == 0 {
			refusedFor(t, answer, a.needs)
		}
	}
	expect(t, a.victim(t), 200)
	if !a.stays(t) {
		t.Fatalf("the field is gone after the steps of %q", thief)
	}
	holder := wire(t, s, "admin", "system:masters")
	if a.holder != "" {
		holder = wire(t, s, a.holder)
	}
	begin(holder)
	for _, step := range a.steps {
		expect(t, step(t, holder), 200)
	}
	expect(t, a.victim(t), 200)
	if a.stays(t) {
		t.Error("the field stays for every user")
	}
}

// refusedFor checks that a request was refused because of a missing verb.
func refusedFor(t *testing.T, answer *corpus.Answer, verb string) {
	t.Helper()
	if answer.Code != http.StatusForbidden || !strings.Contains(answer.Status.Message, verb) {
		t.Errorf("got %d, want 403 that names %s: %.500s", answer.Code, verb, answer.Body)
	}
}

// TestD8_C2_AConditionOnTheChangeHoldsForTheNewOwner: a key may change and may not be removed. A user that changes it by an apply under
// another manager's name makes that manager its owner. The manifest of that manager does not have the key.
func TestD8_C2_AConditionOnTheChangeHoldsForTheNewOwner(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "changer", rule("", []string{"configmaps"}, "get", "update", "patch"))
	changer := wire(t, s, "changer")
	o := &thing{s, "v1", "configmaps", "ConfigMap", "kept-key"}
	o.create(t, `{"data":{"a":"1","b":"2"}}`)
	remove(t, s, "permissionschema", "kept-key")
	apply(t, s, schemaOf("kept-key", "", "ConfigMap", "{path: '.data[*]', verb: example.com/key, parameterSource: key, excludedWhen: 'oldSelf != null && self == null'}"))
	inForce(t, "the key may not vanish", func() *corpus.Answer {
		return send(t, changer, http.MethodPatch, o.path(), merge, fields(t, `{"data":{"b":null}}`), "dryRun=All")
	}, 403)
	expect(t, o.patch(t, changer, `{"data":{"b":"3"}}`), 200)

	victim := func(t *testing.T) *corpus.Answer { return o.apply(t, o.admin(t), "argocd", `{"data":{"a":"1"}}`) }
	expect(t, victim(t), 200)
	steal := &theft{
		steps: []request{func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
			return o.apply(t, thief, "argocd", `{"data":{"a":"1","b":"4"}}`)
		}},
		needs: "granular:example.com/key", victim: victim,
		stays: func(t *testing.T) bool { return o.has(t, "data", "b") },
	}
	steal.fails(t, s, "changer")
}

// TestD8_D11_OwnersOfTheStatusAreOfTheStatus: the API server accepts owners of the status from a write of the object. Such a write may pass
// neither a set for the status nor a missing verb on the status.
func TestD8_D11_OwnersOfTheStatusAreOfTheStatus(t *testing.T) {
	s := start(t)
	install(t, s)
	o := &thing{s, "apps/v1", "deployments", "Deployment", "kept-status"}
	o.create(t, `{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}`)
	victim := func(t *testing.T) *corpus.Answer {
		return o.apply(t, o.admin(t), "argocd", `{"status":{"replicas":3}}`, "status")
	}
	reset := func(t *testing.T) {
		t.Helper()
		expect(t, o.patch(t, o.admin(t), `{"status":{"replicas":3,"readyReplicas":2}}`, "status"), 200)
		expect(t, victim(t), 200)
	}
	steal := &theft{
		steps: []request{func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
			return o.put(t, thief, func(object map[string]any) {
				take(t, object, "patcher", "f:status", "f:readyReplicas")
				give(t, object, "argocd", "f:status", "f:readyReplicas")
			})
		}},
		victim: victim,
		stays:  func(t *testing.T) bool { return o.has(t, "status", "readyReplicas") },
	}
	t.Run("VerbsOnTheObject", func(t *testing.T) {
		grant(t, s, "of-the-object", rule("apps", []string{"deployments"}, "get", "granular", "granular:status"))
		reset(t)
		refusedFor(t, o.patch(t, wire(t, s, "of-the-object"), `{"status":{"readyReplicas":null}}`, "status"), `"deployments/status"`)
		steal.needs = "granular:*"
		steal.fails(t, s, "of-the-object")
	})
	for name, set := range map[string]string{
		"SetOnTheStatus": uncoveredSet("kept-status", "granular:status", "apps", "deployments/status"),
		"SetWithAConditionOnTheEndpoint": uncoveredSet("kept-status", "granular:status", "apps", "deployments") +
			`  matchConditions: [{name: at-the-status, expression: "has(request.subResource) && request.subResource == 'status'"}]` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			grant(t, s, "of-both", rule("apps", []string{"deployments", "deployments/status"}, "get", "update", "patch"))
			reset(t)
			write := func() *corpus.Answer {
				return send(t, wire(t, s, "of-both"), http.MethodPatch, o.path()+"/status", merge, fields(t, `{"status":{"replicas":4}}`), "dryRun=All")
			}
			// Wait, because the next set has the same name.
			t.Cleanup(func() { inForce(t, "the status may be written again", write, 200) })
			remove(t, s, "uncoveredpermissionset", "kept-status")
			apply(t, s, set)
			inForce(t, "the status may not be written", write, 403)
			steal.needs = "granular:status"
			steal.fails(t, s, "of-both")
		})
	}
}

// TestD8_OwnersThatAreTooManyToCompare: a few kilobytes of nested paths need too much memory to compare. Without a comparison the owner of
// any field may have changed.
func TestD8_OwnersThatAreTooManyToCompare(t *testing.T) {
	s := start(t)
	grant(t, s, "of-metadata", rule("", []string{"configmaps"}, "get", "granular", "granular:metadata"))
	o := &thing{s, "v1", "configmaps", "ConfigMap", "kept-data"}
	o.create(t, `{"metadata":{"labels":{"l":"1"}},"data":{"a":"1","b":"2"}}`)
	victim := func(t *testing.T) *corpus.Answer { return o.apply(t, o.admin(t), "argocd", `{"data":{"a":"1"}}`) }
	expect(t, victim(t), 200)
	nested := func(depth int) request {
		return func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
			return o.put(t, thief, func(object map[string]any) {
				leave(object, "argocd")
				give(t, object, "argocd", "f:data", "f:b")
				deep := map[string]any{}
				for range depth {
					deep = map[string]any{".": map[string]any{}, "f:a": deep}
				}
				entryOf(object, "argocd")["f:metadata"] = map[string]any{"f:labels": map[string]any{"f:l": deep}}
			})
		}
	}
	refusedFor(t, nested(10)(t, wire(t, s, "of-metadata")), "granular:data")
	steal := &theft{
		steps: []request{nested(2000)}, needs: "granular:*", victim: victim,
		stays: func(t *testing.T) bool { return o.has(t, "data", "b") },
	}
	steal.fails(t, s, "of-metadata")
}
