package server

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	componenttracing "k8s.io/component-base/tracing"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/metrics"
)

// Server is a completed fieldperm-webhook. It can run once. Its parts are in the order in which they are made; each needs only parts
// before it.
type Server struct {
	options       Options
	metrics       *metrics.Metrics
	tracer        componenttracing.TracerProvider
	schemas       *schemas
	certificates  *servingCertificates
	enforcement   *enforcement
	barriers      *barriers
	observations  *observations
	authorization *authorization
	draining      atomic.Bool
	// closing is whether the server accepts no more connections.
	closing atomic.Bool
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.certificates.serving.Listener.Addr() }

// Run serves until the context ends. Then it drains: /readyz fails, after --shutdown-delay-duration the server accepts no more
// connections, and requests in progress finish. Schemas and permissions stay current until the last response.
func (s *Server) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	if limit := memoryLimit(s.options.MemoryLimit); limit > 0 {
		// With the limit set, the garbage collector runs often enough to stay below it.
		debug.SetMemoryLimit(limit)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	start := func(ctx context.Context, components []component) {
		for _, c := range components {
			running.Go(func() {
				c.Run(ctx)
				log.V(4).Info("Ended", "component", c.name)
			})
		}
	}
	defer s.schemas.informers.Shutdown()
	for _, factory := range s.enforcement.informers {
		defer factory.Shutdown()
	}
	defer s.schemas.objects.Wait()
	defer s.schemas.policyObjects.Wait()
	defer s.observations.objects.Wait()
	defer stop()

	s.schemas.informers.Start(background.Done())
	for _, factory := range s.enforcement.informers {
		factory.Start(background.Done())
	}
	s.enforcement.broadcaster.StartRecordingToSink(background.Done())
	defer s.enforcement.broadcaster.Shutdown()
	start(background, s.components())

	if err := s.certificates.follow(ctx, background); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	closing := make(chan struct{})
	stopped, _, err := s.certificates.serving.Serve(s.handler(), s.options.ShutdownTimeout, closing)
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	// Probes come back to this server, so it must serve before it sends the first one.
	proving, stopProving := context.WithCancel(background)
	defer stopProving()
	running.Go(func() { s.prove(proving, start) })
	if s.enforcement.release != nil {
		start(background, []component{{"release", s.enforcement.release}})
	}
	<-ctx.Done()
	s.awaitRelease(log)
	log.Info("Draining", "delay", s.options.ShutdownDelay)
	s.draining.Store(true)
	time.Sleep(s.options.ShutdownDelay)
	stopProving() // The server is closing. A probe would reach another server.
	s.closing.Store(true)
	close(closing)
	<-stopped
	// Flush the last spans. An error is only logged: the collector may be gone, and all responses have been sent.
	flushing, cancel := context.WithTimeout(background, flushTimeout)
	defer cancel()
	if err := s.tracer.Shutdown(flushing); err != nil {
		log.Error(err, "The last spans were not sent")
	}
	log.Info("Drained")
	return nil
}

const flushTimeout = 2 * time.Second

// components returns the components that run from the start to the last response, in the order of the start.
func (s *Server) components() []component {
	out := []component{
		{"discovery", s.schemas.resources},
		{"schemas", s.schemas},
		{"policies", s.schemas.policies},
		{"status", s.barriers.status},
		{"authorization", s.authorization.chain},
	}
	if s.authorization.tokens != nil {
		out = append(out, component{"authentication", s.authorization.tokens})
	}
	if s.barriers.keeper != nil {
		out = append(out, component{"barriers", s.barriers.keeper}, component{"observations", s.observations.keeper})
	}
	return out
}

// prove starts the components that send probes, as soon as they can succeed. They end before the server stops to accept connections,
// because probes come back to it.
func (s *Server) prove(ctx context.Context, start func(context.Context, []component)) {
	if err := wait.PollUntilContextCancel(ctx, startPoll, true, func(context.Context) (bool, error) { return s.enforcement.ready(), nil }); err != nil {
		return
	}
	components := []component{{"enforcement", s.enforcement}}
	if s.barriers.proof != nil {
		components = append(components, component{"probes", s.barriers.proof})
	}
	start(ctx, components)
}

// awaitRelease continues to serve while a webhook configuration waits for its release: no other component removes the finalizer.
// The operator of the process bounds the time.
func (s *Server) awaitRelease(log klog.Logger) {
	if s.enforcement.release == nil || !s.enforcement.release.Pending() {
		return
	}
	log.Info("The webhook configuration is being deleted: serving until it is released", "configuration", s.options.WebhookConfiguration)
	for s.enforcement.release.Pending() {
		time.Sleep(releasePoll)
	}
}

const (
	releasePoll = 100 * time.Millisecond
	startPoll   = 20 * time.Millisecond
)
