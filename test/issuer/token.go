package issuer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
)

// lifetime is the default validity of a token.
const lifetime = time.Hour

// Token describes how a token is made. The zero value gives a correct token.
type Token struct {
	// KeyID is the key that signs; "" for the latest. It need not be in the served set.
	KeyID string
	// ClaimedKeyID is the `kid` in the token's header; "" for KeyID, "-" for no `kid`.
	ClaimedKeyID string
	// Algorithm is the algorithm of the signature; "" for the key's. "none" gives no signature. HS256 signs with Secret.
	Algorithm string
	Secret    []byte
	// Expired makes a token that expired a minute ago.
	Expired bool
}

// Sign makes a token of claims. `iss`, `iat` and `exp` are added if they are missing; a claim with the value nil is left out, so that a
// test can leave out each of them.
func (i *Issuer) Sign(claims map[string]any, t Token) (string, error) {
	now := time.Now()
	all := map[string]any{"iss": i.URL(), "iat": now.Unix(), "exp": now.Add(lifetime).Unix()}
	if t.Expired {
		all["iat"], all["exp"] = now.Add(-lifetime).Unix(), now.Add(-time.Minute).Unix()
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("issuer %q: claims: %w", i.URL(), err)
	}
	signing, kid, err := i.signing(t)
	if err != nil {
		return "", fmt.Errorf("issuer %q: %w", i.URL(), err)
	}
	if t.Algorithm == "none" {
		return unsigned(payload, kid)
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		options = options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(signing, options)
	if err != nil {
		return "", fmt.Errorf("issuer %q: %w", i.URL(), err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("issuer %q: sign: %w", i.URL(), err)
	}
	return signed.CompactSerialize()
}

// signing returns the signing key, and the `kid` for the header.
func (i *Issuer) signing(t Token) (jose.SigningKey, string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	chosen := i.keys[len(i.keys)-1]
	if t.KeyID != "" {
		found := false
		for _, key := range i.keys {
			if key.id == t.KeyID {
				chosen, found = key, true
			}
		}
		if !found {
			return jose.SigningKey{}, "", fmt.Errorf("has no key %q", t.KeyID)
		}
	}
	kid := chosen.id
	switch t.ClaimedKeyID {
	case "":
	case "-":
		kid = ""
	default:
		kid = t.ClaimedKeyID
	}
	signing := jose.SigningKey{Algorithm: chosen.algorithm, Key: chosen.private}
	if t.Algorithm != "" {
		signing.Algorithm = jose.SignatureAlgorithm(t.Algorithm)
	}
	if t.Secret != nil {
		signing.Key = t.Secret
	}
	return signing, kid, nil
}

// unsigned makes a token without signature, which the library refuses to make.
func unsigned(payload []byte, kid string) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "none", "typ": "JWT", "kid": kid})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload) + ".", nil
}
