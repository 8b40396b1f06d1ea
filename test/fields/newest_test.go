//go:build integration

package fields

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// C3: the newest version of PodCertificateRequests lacks fields of v1beta1, and yet no write through it loses them: it may be a lossless
// version.
func TestC3_TheNewestVersionOfPodCertificateRequestsLosesNothing(t *testing.T) {
	plane, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir(), ExtraArgs: serverFlags("AllAlpha=true,AllBeta=true")})
	must(t, err)
	t.Cleanup(func() { must(t, plane.Stop()) })
	r := prepare(t, plane.Admin())
	var old *endpoint
	for _, e := range r.endpoints {
		if e.gvr.Resource == "podcertificaterequests" && e.gvr.Version == "v1beta1" && e.subresource == "" {
			old = e
		}
	}
	if old == nil {
		t.Fatal("v1beta1 is not served any more: take the exception out of docs/semantics.md")
	}
	newest := *old
	newest.gvr.Version = "v1"
	_, sent, err := r.base(t.Context(), old, nil)
	must(t, err)
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	must(t, err)
	spec, _ := sent["spec"].(map[string]any)
	uid, _ := spec["podUID"].(string)
	delete(spec, "stubPKCS10Request")
	spec["pkixPublicKey"] = base64.StdEncoding.EncodeToString(der)
	spec["proofOfPossession"] = base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(uid)))
	const name = "fields-old-key"
	sent["metadata"].(map[string]any)["name"] = name
	write := func(method, url string, body map[string]any) *answer {
		t.Helper()
		a, err := r.server.write(t.Context(), method, url, body, nil)
		must(t, err)
		return a
	}
	if a := write(http.MethodPost, old.path(), sent); !a.ok() {
		t.Fatal(a.says())
	}
	stored := write(http.MethodGet, old.path(name), nil).object["spec"]
	object := write(http.MethodGet, newest.path(name), nil).object
	object["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	if a := write(http.MethodPut, newest.path(name), object); a.ok() || !strings.Contains(a.says(), "field is immutable") {
		t.Errorf("a write through v1 is answered %s: if it is stored, v1 is lossy", a.says())
	}
	object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Denied", "status": "True", "reason": "X", "message": "m", "lastTransitionTime": "2026-11-23T15:00:00Z"}}}
	if a := write(http.MethodPut, newest.path(name, "status"), object); !a.ok() {
		t.Error(a.says())
	}
	if is := write(http.MethodGet, old.path(name), nil).object["spec"]; !reflect.DeepEqual(is, stored) || is.(map[string]any)["pkixPublicKey"] == nil {
		t.Errorf("stored is %s, was %s", string(raw(is)), string(raw(stored)))
	}
}
