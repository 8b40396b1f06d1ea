package stack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The files of the certificates, in the directory of the configuration.
const (
	caFile      = "ca.crt"
	servingCert = "serving.crt"
	servingKey  = "serving.key"
	// fieldperm-gen names these where it is not told otherwise.
	clientCert = "client.crt"
	clientKey  = "client.key"
)

// certificateLife is longer than anybody keeps a demo running.
const certificateLife = 7 * 24 * time.Hour

// writeCertificates makes a CA that signs what fieldperm serves with and what kube-apiserver shows to it. The CA's
// key is thrown away.
func writeCertificates(dir string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "fieldperm-local"}, key)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	bundle, err := cert.EncodeCertificates(ca)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, caFile), bundle, 0o600); err != nil {
		return err
	}
	for serial, c := range []struct {
		name, certFile, keyFile string
		usage                   x509.ExtKeyUsage
		addresses               []net.IP
	}{
		{"fieldperm", servingCert, servingKey, x509.ExtKeyUsageServerAuth, []net.IP{net.IPv4(127, 0, 0, 1)}},
		{"kube-apiserver", clientCert, clientKey, x509.ExtKeyUsageClientAuth, nil},
	} {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(serial) + 2), Subject: pkix.Name{CommonName: c.name},
			NotBefore: ca.NotBefore, NotAfter: time.Now().Add(certificateLife),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{c.usage}, IPAddresses: c.addresses,
		}
		if err := writePair(template, ca, key, filepath.Join(dir, c.certFile), filepath.Join(dir, c.keyFile)); err != nil {
			return fmt.Errorf("certificate of %q: %w", c.name, err)
		}
	}
	return nil
}

func writePair(template, ca *x509.Certificate, caKey *ecdsa.PrivateKey, certFile, keyFile string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	certificate, err := cert.EncodeCertificates(signed)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(certFile, certificate, 0o600); err != nil {
		return err
	}
	return os.WriteFile(keyFile, private, 0o600)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
