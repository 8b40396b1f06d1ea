package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// rbacOnly is the default chain of a cluster, as kubeadm configures it.
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

// configureAPIServer adds the flags that config requires to the flags of envtest.
func configureAPIServer(flags *envtest.Arguments, config Config, dir string) error {
	authorization := config.AuthorizationConfig
	if authorization == "" {
		authorization = filepath.Join(dir, "authorization.yaml")
		if err := os.WriteFile(authorization, []byte(rbacOnly), 0o600); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
	}
	// kube-apiserver refuses a configuration file together with the mode that envtest sets by default.
	flags.Disable("authorization-mode")
	flags.Set("authorization-config", authorization)

	// On a machine without a network kube-apiserver finds no address to publish, and ends. The tests do not read the endpoints of the
	// Service "kubernetes", and a loopback address is not allowed in them: this address is reserved for documentation.
	flags.Set("advertise-address", "203.0.113.1")

	// Without it an open watch delays the end of the server by a minute.
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
