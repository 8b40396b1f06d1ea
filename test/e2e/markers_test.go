//go:build integration

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestMarkers_TheGeneratedDefinitionHolds: the definition that fieldperm-gen writes from Go types is installed as it is, and users with its
// verbs change what the markers of the types say. What the API server has stored is the judge.
func TestMarkers_TheGeneratedDefinitionHolds(t *testing.T) {
	s := start(t)
	generate := exec.CommandContext(t.Context(), command(t, "fieldperm-gen"), "crd", "paths=.", "output:stdout")
	generate.Dir = filepath.Join("..", "..", "generators", "markers", "testdata", "api", "v1")
	var stderr bytes.Buffer
	generate.Stderr = &stderr
	definitions, err := generate.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	apply(t, s, string(definitions))
	const definition, group, path = "gadgets.example.com", "example.com", "/apis/example.com/v1/namespaces/default/gadgets"
	t.Cleanup(func() { mustKubectl(t, s, "", "delete", "customresourcedefinition", definition, "gizmoes.example.com") })
	established(t, s, ""+definition)
	admin := wire(t, s, "admin", "system:masters")
	eventually(t, func() *corpus.Answer {
		return send(t, admin, http.MethodPost, path, "application/json", fields(t, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"one"},"spec":{
			"color":"red","labels":{"mine.example.com/a":"1","other.example.com/a":"1"},"parts":[{"name":"web","image":"a"},{"name":"db","image":"a"}]}}`))
	}, 201)

	gadgets := []string{"gadgets"}
	grant(t, s, "marked.painter", rule(group, gadgets, "granular", "granular:example.com/color"))
	grant(t, s, "marked.labeler", rule(group, gadgets, "granular", "granular:label(mine.example.com)", "granular:image(web)"))
	grant(t, s, "marked.updater", rule(group, gadgets, "update", "patch"))
	grant(t, s, "marked.approver", rule(group, gadgets, "granular", "granular:example.com/approval"))
	patch := func(user, spec string) func() *corpus.Answer {
		w := wire(t, s, user)
		return func() *corpus.Answer {
			return send(t, w, http.MethodPatch, path+"/one", merge, fields(t, `{"spec":`+spec+`}`))
		}
	}
	stored := func() string {
		var object struct {
			Spec json.RawMessage `json:"spec"`
		}
		must(t, json.Unmarshal(send(t, admin, http.MethodGet, path+"/one", "", nil).Body, &object))
		return string(object.Spec)
	}

	eventually(t, patch("marked.painter", `{"color":"blue"}`), 200)
	answer := patch("marked.painter", `{"depth":1}`)()
	expect(t, answer, 403)
	says(t, answer.Status.Message, "may not change .spec.depth", "granular:example.com/depth")

	// The keys and values of the map are those of KEP-3617's example.
	eventually(t, patch("marked.labeler", `{"labels":{"mine.example.com/a":"2","mine.example.com/b":"2"}}`), 200)
	expect(t, patch("marked.labeler", `{"labels":{"other.example.com/a":"2"}}`)(), 403)
	expect(t, patch("marked.labeler", `{"parts":[{"name":"web","image":"b"},{"name":"db","image":"a"}]}`)(), 200)
	expect(t, patch("marked.labeler", `{"parts":[{"name":"web","image":"b"},{"name":"db","image":"b"}]}`)(), 403)

	// The barriers hold for users with update: of a field, under a condition, and of a type in another package.
	eventually(t, patch("marked.updater", `{"dangerous":true}`), 403)
	eventually(t, patch("marked.updater", `{"approval":{"approved":true}}`), 403)
	expect(t, patch("marked.updater", `{"type":"x"}`)(), 403)
	expect(t, patch("marked.updater", `{"dangerous":false,"depth":2}`)(), 200)
	expect(t, patch("marked.approver", `{"approval":{"approved":true}}`)(), 200)

	const want = `{"approval":{"approved":true},"color":"blue","dangerous":false,"depth":2,"labels":{"mine.example.com/a":"2","mine.example.com/b":"2","other.example.com/a":"1"},"parts":[{"image":"b","name":"web"},{"image":"a","name":"db"}]}`
	if got := stored(); got != want {
		t.Errorf("stored is %s, want %s", got, want)
	}
}
