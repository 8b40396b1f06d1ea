package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/discovery"
	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// Server is a completed fieldperm-webhook. It runs once.
type Server struct {
	options    Options
	metrics    *metrics.Metrics
	informers  dynamicinformer.DynamicSharedInformerFactory
	schemas    *sources.Live
	resources  *discovery.Watcher
	reviewer   *admission.Reviewer
	authorizer *admission.AuthorizeReviewer
	validator  *admission.SchemaReviewer
	serving    *genericserver.SecureServingInfo
	callers    dynamiccertificates.CAContentProvider
	draining   atomic.Bool
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.serving.Listener.Addr() }

// Run serves until the context ends, then drains: /readyz fails, after --shutdown-delay-duration no
// more connections are taken, and what is being answered is finished. Schemas and permissions stay
// current until the last answer.
func (s *Server) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer s.informers.Shutdown()
	defer stop()

	s.informers.Start(background.Done())
	running.Go(func() { s.resources.Run(background) })
	running.Go(func() {
		// The first read needs the list of definitions; what goes wrong with it the informer logs.
		s.informers.WaitForCacheSync(background.Done())
		s.schemas.Run(background)
	})

	closing := make(chan struct{})
	stopped, _, err := s.serving.Serve(s.handler(), s.options.ShutdownTimeout, closing)
	if err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	<-ctx.Done()
	log.Info("Draining", "delay", s.options.ShutdownDelay)
	s.draining.Store(true)
	time.Sleep(s.options.ShutdownDelay)
	close(closing)
	<-stopped
	log.Info("Drained")
	return nil
}
