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
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"
	componenttracing "k8s.io/component-base/tracing"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/authn"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/certificates"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/probe"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/status"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

// Server is a completed fieldperm-webhook. It can run once.
type Server struct {
	options     Options
	metrics     *metrics.Metrics
	informers   dynamicinformer.DynamicSharedInformerFactory
	schemas     *sources.Live
	objects     *sources.Objects
	status      *status.Writer
	barriers    *uncovered.Keeper
	probes      *probe.Probes // nil without barriers
	written     *probe.Objects
	guarded     guarded
	resources   *allowlist.Watcher
	reviewer    *admission.Reviewer
	authorizer  *admission.AuthorizeReviewer
	validator   *admission.SchemaReviewer
	serving     *genericserver.SecureServingInfo
	callers     dynamiccertificates.CAContentProvider
	typed       []informers.SharedInformerFactory
	chain       *authz.Chain
	tokens      *authn.Authenticator // nil without --authentication-config
	keys        *interlock.Keyring
	canaries    *interlock.Canaries
	interlock   *interlock.Interlock
	servers     interlock.Servers
	release     *interlock.Release
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	certificate *certificates.Keeper
	webhookCA   *dynamiccertificates.DynamicFileCAContent
	webhookCAs  func() []byte // nil accepts any CA
	tracer      componenttracing.TracerProvider
	draining    atomic.Bool
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.serving.Listener.Addr() }

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
	defer s.informers.Shutdown()
	for _, factory := range s.typed {
		defer factory.Shutdown()
	}
	defer s.objects.Wait()
	defer stop()

	s.informers.Start(background.Done())
	for _, factory := range s.typed {
		factory.Start(background.Done())
	}
	s.broadcaster.StartRecordingToSink(background.Done())
	defer s.broadcaster.Shutdown()
	running.Go(func() { s.resources.Run(background) })
	running.Go(func() {
		// The first read needs the list of definitions. The informer logs any error of the list.
		s.informers.WaitForCacheSync(background.Done())
		s.schemas.Run(background)
	})
	running.Go(func() { s.status.Run(background) })
	running.Go(func() { s.chain.Run(background) })
	if s.tokens != nil {
		running.Go(func() { s.tokens.Run(background) })
	}
	if s.barriers != nil {
		running.Go(func() { s.barriers.Run(background) })
	}

	if err := s.followCertificates(ctx, background); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	closing := make(chan struct{})
	stopped, _, err := s.serving.Serve(s.handler(), s.options.ShutdownTimeout, closing)
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	// Probes come back to this server, so it must serve before it sends the first one.
	proving, stopProving := context.WithCancel(background)
	defer stopProving()
	running.Go(func() { s.runInterlock(proving) })
	if s.release != nil {
		running.Go(func() { s.release.Run(background) })
	}
	<-ctx.Done()
	s.awaitRelease(log)
	log.Info("Draining", "delay", s.options.ShutdownDelay)
	s.draining.Store(true)
	time.Sleep(s.options.ShutdownDelay)
	stopProving() // Probes can no longer come back to this server.
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

// runInterlock waits for discovery first: before that, /authorize lets no probe through. It also waits for the schemas: before
// that, /admit cannot decide the requests that /authorize lets through.
func (s *Server) runInterlock(ctx context.Context) {
	if err := wait.PollUntilContextCancel(ctx, startPoll, true, func(context.Context) (bool, error) {
		return s.resources.Ready() == nil && s.schemas.Ready() == nil, nil
	}); err != nil {
		return
	}
	var following sync.WaitGroup
	following.Go(func() { s.followManifests(ctx) })
	if s.probes != nil {
		following.Go(func() { s.probes.Run(ctx) })
	}
	s.interlock.Run(ctx)
	following.Wait()
}

// awaitRelease continues to serve while a webhook configuration waits for its release: no other component removes the finalizer.
// The operator of the process bounds the time.
func (s *Server) awaitRelease(log klog.Logger) {
	if s.release == nil || !s.release.Pending() {
		return
	}
	log.Info("The webhook configuration is being deleted: serving until it is released", "configuration", s.options.WebhookConfiguration)
	for s.release.Pending() {
		time.Sleep(releasePoll)
	}
}

const (
	releasePoll = 100 * time.Millisecond
	startPoll   = 20 * time.Millisecond
)
