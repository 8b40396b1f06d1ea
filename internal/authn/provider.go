package authn

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
)

// Observer receives the state of issuers, for metrics. Its methods must not block.
type Observer interface {
	// Provider is called each time that the discovery document of an issuer was asked for. good means that it is one, with the name that the
	// file gives the issuer.
	Provider(issuer, identity string, good bool)
	// ProviderGone is called when no configuration in force has the issuer any more.
	ProviderGone(issuer, identity string)
}

type noObserver struct{}

func (noObserver) Provider(string, string, bool) {}
func (noObserver) ProviderGone(string, string)   {}

// discoveryAddress returns the address of an issuer's discovery document, and the field that says so.
func discoveryAddress(issuer *apiserver.Issuer) (address, field string) {
	if issuer.DiscoveryURL != "" {
		return issuer.DiscoveryURL, "discoveryURL"
	}
	return strings.TrimSuffix(issuer.URL, "/") + wellKnown, "url"
}

// discovery is what fieldperm reads of a discovery document.
type discovery struct {
	Issuer string `json:"issuer"`
	Keys   string `json:"jwks_uri"`
}

// watched reports what k8s.io/apiserver reads as an issuer's discovery document. The library logs an error and has no metric.
type watched struct {
	base    http.RoundTripper
	address string
	issuer  string
	report  func(good bool)
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.base.RoundTrip(r)
	if r.URL.String() != w.address {
		return response, err
	}
	if err != nil {
		w.report(false)
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		w.report(false)
		return nil, err
	}
	var document discovery
	err = json.Unmarshal(body, &document)
	w.report(err == nil && response.StatusCode == http.StatusOK && document.Issuer == w.issuer && document.Keys != "")
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
