//go:build integration

package chain

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// healthCheck is the user about which fieldperm asks when it only needs to know whether an authorizer answers.
const healthCheck = "fieldperm:health-check"

type (
	spec   = authorizationv1.SubjectAccessReviewSpec
	status = authorizationv1.SubjectAccessReviewStatus
)

// webhook is a webhook authorizer: an HTTPS server that answers SubjectAccessReviews.
type webhook struct {
	name       string
	kubeconfig string
	server     *httptest.Server
	// decide computes its answer.
	decide func(spec) status

	mu    sync.Mutex
	asked []spec
	// fails is the status code that it answers instead of a decision; 0 for none.
	fails int
	// hangs is closed when the webhook continues; nil if it does not hang.
	hangs chan struct{}
}

func newWebhook(name string, decide func(spec) status) *webhook {
	w := &webhook{name: name, decide: decide}
	w.server = httptest.NewTLSServer(http.HandlerFunc(w.serve))
	return w
}

// introduce writes the kubeconfig of the webhook into dir.
func (w *webhook) introduce(dir string) error {
	var err error
	w.kubeconfig, err = w.introduceAs(dir, w.name)
	return err
}

// introduceAs writes the kubeconfig of the webhook in place of the one of another webhook.
func (w *webhook) introduceAs(dir, name string) (string, error) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw})
	return writeKubeconfig(dir, name, w.server.URL, ca)
}

// close ends the webhook and all waiting requests.
func (w *webhook) close() {
	w.server.CloseClientConnections()
	w.server.Close()
}

// questions returns the questions about users that the webhook received.
func (w *webhook) questions() []spec {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]spec(nil), w.asked...)
}

// fail makes the webhook answer with a status code; 0 ends that.
func (w *webhook) fail(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = code
}

func (w *webhook) serve(out http.ResponseWriter, in *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil || review.APIVersion != "authorization.k8s.io/v1" {
		http.Error(out, "no SubjectAccessReview of v1", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	if review.Spec.User != healthCheck {
		w.asked = append(w.asked, review.Spec)
	}
	fails, hangs := w.fails, w.hangs
	w.mu.Unlock()
	if hangs != nil {
		select {
		case <-hangs:
		case <-in.Context().Done():
			return
		}
	}
	if fails != 0 {
		http.Error(out, "the policy store is away", fails)
		return
	}
	review.Status = w.decide(review.Spec)
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(review) // The client may have closed the connection.
}

// nowhere is the kubeconfig of a webhook that is not running.
func nowhere(dir, name string) (string, error) {
	port, err := cluster.FreePort()
	if err != nil {
		return "", err
	}
	return writeKubeconfig(dir, name, fmt.Sprintf("https://127.0.0.1:%d", port), nil)
}

func writeKubeconfig(dir, name, server string, ca []byte) (string, error) {
	file := filepath.Join(dir, name+".kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", err
	}
	return file, replace(file, string(content))
}

// entry is one authorizer of a chain, as an administrator writes it.
type entry struct {
	name, kubeconfig string
	policy           string // NoOpinion if empty
	timeout          string // 3s if empty
	conditions       []string
}

const chainHead = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
`

func (e entry) String() string {
	if e.policy == "" {
		e.policy = "NoOpinion"
	}
	if e.timeout == "" {
		e.timeout = "3s"
	}
	connection := "{type: InClusterConfig}"
	if e.kubeconfig != "" {
		connection = fmt.Sprintf("{type: KubeConfigFile, kubeConfigFile: %q}", e.kubeconfig)
	}
	var conditions strings.Builder
	for _, condition := range e.conditions {
		fmt.Fprintf(&conditions, "\n    - expression: %q", condition)
	}
	return fmt.Sprintf(`- type: Webhook
  name: %s
  webhook:
    authorizedTTL: 1s
    unauthorizedTTL: 1s
    timeout: %s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: %s
    matchConditions:%s
`, e.name, e.timeout, e.policy, connection, conditions.String())
}

const (
	rbacEntry = "- {type: RBAC, name: rbac}\n"
	inCluster = "in-cluster-authorizer"
)

// chainOf is the content of a configuration file.
func chainOf(entries ...entry) string {
	var out strings.Builder
	out.WriteString(chainHead)
	for _, one := range entries {
		out.WriteString(one.String())
	}
	return out.String()
}
