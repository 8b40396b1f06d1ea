package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/test/cluster"
)

const (
	// readyTimeout limits the start of fieldperm.
	readyTimeout = 60 * time.Second
	// stopTimeout is the time after which fieldperm is killed if it does not end by itself.
	stopTimeout = 10 * time.Second
)

// StartWebhook starts every replica of fieldperm-webhook after StopWebhook, and returns when all are ready.
func (s *Stack) StartWebhook(ctx context.Context) error {
	for number := range s.replicas {
		if err := s.LaunchReplica(number); err != nil {
			return err
		}
	}
	for number := range s.replicas {
		if err := s.AwaitReplica(ctx, number); err != nil {
			return err
		}
	}
	return nil
}

// StopWebhook ends every replica of fieldperm-webhook. It does nothing if none is running.
func (s *Stack) StopWebhook() error {
	var errs []error
	for number := range s.replicas {
		errs = append(errs, s.StopReplica(number))
	}
	return errors.Join(errs...)
}

// WebhookLogTail returns the last lines of every replica's log.
func (s *Stack) WebhookLogTail() string {
	var tails []string
	for number := range s.replicas {
		tails = append(tails, s.ReplicaLogTail(number))
	}
	return strings.Join(tails, "\n")
}

// ReplicaLogTail returns the last lines of a replica's log.
func (s *Stack) ReplicaLogTail(number int) string {
	return cluster.LogTail(s.replicaLog(s.replicas[number]))
}

// APIServerLogTail returns the last lines of kube-apiserver's log.
func (s *Stack) APIServerLogTail() string {
	return cluster.LogTail(filepath.Join(s.Cluster.Dir(), "kube-apiserver.log"))
}

func expectOK(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// WebhookURL is the address at which kube-apiserver calls fieldperm, without a slash at the end.
func (s *Stack) WebhookURL() string { return s.url }

// WebhookClient returns a client that fieldperm accepts as the kube-apiserver.
func (s *Stack) WebhookClient() (*http.Client, error) {
	roots, err := cert.NewPool(s.configuration(caFile))
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	own, err := tls.LoadX509KeyPair(s.configuration(clientCert), s.configuration(clientKey))
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{own}}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, Timeout: 30 * time.Second}, nil
}
