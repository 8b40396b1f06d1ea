package issuer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
)

// Document is one of the documents that an issuer serves.
type Document string

// The documents of an issuer.
const (
	Discovery Document = "discovery"
	Keys      Document = "keys"
	Claims    Document = "claims"
)

// Behaviour describes faults of an issuer. The zero value has no fault.
type Behaviour struct {
	// Name is the `issuer` in the discovery document; "" for URL.
	Name string
	// Only is the document to which Status, Body, Delay and Wait apply; "" for all.
	Only Document
	// Status is the status code of the answer; 0 for 200.
	Status int
	// Body replaces the document; "" for the document.
	Body string
	// Delay is the time before each answer.
	Delay time.Duration
	// Wait is closed when the answers may continue; nil does not wait.
	Wait <-chan struct{}
	// KeysFor is the time for which clients may cache the keys (Cache-Control: max-age); 0 for none.
	KeysFor time.Duration
	// NoKeys removes jwks_uri from the discovery document.
	NoKeys bool
}

// Behave sets the behaviour of an issuer from the next request on.
func (i *Issuer) Behave(b Behaviour) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.behaviour = b
}

// Counts are the numbers of requests for each document, including failed requests.
type Counts struct{ Discovery, Keys, Claims int }

// Requests returns the numbers since Start. A request is counted before it is answered.
func (i *Issuer) Requests() Counts {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counts
}

// distributed is a claim that is fetched from the issuer.
type distributed struct{ accessToken, token string }

// Distribute serves a token to every client with an access token ("" for all clients), and returns the claims that refer to it, to be added
// to the claims of another token (OpenID Connect Core 1.0, section 5.6.2).
func (i *Issuer) Distribute(claim, token, accessToken string) map[string]any {
	i.mu.Lock()
	defer i.mu.Unlock()
	path := fmt.Sprintf("%s/claims/%d", strings.TrimSuffix(i.config.Path, "/"), len(i.claims)+1)
	i.claims[path] = distributed{accessToken, token}
	source := map[string]any{"endpoint": i.origin + path}
	if accessToken != "" {
		source["access_token"] = accessToken
	}
	return map[string]any{
		"_claim_names":   map[string]any{claim: "source"},
		"_claim_sources": map[string]any{"source": source},
	}
}

// answer handles all requests of the server.
func (i *Issuer) answer(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	document, content := i.document(r)
	b := i.behaviour
	i.mu.Unlock()
	if document == "" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	departs := b.Only == "" || b.Only == document
	if departs && !waited(r, b) {
		// A return would send an empty 200, which may still reach a client that is closing its connection.
		panic(http.ErrAbortHandler)
	}
	if departs && b.Body != "" {
		content = []byte(b.Body)
	}
	if content == nil {
		http.Error(w, "access token is another one", http.StatusUnauthorized)
		return
	}
	if document == Claims {
		w.Header().Set("Content-Type", "application/jwt")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	if document == Keys && b.KeysFor > 0 {
		w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", int(b.KeysFor.Seconds())))
	}
	if departs && b.Status != 0 {
		w.WriteHeader(b.Status)
	}
	_, _ = w.Write(content)
}

// waited waits, and reports whether the client is still connected.
func waited(r *http.Request, b Behaviour) bool {
	if b.Delay > 0 {
		timer := time.NewTimer(b.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return false
		}
	}
	if b.Wait != nil {
		select {
		case <-b.Wait:
		case <-r.Context().Done():
			return false
		}
	}
	return true
}

// document counts a request and returns the requested document; nil content means that the client may not have it. It is called with the
// lock held.
func (i *Issuer) document(r *http.Request) (Document, []byte) {
	switch path := r.URL.Path; path {
	case i.discoveryPath():
		i.counts.Discovery++
		return Discovery, i.discovery()
	case i.keysPath():
		i.counts.Keys++
		return Keys, i.keySet()
	default:
		claim, there := i.claims[path]
		if !there {
			return "", nil
		}
		i.counts.Claims++
		if claim.accessToken != "" && r.Header.Get("Authorization") != "Bearer "+claim.accessToken {
			return Claims, nil
		}
		return Claims, []byte(claim.token)
	}
}

func (i *Issuer) discovery() []byte {
	name := i.URL()
	if i.behaviour.Name != "" {
		name = i.behaviour.Name
	}
	var algorithms []string
	for _, key := range i.keys {
		algorithms = append(algorithms, string(key.algorithm))
	}
	document := map[string]any{
		"issuer":                                name,
		"jwks_uri":                              i.origin + i.keysPath(),
		"response_types_supported":              []string{"id_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": algorithms,
	}
	if i.behaviour.NoKeys {
		delete(document, "jwks_uri")
	}
	return marshalled(document)
}

func (i *Issuer) keySet() []byte {
	var set jose.JSONWebKeySet
	for _, key := range i.keys {
		if !key.hidden {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.private.Public(), KeyID: key.id, Algorithm: string(key.algorithm), Use: "sig"})
		}
	}
	return marshalled(set)
}

// marshalled encodes a document of strings and public keys, which always has a JSON form.
func marshalled(document any) []byte {
	out, err := json.Marshal(document)
	if err != nil {
		return []byte(err.Error())
	}
	return out
}
