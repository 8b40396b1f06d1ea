package issuer_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"

	"github.com/fieldperm/fieldperm/test/issuer"
)

func start(t *testing.T, c issuer.Config) (*issuer.Issuer, *http.Client) {
	t.Helper()
	i, err := issuer.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(i.CA()) {
		t.Fatal("the CA is not PEM")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return i, &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// keys returns the set of keys that a client finds through the discovery document.
func keys(t *testing.T, client *http.Client, i *issuer.Issuer) jose.JSONWebKeySet {
	t.Helper()
	_, body := get(t, client, i.DiscoveryURL())
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal([]byte(body), &document); err != nil {
		t.Fatal(err)
	}
	if document.Issuer != i.URL() {
		t.Errorf("issuer is %q, want %q", document.Issuer, i.URL())
	}
	_, body = get(t, client, document.Keys)
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(body), &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func verifies(t *testing.T, set jose.JSONWebKeySet, token string) bool {
	t.Helper()
	parsed, err := jose.ParseSigned(token)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(set.Key(parsed.Signatures[0].Header.KeyID), func(key jose.JSONWebKey) bool {
		_, err := parsed.Verify(key)
		return err == nil
	})
}

func TestTokensVerifyByTheKeysThatAreServed(t *testing.T) {
	for _, algorithm := range []string{"RS256", "PS512", "ES256", "ES384", "ES512"} {
		t.Run(algorithm, func(t *testing.T) {
			i, client := start(t, issuer.Config{Algorithm: algorithm, Path: "/realms/dev"})
			token, err := i.Sign(map[string]any{"sub": "ann"}, issuer.Token{})
			if err != nil {
				t.Fatal(err)
			}
			if !verifies(t, keys(t, client, i), token) {
				t.Error("the token does not verify")
			}
			other, err := i.Sign(nil, issuer.Token{ClaimedKeyID: "key-9"})
			if err != nil {
				t.Fatal(err)
			}
			if verifies(t, keys(t, client, i), other) {
				t.Error("a token of a key that is not served verifies")
			}
		})
	}
}

func TestRotation(t *testing.T) {
	i, client := start(t, issuer.Config{})
	first, err := i.Sign(nil, issuer.Token{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.Rotate(true); err != nil {
		t.Fatal(err)
	}
	if set := keys(t, client, i); len(set.Keys) != 2 || !verifies(t, set, first) {
		t.Errorf("%d keys are served, want 2, the old one among them", len(set.Keys))
	}
	latest, err := i.Rotate(false)
	if err != nil {
		t.Fatal(err)
	}
	if set := keys(t, client, i); len(set.Keys) != 1 || set.Keys[0].KeyID != latest || verifies(t, set, first) {
		t.Errorf("%d keys are served, want %q alone", len(set.Keys), latest)
	}
	if err := i.Hide("key-1", false); err != nil {
		t.Fatal(err)
	}
	if !verifies(t, keys(t, client, i), first) {
		t.Error("the key is not back")
	}
	if err := i.Hide("key-9", true); err == nil {
		t.Error("a key that is not there was hidden")
	}
}

func TestBehaviour(t *testing.T) {
	i, client := start(t, issuer.Config{DiscoveryPath: "/elsewhere/configuration", Name: "https://issuer.example.com"})
	if i.URL() != "https://issuer.example.com" {
		t.Errorf("URL is %q", i.URL())
	}
	keys(t, client, i)
	i.Behave(issuer.Behaviour{Status: http.StatusServiceUnavailable, Only: issuer.Discovery})
	if status, _ := get(t, client, i.DiscoveryURL()); status != http.StatusServiceUnavailable {
		t.Errorf("status is %d", status)
	}
	i.Behave(issuer.Behaviour{Body: "{}"})
	if _, body := get(t, client, i.DiscoveryURL()); body != "{}" {
		t.Errorf("body is %q", body)
	}
	wait := make(chan struct{})
	i.Behave(issuer.Behaviour{Wait: wait})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.DiscoveryURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := client.Do(request)
		failed <- err
	}()
	for i.Requests().Discovery < 4 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-failed; err == nil {
		t.Error("an issuer that waits answered")
	}
	close(wait)
	if status, _ := get(t, client, i.DiscoveryURL()); status != http.StatusOK {
		t.Errorf("status is %d", status)
	}
	if got, want := i.Requests(), (issuer.Counts{Discovery: 5, Keys: 1}); got != want {
		t.Errorf("requests are %+v, want %+v", got, want)
	}
}

func TestDistributedClaims(t *testing.T) {
	i, client := start(t, issuer.Config{})
	claims := i.Distribute("groups", "a.b.c", "secret")
	url := claims["_claim_sources"].(map[string]any)["source"].(map[string]any)["endpoint"].(string)
	if status, _ := get(t, client, url); status != http.StatusUnauthorized {
		t.Errorf("status without the access token is %d", status)
	}
	open := i.Distribute("groups", "d.e.f", "")
	url = open["_claim_sources"].(map[string]any)["source"].(map[string]any)["endpoint"].(string)
	if status, body := get(t, client, url); status != http.StatusOK || body != "d.e.f" {
		t.Errorf("got %d %q", status, body)
	}
}

func TestStoppedAndStartedAgain(t *testing.T) {
	i, client := start(t, issuer.Config{})
	before := keys(t, client, i)
	i.Behave(issuer.Behaviour{Wait: make(chan struct{}), Only: issuer.Claims})
	if err := i.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(i.DiscoveryURL()); err == nil {
		t.Fatal("an issuer that is stopped answers")
	}
	if err := i.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := keys(t, client, i); after.Keys[0].KeyID != before.Keys[0].KeyID {
		t.Error("it has lost its keys")
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Error("a second Close fails:", err)
	}
}
