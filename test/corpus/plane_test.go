//go:build integration

package corpus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// plane is a control plane for all scenarios.
type plane struct {
	stack    *stack.Stack
	recorder *Recorder
	mapper   meta.RESTMapper
	wires    wires
	version  *version.Version
}

// startPlane starts a plane that ends with the test. chain is the AuthorizationConfiguration of fieldperm's own checks, "" for none.
func startPlane(t *testing.T, chain string) *plane {
	t.Helper()
	var arguments []string
	if chain != "" {
		file := filepath.Join(t.TempDir(), "authorization.yaml")
		must(t, os.WriteFile(file, []byte(chain), 0o600))
		arguments = []string{"--authorization-config", file}
	}
	p, err := newPlane(t.Context(), arguments)
	must(t, err)
	t.Cleanup(func() { must(t, p.stop()) })
	return p
}

func newPlane(ctx context.Context, arguments []string) (*plane, error) {
	bin, err := e2e.Build()
	if err != nil {
		return nil, err
	}
	files, err := SchemaFiles(root)
	if err != nil {
		return nil, err
	}
	p := &plane{}
	if p.version, err = cluster.ServerVersion(ctx); err != nil {
		return nil, err
	}
	p.recorder = NewRecorder(recorderUser, func(req *admissionv1.AdmissionRequest) string {
		if req.Namespace != "" {
			return req.Namespace
		}
		return req.Name
	})
	manifest, err := p.recorder.Manifest()
	if err != nil {
		return nil, err
	}
	p.stack, err = stack.Start(ctx, stack.Config{
		Bin: bin, Audit: true,
		Schemas:   files[1:],
		Webhooks:  map[string][]byte{"recorder.json": manifest},
		Arguments: arguments,
	})
	if err == nil {
		err = p.define(ctx, files[0])
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// define installs the CustomResourceDefinitions of a directory as their authors would.
func (p *plane) define(ctx context.Context, dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, path := range paths {
		definition, err := p.stack.Generate(ctx, "crd", "--in", path)
		if err != nil {
			return err
		}
		all.WriteString("---\n" + definition)
	}
	admin, err := p.stack.User(Admin, "system:masters")
	if err != nil {
		return err
	}
	kubectl := p.stack.Kubectl(admin)
	if _, stderr, err := kubectl.Run(ctx, all.String(), "create", "-f", "-"); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	if _, stderr, err := kubectl.Run(ctx, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	if p.mapper, err = newMapper(p.stack.Admin()); err != nil {
		return err
	}
	if err := p.stack.AwaitGrants(ctx); err != nil {
		return err
	}
	for kind, group := range map[string]string{"Application": "argoproj.io", "Kustomization": "kustomize.toolkit.fluxcd.io", "Widget": "example.com", "Preserver": "versions.example.com", "Catchall": "versions.example.com", "Embedder": "versions.example.com", "Nullable": "versions.example.com", "Locker": "versions.example.com"} {
		mapping, err := p.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		if err != nil {
			return err
		}
		if err := p.stack.AwaitKind(ctx, mapping.Resource, kind); err != nil {
			return err
		}
	}
	// Barriers of definitions are in force after fieldperm has written them into its webhook configuration.
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	return p.stack.AwaitBarrier(ctx, widgets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "probe", "namespace": "default"},
		"spec": map[string]any{"dangerous": true},
	}})
}

func (p *plane) stop() error {
	p.recorder.Close()
	if p.stack == nil {
		return nil
	}
	return p.stack.Stop()
}

func newMapper(config *rest.Config) (meta.RESTMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, err
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}
