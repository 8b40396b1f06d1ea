//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// D8: an API server with an object of fewer values than the documented bound.
func TestD8_AnApplyBelowTheBoundOfValues(t *testing.T) {
	s := start(t)
	grant(t, s, "keys", rule("", []string{"configmaps"}, "get", "granular", "granular:datum"))
	o := &thing{s, "v1", "configmaps", "ConfigMap", "many"}
	remove(t, s, o.resource, o.name)
	data := map[string]any{}
	for i := range 2700 {
		data["k"+strings.Repeat("0", 3)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676%26))] = "1"
	}
	content := o.document(t, `{}`)
	content["data"] = data
	expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), "application/apply-patch+yaml", content, "fieldManager=owner", "force=true"), 201)
	answer := o.apply(t, wire(t, s, "keys"), "keys", `{"data":{"mine":"1"}}`)
	t.Logf("2700 keys: %d %.400s", answer.Code, answer.Status.Message)
	if answer.Code != 200 {
		t.Error("refused, although the object has 2,700 values")
	}
}
