package configfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Faults are logged, and a fault of a kubeconfig could quote a credential.
func TestNoFaultQuotesACredential(t *testing.T) {
	const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://x"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	for name, users := range map[string]string{
		"a number":          "users: [{name: u, user: {token: 8211112345678901}}]\n",
		"a user that is it": "users: [{name: u, user: s3cr3t-token}]\n",
		"a list":            "users: [{name: u, user: {token: [s3cr3t-token]}}]\n",
		"exec's env":        "users: [{name: u, user: {exec: {apiVersion: v1, command: x, env: [s3cr3t-token]}}}]\n",
		"a colon":           "users:\n- name: u\n  user:\n    token: s3cr3t-token: more\n",
		"a tag":             "users:\n- name: u\n  user:\n    token: !s3cr3t-token\n",
		"an alias":          "users:\n- name: u\n  user:\n    token: *s3cr3t-token\n",
		"quotes":            "users:\n- name: u\n  user:\n    password: 's3cr3t-token'x\n",
		"key data":          "users: [{name: u, user: {client-key-data: s3cr3t-token}}]\n",
		"twice":             "users: [{name: u, user: {token: s3cr3t-token, token: s3cr3t-token2}}]\n",
		"both":              "users: [{name: u, user: {username: s3cr3t-token, token: x, password: y}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(kubeconfig+users), 0o600); err != nil {
				t.Fatal(err)
			}
			loaded, err := LoadAuthorization("f", fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: w
  webhook: {timeout: 1s, subjectAccessReviewVersion: v1, failurePolicy: Deny, authorizedTTL: 1s, unauthorizedTTL: 1s, connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}}
`, file))
			text := fmt.Sprint(err)
			if loaded != nil {
				text += strings.Join(loaded.Warnings, "\n")
			}
			if strings.Contains(text, "s3cr3t-token") || strings.Contains(text, "8211112345678901") {
				t.Errorf("it is quoted: %s", text)
			}
		})
	}
}
