package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// authorityLife and servingLife are the lifetimes of the certificates that this package makes. A certificate is renewed when two
	// thirds of its lifetime have passed.
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 90 * 24 * time.Hour

	// backdate is how much the clock of a client that verifies a new certificate may be behind.
	backdate = 5 * time.Minute
)

// authority is a CA that signs serving certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// serving is a serving certificate with its key.
type serving struct {
	leaf                *x509.Certificate
	certificate, keyPEM []byte
}

func (s *serving) equal(other *serving) bool {
	return bytes.Equal(s.certificate, other.certificate) && bytes.Equal(s.keyPEM, other.keyPEM)
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: fmt.Sprintf("fieldperm-ca@%d", now.Unix())},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
		// The CA cannot sign other CAs.
		MaxPathLenZero: true,
	}
	certificate, err := sign(template, &authority{template, key}, key.Public())
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return &authority{certificate, key}, nil
}

// issue makes a serving certificate for names, with a new key.
func (a *authority) issue(names []string, now time.Time) (*serving, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	leaf, err := sign(&x509.Certificate{
		Subject:   pkix.Name{CommonName: names[0]},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(servingLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: names, BasicConstraintsValid: true,
	}, a, key.Public())
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	certificate, err := cert.EncodeCertificates(leaf)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	return &serving{leaf, certificate, private}, nil
}

func sign(template *x509.Certificate, by *authority, public crypto.PublicKey) (*x509.Certificate, error) {
	// 63 random bits, never zero.
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, public, by.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// due returns the time when two thirds of a certificate's lifetime have passed.
func due(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// issued returns the time when this package made a certificate.
func issued(c *x509.Certificate) time.Time { return c.NotBefore.Add(backdate) }

// expired does not check NotBefore. If a certificate seems not to be valid yet, the clock here or the clock where it was made is
// wrong, and a new certificate would not help.
func expired(c *x509.Certificate, now time.Time) bool { return !now.Before(c.NotAfter) }
