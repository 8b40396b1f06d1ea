package authn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/fieldperm/fieldperm/internal/configfile"
	"github.com/fieldperm/fieldperm/internal/shorten"
)

// wellKnown is the path of an issuer's discovery document below its URL, unless discoveryURL is set.
const wellKnown = "/.well-known/openid-configuration"

// probeWait bounds the requests to one issuer.
const probeWait = 10 * time.Second

// IssuerError describes a problem of an issuer itself. Problems of the file are configfile.Problems.
type IssuerError struct {
	// Key is the issuer's position in the file, for example "jwt[0].issuer.url".
	Key  string
	Err  error
	Cure string
	// Lies means that the issuer answers, but with another name than the file has. Waiting does not help in this case.
	Lies bool
}

// Error returns "key: problem: cure".
func (e *IssuerError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Key, e.Err, e.Cure) }

// Unwrap returns the cause.
func (e *IssuerError) Unwrap() error { return e.Err }

// Problem returns the error as a Problem with its position in the file.
func (e *IssuerError) Problem(file string, data []byte) configfile.Problem {
	return configfile.NewProblem(file, data, e.Key, e.Err.Error(), e.Cure)
}

// Probe asks every issuer of a valid configuration for its discovery document and its keys. It asks all issuers in parallel, each
// for at most 10 s. It returns the problems in the order of the file; each is an *IssuerError.
func Probe(ctx context.Context, configuration *apiserver.AuthenticationConfiguration) []error {
	var out []error
	for _, fault := range probe(ctx, configuration.JWT) {
		if fault != nil {
			out = append(out, fault)
		}
	}
	return out
}

// probe returns one result for each entry, nil for an issuer without a problem.
func probe(ctx context.Context, entries []apiserver.JWTAuthenticator) []*IssuerError {
	out := make([]*IssuerError, len(entries))
	var asking sync.WaitGroup
	for i := range entries {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeWait)
			defer cancel()
			if out[i] = ask(ctx, entries[i].Issuer); out[i] != nil {
				out[i].Key = keyOf(i)
			}
		})
	}
	asking.Wait()
	return out
}

func keyOf(i int) string { return fmt.Sprintf("jwt[%d].issuer.url", i) }

// ask reads the same documents as k8s.io/apiserver: the discovery document, whose issuer must be exactly the one in the file, and
// the keys.
func ask(ctx context.Context, issuer apiserver.Issuer) *IssuerError {
	client, transport, err := newClient(issuer.CertificateAuthority)
	if err != nil {
		return &IssuerError{Err: err, Cure: "write the CA's certificates in PEM"}
	}
	defer transport.CloseIdleConnections()
	address, source := discoveryAddress(&issuer)
	var document discovery
	if err := fetch(ctx, client, address, &document); err != nil {
		return &IssuerError{
			Err:  fmt.Errorf("issuer %q: discovery: %w", issuer.URL, err),
			Cure: fmt.Sprintf("see that it is up, that %s is where it is, and that certificateAuthority has its CA", source),
		}
	}
	if document.Issuer != issuer.URL {
		return &IssuerError{
			Lies: true,
			Err:  fmt.Errorf("issuer %q answers at %q with the name %q", issuer.URL, address, shorten.Text(document.Issuer, longestText)),
			Cure: fmt.Sprintf("write url: %s if that is what its tokens have as \"iss\", or the %s of the issuer that is meant", shorten.Text(document.Issuer, longestText), source),
		}
	}
	if document.Keys == "" {
		return &IssuerError{Err: fmt.Errorf("issuer %q: discovery document at %q has no jwks_uri", issuer.URL, address), Cure: "have it publish its keys"}
	}
	var keys jose.JSONWebKeySet
	err = fetch(ctx, client, document.Keys, &keys)
	if err == nil && len(keys.Keys) == 0 {
		err = fmt.Errorf("%q has none", document.Keys)
	}
	if err != nil {
		return &IssuerError{Err: fmt.Errorf("issuer %q: keys: %w", issuer.URL, err), Cure: "have it publish them where its jwks_uri says: no token is accepted without"}
	}
	return nil
}

// fetch reads a JSON document.
func fetch(ctx context.Context, client *http.Client, address string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("%q: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%q answers %q", address, response.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%q does not answer with the JSON of one: %w", address, err)
	}
	return nil
}

// longestText is how many bytes of a text from outside a message shows.
const longestText = 200
