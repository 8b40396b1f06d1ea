package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
)

// key signs tokens. A hidden key is not in the served set.
type key struct {
	id        string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
	hidden    bool
}

// Rotate creates a new key, which signs all later tokens, and returns its id. If keep is true, the earlier keys stay in the set. Otherwise
// they are removed from it, and Sign can still use them.
func (i *Issuer) Rotate(keep bool) (string, error) { return i.Add(i.config.Algorithm, keep) }

// Add is Rotate with a key of another algorithm.
func (i *Issuer) Add(algorithm string, keep bool) (string, error) {
	private, err := generate(algorithm)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lastKey++
	id := fmt.Sprintf("key-%d", i.lastKey)
	for n := range i.keys {
		i.keys[n].hidden = i.keys[n].hidden || !keep
	}
	i.keys = append(i.keys, key{id: id, algorithm: jose.SignatureAlgorithm(algorithm), private: private})
	return id, nil
}

// Hide removes a key from the served set, or restores it. It returns an error if the key does not exist.
func (i *Issuer) Hide(id string, hidden bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range i.keys {
		if i.keys[n].id == id {
			i.keys[n].hidden = hidden
			return nil
		}
	}
	return fmt.Errorf("issuer %q: has no key %q", i.URL(), id)
}

// PublicKey is the latest public key, in PEM: an attacker that signs with HS256 has this key.
func (i *Issuer) PublicKey() ([]byte, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	der, err := x509.MarshalPKIXPublicKey(i.keys[len(i.keys)-1].private.Public())
	if err != nil {
		return nil, fmt.Errorf("issuer %q: %w", i.URL(), err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func generate(algorithm string) (crypto.Signer, error) {
	switch algorithm {
	case "RS256", "RS384", "RS512", "PS256", "PS384", "PS512":
		return rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	}
	return nil, fmt.Errorf("algorithm %q has no key pair: use RS256, PS256, ES256 or their longer forms", algorithm)
}

// certificates creates a CA, and a certificate of it for a host and localhost.
func certificates(host string) (ca []byte, serving tls.Certificate, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, serving, err
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "issuer's CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	if err != nil {
		return nil, serving, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, serving, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "issuer"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"},
	}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = append(leaf.DNSNames, host)
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), caKey)
	if err != nil {
		return nil, serving, err
	}
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	return ca, tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}, nil
}
