//go:build integration

package faults

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	// authorizedTTL is the time for which kube-apiserver keeps an Allow here. The default is 10 s.
	authorizedTTL = 3 * time.Second
	// decisionTTL is the time for which fieldperm keeps the decision of a check here. The default is 10 s.
	decisionTTL = time.Second
	// interval is the time between two proofs of enforcement here. The default is 5 s. A busy machine needs one for a round.
	interval = 2 * time.Second
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// configuration is the configuration of every stack here. Decisions are kept for a shorter time than by default, so that the faults do not
// take long.
func configuration(t *testing.T, topology stack.Topology) stack.Config {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	file := filepath.Join(t.TempDir(), "barrier.yaml")
	must(t, os.WriteFile(file, []byte(barrier), 0o600))
	return stack.Config{
		Bin: bin, Schemas: []string{file}, Topology: topology, Replicas: 2, Proxied: true,
		AuthorizedTTL: authorizedTTL, UnauthorizedTTL: time.Second,
		Arguments: []string{"--decision-cache-ttl=" + decisionTTL.String(), "--proof-interval=" + interval.String(), "--release-delay=" + releaseDelay.String()},
	}
}

// TestFaults_Static: fieldperm beside kube-apiserver, admission from static manifests.
func TestFaults_Static(t *testing.T) {
	c := open(t, configuration(t, stack.Static))
	c.start(t)
	c.playAll(t, "static manifests", slices.Concat(faults()[:7], outages(), revocations(), staticTampering()))
}

// TestFaults_REST: fieldperm as in a cluster, admission by webhook objects with a guard.
func TestFaults_REST(t *testing.T) {
	c := open(t, configuration(t, stack.REST))
	c.installKinds(t)
	c.start(t)
	c.playAll(t, "objects of the API server", slices.Concat(faults(), changes(), removal(), tampering()))
}

// faults are failures of fieldperm and of its connection to the API server.
func faults() []fault {
	return []fault{
		{name: "none", lasts: 2 * time.Second, spared: true},
		{name: "kill fieldperm", begin: kill(0, 1), lasts: 2 * time.Second, end: launch(0, 1)},
		{name: "freeze fieldperm", begin: each(syscall.SIGSTOP, 0, 1), lasts: 4 * time.Second, end: each(syscall.SIGCONT, 0, 1)},
		{name: "restart fieldperm", begin: stop(0, 1), end: launch(0, 1)},
		{name: "kill one replica of two", begin: kill(0), lasts: time.Second, end: launch(0)},
		{name: "freeze one replica of two", begin: each(syscall.SIGSTOP, 0), lasts: 4 * time.Second, end: each(syscall.SIGCONT, 0)},
		{name: "serving certificate expires", begin: expire, lasts: 2 * time.Second, end: rotate},
		{name: "serving certificate rotates", begin: rotate, lasts: time.Second},
		{name: "serving certificate of another CA", begin: foreignCertificate, lasts: 2 * time.Second, end: rotate},
		{name: "SubjectAccessReview slow (500 ms)", begin: reviews(slow(500 * time.Millisecond)), lasts: 2 * time.Second, end: reviews(nil)},
		{name: "SubjectAccessReview too slow (4 s)", begin: reviews(slow(4 * time.Second)), lasts: 3 * time.Second, end: reviews(nil)},
		{name: "SubjectAccessReview fails", begin: reviews(failing), lasts: 2 * time.Second, end: reviews(nil)},
		{name: "SubjectAccessReview flaps", begin: reviews(flapping()), lasts: 3 * time.Second, end: reviews(nil)},
		{name: "SubjectAccessReview hangs", begin: reviews(hanging), lasts: 3 * time.Second, end: reviews(nil)},
	}
}

