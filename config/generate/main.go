// Generate writes the generated objects of fieldperm-gen to the kustomize base and to the Helm chart. Run it in the folder config.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := objects()
	if err != nil {
		return err
	}
	definitions, err := crds()
	if err != nil {
		return err
	}
	files["crds.yaml"] = definitions
	for _, dir := range []string{"base", filepath.Join("..", "charts", "fieldperm", "files")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// caBundle matches the line caBundle of a generated webhook.
var caBundle = regexp.MustCompile(`(?m)^ *caBundle: .*\n`)

// objects returns the objects of fieldperm in the cluster, by file name. They have no CA: fieldperm, cert-manager or an overlay
// sets it, and the generator does not know it.
func objects() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "left-out"}, key)
	if err != nil {
		return nil, err
	}
	bundle, err := cert.EncodeCertificates(ca)
	if err != nil {
		return nil, err
	}
	generated, err := generators.Manifests(generators.Options{
		// ServiceURL and ConfigDir are only for the files of the control plane, which are not written here.
		Options: webhooks.Options{
			ServiceURL: "https://fieldperm.fieldperm-system.svc", CABundle: bundle,
			Service: &webhooks.ServiceReference{Namespace: "fieldperm-system", Name: "fieldperm"},
		},
		ConfigDir: "/etc/kubernetes/fieldperm", REST: true,
	})
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, file := range generated {
		switch file.Name {
		case "webhooks.yaml":
			out[file.Name] = caBundle.ReplaceAll(file.Data, nil)
		case "guard.yaml", "rbac.yaml", "flowschema.yaml":
			out[file.Name] = file.Data
		}
	}
	if len(out) != 4 {
		return nil, fmt.Errorf("generators: wrote %d of the 4 files for the cluster", len(out))
	}
	return out, nil
}

// crds returns the definitions of config/crd as one file, because kustomize reads no file outside its folder.
func crds() ([]byte, error) {
	names, err := filepath.Glob(filepath.Join("crd", "fieldperm.dev_*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("config/crd: has no definitions")
	}
	out := []byte("# Copied from config/crd by go generate.\n")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, "---\n"...)
		out = append(out, bytes.TrimPrefix(data, []byte("---\n"))...)
	}
	return out, nil
}
