package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certificateLife is longer than a local control plane runs.
const certificateLife = 7 * 24 * time.Hour

// Authority signs certificates. Its key is in memory only.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Leaf describes a certificate to sign.
type Leaf struct {
	// Name is the common name.
	Name string
	// Usage is the only purpose for which the certificate is valid.
	Usage x509.ExtKeyUsage
	// Hosts are the DNS names and IP addresses of a server.
	Hosts []string
	// NotAfter is the end of its validity. Zero: a week from now.
	NotAfter time.Time
}

// NewAuthority makes an authority with a key of its own.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %q: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// Bundle returns the authority's own certificate, PEM.
func (a *Authority) Bundle() ([]byte, error) {
	bundle, err := cert.EncodeCertificates(a.certificate)
	if err != nil {
		return nil, fmt.Errorf("certificate authority %q: %w", a.certificate.Subject.CommonName, err)
	}
	return bundle, nil
}

// Issue makes a key and signs a certificate for it, both PEM.
func (a *Authority) Issue(leaf Leaf) (certificate, key []byte, err error) {
	if certificate, key, err = a.issue(leaf); err != nil {
		return nil, nil, fmt.Errorf("certificate of %q: %w", leaf.Name, err)
	}
	return certificate, key, nil
}

func (a *Authority) issue(leaf Leaf) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	if leaf.NotAfter.IsZero() {
		leaf.NotAfter = time.Now().Add(certificateLife)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: leaf.Name},
		NotBefore: a.certificate.NotBefore, NotAfter: leaf.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{leaf.Usage},
	}
	for _, host := range leaf.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if certificate, err = cert.EncodeCertificates(signed); err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return certificate, key, err
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
