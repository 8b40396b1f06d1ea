package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// GET /ui is the page of the schema in force, compressed by gzip for clients that take it.
func TestUI_IsServedToCallersOfTheReviewAPI(t *testing.T) {
	r := start(t, nil)
	certificate := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, certificate, "/readyz"); return code == http.StatusOK })
	response, err := certificate.Get(r.url("/ui"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	// The client has asked for gzip, and has decompressed the page itself.
	if response.StatusCode != http.StatusOK || !response.Uncompressed || !strings.Contains(string(text), `"kind":"Deployment"`) {
		t.Errorf("%d, uncompressed %t: %.300s", response.StatusCode, response.Uncompressed, text)
	}
	if got := response.Header.Get("Content-Security-Policy"); got != "frame-ancestors 'none'" {
		t.Errorf("Content-Security-Policy: %q", got)
	}
}
