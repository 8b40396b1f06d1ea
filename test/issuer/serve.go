package issuer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
)

// Document is one of those that an issuer serves.
type Document string

// The documents of an issuer.
const (
	Discovery Document = "discovery"
	Keys      Document = "keys"
	Claims    Document = "claims"
)

// Behaviour is how an issuer departs from an honest one in good health. The zero value does not.
type Behaviour struct {
	// Name is what the discovery document has as `issuer`; "" for URL.
	Name string
	// Only names the document that Status, Body, Delay and Wait are about; "" for all.
	Only Document
	// Status is answered in place of 200; 0 for 200.
	Status int
	// Body is answered in place of the document; "" for the document.
	Body string
	// Delay is how long each answer takes.
	Delay time.Duration
	// Wait is closed when answers are to go on; nil does not wait.
	Wait <-chan struct{}
	// KeysFor is how long clients may keep the keys (Cache-Control: max-age); 0 for not at all.
	KeysFor time.Duration
	// NoKeys leaves jwks_uri out of the discovery document.
	NoKeys bool
}

// Behave makes an issuer behave like that from the next request on.
func (i *Issuer) Behave(b Behaviour) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.behaviour = b
}

// Counts are the requests for each document, those that had no good answer too.
type Counts struct{ Discovery, Keys, Claims int }

// Requests returns how many there were since Start. A request counts before it is answered.
func (i *Issuer) Requests() Counts {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counts
}

// distributed is a claim that is fetched from the issuer.
type distributed struct{ accessToken, token string }

// Distribute serves a token for whoever comes with an access token ("" for anybody), and returns the
// claims that say so, to be added to those of another token (OpenID Connect Core 1.0, section 5.6.2).
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

// answer is the whole of the server.
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
		// A return would be an empty 200, which may still reach a client that is just leaving.
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

// waited reports whether there is still anybody to answer.
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

// document counts a request and returns what it is for; nil content is not for who asks. It is called
// with the lock held.
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

// marshalled is called with what is made here of strings and public keys, which has a JSON form.
func marshalled(document any) []byte {
	out, err := json.Marshal(document)
	if err != nil {
		return []byte(err.Error())
	}
	return out
}
