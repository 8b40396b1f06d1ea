//go:build integration

package chain

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	awaitTimeout = 30 * time.Second
	pollInterval = 50 * time.Millisecond
)

// eventually calls f until it returns no error.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	deadline := time.After(awaitTimeout)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("still after %s: %v", awaitTimeout, err)
		case <-ticker.C:
		}
	}
}

// get asks fieldperm with kube-apiserver's certificate.
func (s *scene) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Get(s.WebhookURL() + path)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}

func (s *scene) metrics(t *testing.T) string {
	t.Helper()
	code, body := s.get(t, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d: %s", code, body)
	}
	return body
}

// series returns the lines of a metric that have all labels, "" if there are none.
func series(metrics, name string, labels ...string) string {
	var out strings.Builder
next:
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue next
			}
		}
		out.WriteString(line)
	}
	return out.String()
}
