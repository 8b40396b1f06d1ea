//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestD1_TheLargestObjectIsReviewed: kube-apiserver writes a control character as six bytes, so that the review of two legal ConfigMaps has
// twelve times the bytes of one of them. If fieldperm refused it because of its size, a user with the verb of one key could block all
// writes of the object.
func TestD1_TheLargestObjectIsReviewed(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "writer-of-x", rule("", []string{"configmaps"}, "get", "granular", "granular:datum(x)"))
	grant(t, s, "writer-of-y", rule("", []string{"configmaps"}, "get", "granular", "granular:datum(y)"))
	remove(t, s, "configmap", "large")
	put(t, s, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata: {x: a, y: b}\n")
	patch := func(user, key, value string, want int) {
		t.Helper()
		body := map[string]any{"data": map[string]any{key: value}}
		expect(t, send(t, wire(t, s, user), http.MethodPatch, "/api/v1/namespaces/default/configmaps/large", "application/merge-patch+json", body), want)
	}
	patch("writer-of-x", "x", strings.Repeat("\x01", 400_000), 200)
	patch("writer-of-y", "y", "c", 200)
	patch("writer-of-x", "y", "d", 403)
}
