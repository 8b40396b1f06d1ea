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

// The files of the certificates, in the directory of the configuration.
const (
	caFile      = "ca.crt"
	servingCert = "serving.crt"
	servingKey  = "serving.key"
	// fieldperm-gen names these where it is not told otherwise.
	clientCert = "client.crt"
	clientKey  = "client.key"
)

// writeCertificates makes what fieldperm serves with and what kube-apiserver shows to it. The CA's key is in memory only.
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

// writePair replaces both files, each at once, as whoever rotates certificates has to: they are read while they are
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

// RotateServing replaces what fieldperm serves with, under a key of its own. A zero notAfter gives a week.
func (s *Stack) RotateServing(notAfter time.Time) error {
	if err := writeServing(s.configuration(""), s.authority, notAfter); err != nil {
		return fmt.Errorf("stack: serving certificate: %w", err)
	}
	return nil
}

// ServeByStranger replaces what fieldperm serves with by a pair that a CA has signed of which nobody was told.
// RotateServing ends that.
func (s *Stack) ServeByStranger() error {
	stranger, err := cluster.NewAuthority("fieldperm-stranger")
	if err == nil {
		err = writeServing(s.configuration(""), stranger, time.Time{})
	}
	if err != nil {
		return fmt.Errorf("stack: serving certificate: %w", err)
	}
	return nil
}
