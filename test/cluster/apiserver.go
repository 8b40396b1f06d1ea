package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// rbacOnly is the chain of a cluster that was given none: what kubeadm sets up.
const rbacOnly = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Node
  name: node
- type: RBAC
  name: rbac
`

// auditPolicy logs each request once, when it is answered. Level Metadata has the annotations of authorizers and of
// admission webhooks.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// configureAPIServer sets the flags of kube-apiserver that config asks for, on top of envtest's.
func configureAPIServer(flags *envtest.Arguments, config Config, dir string) error {
	authorization := config.AuthorizationConfig
	if authorization == "" {
		authorization = filepath.Join(dir, "authorization.yaml")
		if err := os.WriteFile(authorization, []byte(rbacOnly), 0o600); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
	}
	// kube-apiserver refuses a configuration file beside the mode that envtest sets by default.
	flags.Disable("authorization-mode")
	flags.Set("authorization-config", authorization)

	// On a machine without a network kube-apiserver finds no address to publish, and ends. Nothing reads the endpoints of
	// the Service "kubernetes" here, and a loopback address is not allowed in them: this one is for documentation.
	flags.Set("advertise-address", "203.0.113.1")

	// Without it an open watch holds up the end of the server for a minute.
	flags.Set("shutdown-watch-termination-grace-period", "1s")

	if config.AuthenticationConfig != "" {
		flags.Set("authentication-config", config.AuthenticationConfig)
	}
	if config.AdmissionConfig != "" {
		flags.Set("admission-control-config-file", config.AdmissionConfig)
	}
	if config.AuditLog != "" {
		policy := filepath.Join(dir, "audit-policy.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		flags.Set("audit-policy-file", policy)
		flags.Set("audit-log-path", config.AuditLog)
	}
	for name, values := range config.ExtraArgs {
		flags.Set(name, values...)
	}
	return nil
}
