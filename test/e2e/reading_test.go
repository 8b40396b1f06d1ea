//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestA1_TheMarkerReads: the answer to a PATCH contains the object, for every user with patch, and the API server evaluates a JSON Patch
// that tests a value before it calls admission. So a user with the marker on Secrets can read their content, as docs/security.md says.
func TestA1_TheMarkerReads(t *testing.T) {
	s := start(t)
	remove(t, s, "secret", "read")
	put(t, s, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"read"},"data":{"k":"dmFsdWU="}}`)
	const path = "/api/v1/namespaces/default/secrets/read"
	grant(t, s, "marked", rule("", []string{"secrets"}, "granular"))
	grant(t, s, "patcher", rule("", []string{"secrets"}, "patch"))
	for _, user := range []string{"marked", "patcher"} {
		w := wire(t, s, user)
		expect(t, send(t, w, http.MethodGet, path, "", nil), 403)
		for _, query := range []string{"", "dryRun=All"} {
			answer := send(t, w, http.MethodPatch, path, merge, fields(t, `{}`), query)
			expect(t, answer, 200)
			if !strings.Contains(string(answer.Body), "dmFsdWU=") {
				t.Errorf("%s, %q: the answer has no data: %s", user, query, answer.Body)
			}
		}
	}
	// The test of the patch runs before admission refuses the write: a wrong value gives another error than the refusal.
	try := func(value string) int {
		patch := []map[string]any{{"op": "test", "path": "/data/k", "value": value}, {"op": "add", "path": "/metadata/labels", "value": map[string]any{"a": "b"}}}
		return send(t, wire(t, s, "marked"), http.MethodPatch, path, "application/json-patch+json", patch).Code
	}
	if right, wrong := try("dmFsdWU="), try("b3RoZXI="); right != 403 || wrong != 422 {
		t.Errorf("the right value is answered by %d and the wrong one by %d, want 403 and 422", right, wrong)
	}
	// A patch that changes a field needs a verb as always.
	refused(t, send(t, wire(t, s, "marked"), http.MethodPatch, path, merge, fields(t, `{"data":{"k":"b3RoZXI="}}`)))
}
