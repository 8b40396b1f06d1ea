package certificates

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The keys of the Secret in addition to tls.crt and tls.key.
const (
	// keyBundle has the CAs to trust. The CA that signs is first.
	keyBundle = "ca.crt"
	// keyAuthority has the private key of the CA that signs.
	keyAuthority = "ca.key"
)

// material is the usable content of the Secret. The zero material is empty.
type material struct {
	// authority is the CA that signs; nil if there is no usable one.
	authority *authority
	// bundle is the CAs that callers must trust, the authority first. None of them has expired.
	bundle []*x509.Certificate
	// serving is nil if no certificate would be accepted, for all names, by a caller that trusts the bundle.
	serving *serving
}

// decode reads the data of the Secret. Each error names a part that cannot be used; the other parts can be used.
func decode(data map[string][]byte, names []string, now time.Time) (material, []error) {
	var m material
	var errs []error
	certificates, err := cert.ParseCertsPEM(data[keyBundle])
	if err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", keyBundle, err))
	}
	for _, c := range certificates {
		switch {
		case !c.IsCA:
			errs = append(errs, fmt.Errorf("%s: %q is no CA", keyBundle, c.Subject.CommonName))
		case expired(c, now):
			errs = append(errs, fmt.Errorf("%s: %q holds from %s to %s only", keyBundle, c.Subject.CommonName, c.NotBefore, c.NotAfter))
		default:
			m.bundle = append(m.bundle, c)
		}
	}
	if len(certificates) > 0 {
		key, err := signer(data[keyAuthority], certificates[0])
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", keyAuthority, err))
		case len(m.bundle) > 0 && m.bundle[0] == certificates[0]:
			m.authority = &authority{certificates[0], key}
		}
	}
	if m.serving, err = decodeServing(data, m.bundle, names, now); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", corev1.TLSCertKey, err))
	}
	return m, errs
}

// signer returns the private key if it belongs to the certificate.
func signer(keyPEM []byte, of *x509.Certificate) (crypto.Signer, error) {
	parsed, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", parsed)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(of.PublicKey) {
		return nil, fmt.Errorf("is not the key of %q", of.Subject.CommonName)
	}
	return key, nil
}

func decodeServing(data map[string][]byte, bundle []*x509.Certificate, names []string, now time.Time) (*serving, error) {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, c := range bundle {
		roots.AddCert(c)
		now = later(now, c.NotBefore)
	}
	// The check ignores NotBefore, for the reason that expired gives.
	now = later(now, leaf.NotBefore)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := leaf.VerifyHostname(name); err != nil {
			return nil, err
		}
	}
	return &serving{leaf, data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]}, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// encode is the inverse of decode. The material must be complete.
func (m material) encode() (map[string][]byte, error) {
	if m.authority == nil || m.serving == nil {
		return nil, errors.New("certificates: there is no authority or no certificate to write")
	}
	bundle, err := cert.EncodeCertificates(m.bundle...)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(m.authority.key)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	return map[string][]byte{
		corev1.TLSCertKey: m.serving.certificate, corev1.TLSPrivateKeyKey: m.serving.keyPEM,
		keyBundle: bundle, keyAuthority: key,
	}, nil
}