// outages are failures of the control plane itself, which stop all users.
func outages() []fault {
	return []fault{
		{name: "restart kube-apiserver", generic: true, begin: shutdown(cluster.APIServer), end: boot(cluster.APIServer)},
		{name: "kill kube-apiserver", generic: true, begin: crash(cluster.APIServer), end: boot(cluster.APIServer)},
		{name: "restart etcd", generic: true, begin: shutdown(cluster.Etcd), end: boot(cluster.Etcd)},
		{name: "kill etcd", generic: true, begin: crash(cluster.Etcd), end: boot(cluster.Etcd)},
		{name: "fieldperm starts before kube-apiserver", generic: true, begin: func(t *testing.T, c *scene) {
			shutdown(cluster.APIServer)(t, c)
			stop(0, 1)(t, c)
			launch(0, 1)(t, c)
		}, lasts: time.Second, end: boot(cluster.APIServer)},
		{name: "fieldperm starts after kube-apiserver", generic: true, begin: func(t *testing.T, c *scene) {
			stop(0, 1)(t, c)
			shutdown(cluster.APIServer)(t, c)
			boot(cluster.APIServer)(t, c)
		}, lasts: time.Second, end: launch(0, 1)},
	}
}

type action = func(t *testing.T, c *scene)

func each(signal syscall.Signal, replicas ...int) action {
	return func(t *testing.T, c *scene) {
		t.Helper()
		for _, number := range replicas {
			must(t, c.SignalReplica(number, signal))
		}
	}
}

func kill(replicas ...int) action { return each(syscall.SIGKILL, replicas...) }

func stop(replicas ...int) action {
	return func(t *testing.T, c *scene) {
		t.Helper()
		for _, number := range replicas {
			must(t, c.StopReplica(number))
		}
	}
}

// launch starts replicas, which a fault may have killed, and does not wait for them.
func launch(replicas ...int) action {
	return func(t *testing.T, c *scene) {
		t.Helper()
		for _, number := range replicas {
			must(t, c.StopReplica(number))
			must(t, c.LaunchReplica(number))
		}
	}
}

func shutdown(name string) action {
	return func(t *testing.T, c *scene) { t.Helper(); must(t, c.Shutdown(name)) }
}

func boot(name string) action {
	return func(t *testing.T, c *scene) { t.Helper(); must(t, c.Boot(context.WithoutCancel(t.Context()), name)) }
}

func crash(name string) action {
	return func(t *testing.T, c *scene) {
		t.Helper()
		must(t, c.Signal(name, syscall.SIGKILL))
		must(t, c.Shutdown(name))
	}
}

// reload is the maximum time until fieldperm reads a certificate again.
const reload = time.Second

// expire gives fieldperm a certificate that is valid for a moment. API servers with an open connection keep using it, so the test closes
// connections when the certificate is in use, and when it has expired.
func expire(t *testing.T, c *scene) {
	t.Helper()
	must(t, c.RotateServing(time.Now().Add(2*time.Second)))
	time.Sleep(reload)
	c.CutConnections()
	time.Sleep(1200 * time.Millisecond)
	c.CutConnections()
}

func rotate(t *testing.T, c *scene) {
	t.Helper()
	must(t, c.RotateServing(time.Time{}))
	time.Sleep(reload)
	c.CutConnections()
}

func foreignCertificate(t *testing.T, c *scene) {
	t.Helper()
	must(t, c.ServeByStranger())
	time.Sleep(reload)
	c.CutConnections()
}

// reviews is a fault of the SubjectAccessReview API only.
func reviews(fault stack.Fault) action {
	return func(_ *testing.T, c *scene) {
		if fault == nil {
			c.Intercept(nil)
			return
		}
		c.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") && fault(w, r)
		})
	}
}

func slow(by time.Duration) stack.Fault {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(by):
		case <-r.Context().Done():
		}
		return false
	}
}

func failing(w http.ResponseWriter, _ *http.Request) bool {
	http.Error(w, "made up by the test", http.StatusInternalServerError)
	return true
}

func hanging(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// flapping makes every second review fail.
func flapping() stack.Fault {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool { return n.Add(1)%2 == 0 && failing(w, r) }
}
