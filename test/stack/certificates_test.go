package stack

import (
	"crypto/x509"
	"path/filepath"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// The serving certificate is not valid for clients, and the client certificate is not valid for servers.
func TestWriteCertificates(t *testing.T) {
	dir := t.TempDir()
	authority, err := cluster.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeCertificates(dir, authority); err != nil {
		t.Fatal(err)
	}
	roots, err := cert.NewPool(filepath.Join(dir, caFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		file, name string
		usage      x509.ExtKeyUsage
		good       bool
	}{
		{servingCert, "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{servingCert, "", x509.ExtKeyUsageClientAuth, false},
		{clientCert, "", x509.ExtKeyUsageClientAuth, true},
		{clientCert, "127.0.0.1", x509.ExtKeyUsageServerAuth, false},
	} {
		found, err := cert.CertsFromFile(filepath.Join(dir, test.file))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %d certificates, %v", test.file, len(found), err)
		}
		_, err = found[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: test.name, KeyUsages: []x509.ExtKeyUsage{test.usage}})
		if (err == nil) != test.good {
			t.Errorf("%s for usage %v: %v, want good: %t", test.file, test.usage, err, test.good)
		}
	}
}
