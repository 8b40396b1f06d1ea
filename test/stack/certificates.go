package stack

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// The names of the certificate files in the directory of the configuration.
const (
	caFile      = "ca.crt"
	servingCert = "serving.crt"
	servingKey  = "serving.key"
	// fieldperm-gen uses these names by default.
	clientCert = "client.crt"
	clientKey  = "client.key"
)

// writeCertificates creates fieldperm's serving certificate and the client certificate of kube-apiserver. The CA's key is in memory only.
func writeCertificates(dir string, authority *cluster.Authority) error {
	bundle, err := authority.Bundle()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, caFile), bundle, 0o600); err != nil {
		return err
	}
	return errors.Join(
		writeServing(dir, authority, time.Time{}),
		writePair(dir, authority, cluster.Leaf{Name: "kube-apiserver", Usage: x509.ExtKeyUsageClientAuth}, clientCert, clientKey),
	)
}

func writeServing(dir string, authority *cluster.Authority, notAfter time.Time) error {
	leaf := cluster.Leaf{Name: "fieldperm", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"127.0.0.1"}, NotAfter: notAfter}
	return writePair(dir, authority, leaf, servingCert, servingKey)
}

// writePair replaces each of the two files atomically. Every rotation of certificates has to do so, because they are read while they are
// replaced.
func writePair(dir string, authority *cluster.Authority, leaf cluster.Leaf, certFile, keyFile string) error {
	certificate, key, err := authority.Issue(leaf)
	if err != nil {
		return err
	}
	return errors.Join(replace(filepath.Join(dir, keyFile), key), replace(filepath.Join(dir, certFile), certificate))
}

func replace(file string, content []byte) error {
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// RotateServing replaces fieldperm's serving certificate, with a new key. A zero notAfter gives a week.
func (s *Stack) RotateServing(notAfter time.Time) error {
	if err := writeServing(s.configuration(""), s.authority, notAfter); err != nil {
		return fmt.Errorf("stack: serving certificate: %w", err)
	}
	return nil
}

// ServeByStranger replaces fieldperm's serving certificate by a certificate of a CA that no client knows. RotateServing ends that.
func (s *Stack) ServeByStranger() error {
	foreign, err := cluster.NewAuthority("fieldperm-foreign")
	if err == nil {
		err = writeServing(s.configuration(""), foreign, time.Time{})
	}
	if err != nil {
		return fmt.Errorf("stack: serving certificate: %w", err)
	}
	return nil
}
