//go:build integration

package patch

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	donothing "github.com/fieldperm/fieldperm/test/noop"
	"github.com/fieldperm/fieldperm/test/process"
	"github.com/fieldperm/fieldperm/test/stack"
)

// plane is a running control plane.
type plane struct {
	*cluster.Cluster
	// stack is nil without fieldperm.
	stack *stack.Stack
	// server and webhook are processes. webhook is that of fieldperm, or of noop.
	server, webhook int
}

// start starts the control plane of that name with the objects of its variants.
func start(ctx context.Context, t *testing.T, name string, all []*variant, objects int) (*plane, error) {
	out := &plane{}
	dir := t.TempDir()
	if name == plain {
		c, err := cluster.Start(ctx, cluster.Config{})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { must(t, c.Stop()) })
		out.Cluster = c
	} else {
		bin, err := e2e.Build()
		if err != nil {
			return nil, err
		}
		config, err := configOf(name, dir)
		if err != nil {
			return nil, err
		}
		config.Bin = bin
		if out.stack, err = stack.Start(ctx, config); err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(out.stack.WebhookLogTail())
			}
			must(t, out.stack.Stop())
		})
		out.Cluster = out.stack.Cluster
	}
	content := new(strings.Builder)
	for _, v := range all {
		content.WriteString(v.role())
		for number := range v.objects(objects) {
			content.WriteString(v.deployment(number))
		}
	}
	switch name {
	case plain:
		address, bundle, err := out.startNoop(ctx, t, dir)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(content, plainObjects, noop, address, donothing.RefusingPath, base64.StdEncoding.EncodeToString(bundle))
	case inProcess:
		if err := out.kubectl(ctx, "create", "-f", definitions); err != nil {
			return nil, err
		}
		if err := out.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", definitions); err != nil {
			return nil, err
		}
		fmt.Fprintf(content, observation, observed)
	}
	file := filepath.Join(dir, "objects.yaml")
	if err := os.WriteFile(file, []byte(content.String()), 0o600); err != nil {
		return nil, err
	}
	if err := out.kubectl(ctx, "create", "-f", file); err != nil {
		return nil, err
	}
	var err error
	if out.server, err = process.ID(out.Dir(), cluster.APIServer); err != nil {
		return nil, err
	}
	if out.stack != nil {
		if out.webhook, err = process.ID(out.stack.Dir(), "fieldperm-webhook"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// configOf returns how fieldperm is installed.
func configOf(name, dir string) (stack.Config, error) {
	switch name {
	case inProcess:
		file := filepath.Join(dir, "authorization.yaml")
		return stack.Config{Arguments: []string{"--authorization-config", file}}, os.WriteFile(file, []byte(rbacInProcess), 0o600)
	case barred:
		file := filepath.Join(dir, "barriers.yaml")
		return stack.Config{Schemas: []string{file}}, os.WriteFile(file, fmt.Appendf(nil, barriers, rootBarred), 0o600)
	}
	return stack.Config{}, nil
}

const rbacInProcess = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: RBAC, name: rbac}
`

const barriers = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: images}
spec:
  uncoveredPermissions: ["granular:image"]
  resources: [{apiGroups: [apps], resources: [deployments]}]
---
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: everything}
spec:
  uncoveredPermissions: ["granular:*"]
  resources: [{apiGroups: [apps], resources: [deployments]}]
  matchConditions: [{name: limited, expression: "request.userInfo.username == '%s'"}]
`

// definitions are those of fieldperm's own kinds.
const definitions = "../../config/crd"

const observation = `---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionObservation
metadata: {name: patches}
spec:
  subjects: [{kind: User, name: %s}]
  resources: [{apiGroups: [apps], resources: [deployments]}]
`

// plainObjects are the policy and the webhook that fieldperm is compared with, each for its own namespace. The policy lets its user change
// the replicas, and refuses images, service accounts and host networks.
const plainObjects = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: fields}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [UPDATE]}]
  validations:
  - expression: "object.spec.template.spec.containers.all(c, oldObject.spec.template.spec.containers.exists(o, o.name == c.name && o.image == c.image))"
    message: image
  - expression: "object.spec.template.spec.?serviceAccountName == oldObject.spec.template.spec.?serviceAccountName"
    message: serviceAccountName
  - expression: "object.spec.template.spec.?hostNetwork == oldObject.spec.template.spec.?hostNetwork"
    message: hostNetwork
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: fields}
spec: {policyName: fields, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: policy}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: noop}
webhooks:
- name: noop.example.com
  rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [UPDATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  clientConfig: {url: "https://%s%s", caBundle: %s}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
`

// startNoop starts the webhook that does nothing. It returns its address and the CA of its certificate.
func (p *plane) startNoop(ctx context.Context, t *testing.T, dir string) (address string, bundle []byte, err error) {
	authority, err := cluster.NewAuthority("noop")
	if err != nil {
		return "", nil, err
	}
	if bundle, err = authority.Bundle(); err != nil {
		return "", nil, err
	}
	certificate, key, err := authority.Issue(cluster.Leaf{Name: "noop", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return "", nil, err
	}
	program, certificateFile, keyFile := filepath.Join(dir, "noop"), filepath.Join(dir, "noop.crt"), filepath.Join(dir, "noop.key")
	for file, content := range map[string][]byte{certificateFile: certificate, keyFile: key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return "", nil, err
		}
	}
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../noop/cmd").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("noop: %w: %s", err, output)
	}
	cmd := exec.Command(program, certificateFile, keyFile) //nolint:gosec // Our own program.
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	t.Cleanup(func() {
		must(t, input.Close())
		must(t, cmd.Wait())
	})
	p.webhook = cmd.Process.Pid
	address, err = bufio.NewReader(output).ReadString('\n')
	return strings.TrimSpace(address), bundle, err
}

// kubectl runs a command of the administrator.
func (p *plane) kubectl(ctx context.Context, arguments ...string) error {
	admin, err := p.User("admin", "system:masters")
	if err != nil {
		return err
	}
	if _, stderr, err := p.Kubectl(admin).Run(ctx, "", arguments...); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
