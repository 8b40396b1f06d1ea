//go:build integration

package corpus

import (
	"io"
	"net/http"
	"regexp"
	"testing"
)

// inCluster asks the API server under another name, as fieldperm does without a configuration file.
const inCluster = `
- type: Webhook
  name: api-server
  webhook:
    authorizedTTL: 10s
    unauthorizedTTL: 10s
    timeout: 3s
    subjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: InClusterConfig}
`

const chainHead = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:`

// TestCluster_KEP3221_Chains runs every scenario with fieldperm's own checks in a chain that a file configures. The results must be the
// same. Each authorizer of the chain must have allowed a check.
func TestCluster_KEP3221_Chains(t *testing.T) {
	if *update {
		t.Skip("TestCluster_Scenarios records the results")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		chain   string
		allowed []string
	}{
		"in-cluster": {
			chain: chainHead + inCluster,
			// The API server decides by RBAC, and it is the only authorizer.
			allowed: []string{`name="api-server",type="Webhook"`},
		},
		"rbac-and-in-cluster": {
			chain:   chainHead + "\n- {type: RBAC, name: rbac}" + inCluster,
			allowed: []string{`name="rbac",type="RBAC"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plane := startPlane(t, c.chain)
			t.Run("scenarios", plane.runAll)
			metrics := plane.metrics(t)
			for _, labels := range c.allowed {
				counted := regexp.MustCompile(`(?m)^apiserver_authorization_decisions_total\{decision="allowed",` + labels + `\} [1-9]`)
				if !counted.MatchString(metrics) {
					t.Errorf("no check was allowed by %s: the chain is another one", labels)
				}
			}
		})
	}
}

// metrics are the metrics of fieldperm.
func (p *plane) metrics(t *testing.T) string {
	t.Helper()
	client, err := p.stack.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Get(p.stack.WebhookURL() + "/metrics")
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %s: %s", response.Status, body)
	}
	return string(body)
}
