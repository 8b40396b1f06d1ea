package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// chain is the AuthorizationConfiguration of fieldperm's own checks in the demo: a webhook that returns conditions, a webhook that denies during a
// freeze, then Roles and bindings in process, then the API server. Each webhook is asked about one namespace, the namespace of a story.
const chain = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
` + teams + `- type: Webhook
  name: freeze
  webhook:
    authorizedTTL: 10s
    unauthorizedTTL: 10s
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    matchConditions:
    - expression: has(request.resourceAttributes) && request.resourceAttributes.namespace == 'freeze'
    # Replicas are no change of what runs. The marker is no field, and get no write.
    - expression: "!(request.resourceAttributes.verb in ['get', 'create', 'update', 'patch', 'granular', 'granular:scale'])"
- type: RBAC
  name: rbac
- type: Webhook
  name: in-cluster-authorizer
  webhook:
    authorizedTTL: 10s
    unauthorizedTTL: 10s
    timeout: 3s
    subjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: InClusterConfig}
`

// freeze serves the webhook authorizers of third parties. The one with its name denies every request.
type freeze struct {
	address string
	ca      []byte
	server  *http.Server
	served  chan struct{}
}

func startFreeze() (*freeze, error) {
	f := &freeze{served: make(chan struct{})}
	if err := f.start(); err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	return f, nil
}

func (f *freeze) start() error {
	authority, err := cluster.NewAuthority("freeze")
	if err != nil {
		return err
	}
	if f.ca, err = authority.Bundle(); err != nil {
		return err
	}
	certificate, key, err := authority.Issue(cluster.Leaf{Name: "freeze", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.address = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("/", deny)
	mux.HandleFunc("/teams/authorize", authorizeTeams)
	mux.HandleFunc("/teams/conditions", evaluateTeams)
	f.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}
	go func() {
		defer close(f.served)
		_ = f.server.ServeTLS(listener, "", "")
	}()
	return nil
}

// write puts the chain into a directory, and returns the flag that names it.
func (f *freeze) write(dir string) ([]string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["freeze"] = &clientcmdapi.Cluster{Server: "https://" + f.address, CertificateAuthorityData: f.ca}
	config.Contexts["freeze"] = &clientcmdapi.Context{Cluster: "freeze"}
	config.CurrentContext = "freeze"
	kubeconfig, file := filepath.Join(dir, "freeze.kubeconfig"), filepath.Join(dir, "fieldperm-authorization.yaml")
	ofTeams := filepath.Join(dir, "teams.kubeconfig")
	return []string{"--authorization-config", file}, errors.Join(
		clientcmd.WriteToFile(*config, kubeconfig), writeTeams(ofTeams, f.address, f.ca),
		os.WriteFile(file, fmt.Appendf(nil, chain, ofTeams, kubeconfig), 0o600))
}

func (f *freeze) stop() error {
	// fieldperm has ended, and no client calls the webhook.
	err := f.server.Close()
	<-f.served
	return err
}

func deny(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, "no SubjectAccessReview", http.StatusBadRequest)
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "frozen until Monday"}
	respond(w, review)
}
