package authn

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/test/issuer"
)

const audience = "fieldperm"

// claims returns the claims of a token that entry accepts, with additions or replacements.
func claims(more ...map[string]any) map[string]any {
	out := map[string]any{"sub": "ann", "aud": audience}
	for _, one := range more {
		maps.Copy(out, one)
	}
	return out
}

func startIssuer(t testing.TB, c issuer.Config) *issuer.Issuer {
	t.Helper()
	i, err := issuer.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

func sign(t testing.TB, i *issuer.Issuer, claims map[string]any, token issuer.Token) string {
	t.Helper()
	out, err := i.Sign(claims, token)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// named maps the claim sub to the user's name.
const named = `
  claimMappings:
    username: {claim: sub, prefix: ""}`

// entry returns an entry of jwt for a running issuer.
func entry(i *issuer.Issuer, rest string) string {
	return issuerOnly(i, "["+audience+"]", "") + rest + "\n"
}

func issuerOnly(i *issuer.Issuer, audiences, more string) string {
	ca := strings.ReplaceAll(strings.TrimSpace(string(i.CA())), "\n", "\n      ")
	return fmt.Sprintf("- issuer:\n    url: %s\n    audiences: %s\n    certificateAuthority: |\n      %s%s", i.URL(), audiences, ca, more)
}

// configuration returns a file with the entries.
func configuration(entries ...string) string {
	return versioned("v1", entries...)
}

func versioned(version string, entries ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: AuthenticationConfiguration\n"
	if len(entries) > 0 {
		text += "jwt:\n" + strings.Join(entries, "")
	}
	return text
}

func write(t testing.TB, file, text string) {
	t.Helper()
	// Replace the file atomically, as for a mounted ConfigMap.
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// settings returns Settings for a file with the text.
func settings(t testing.TB, text string) Settings {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	write(t, file, text)
	return Settings{File: file, Identity: file, interval: time.Hour}
}

// start returns an authenticator that runs until the test ends, or until stop is called.
func start(t testing.TB, s Settings) (a *Authenticator, stop func()) {
	t.Helper()
	a, err := New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return a, stop
}

func startWith(t testing.TB, entries ...string) *Authenticator {
	t.Helper()
	a, _ := start(t, settings(t, configuration(entries...)))
	return a
}

func bearing(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/permissions", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func identify(a authenticator.Request, token string) (user.Info, error) {
	response, ok, err := a.AuthenticateRequest(bearing(token))
	switch {
	case err != nil && (ok || response != nil):
		return nil, fmt.Errorf("is a user in spite of: %w", err)
	case err != nil:
		return nil, err
	case !ok:
		return nil, nil
	}
	return response.User, nil
}

// accepted fails the test unless the token is accepted for a user with that name.
func accepted(t testing.TB, a authenticator.Request, token, name string) user.Info {
	t.Helper()
	got, err := identify(a, token)
	if err != nil || got == nil || got.GetName() != name {
		t.Fatalf("caller is %v, %v, want %q", got, err, name)
	}
	return got
}

// refusedWith fails the test unless the token is refused with want in the error.
func refusedWith(t testing.TB, a authenticator.Request, token, want string) {
	t.Helper()
	got, err := identify(a, token)
	if got != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("caller is %v, %v, want an error with %q", got, err, want)
	}
}

// eventually polls a condition for which there is no event.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to be that %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
