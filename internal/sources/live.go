package sources

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/discovery"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/schema"
)

// attemptTimeout bounds one read of the API server; the first reads every document.
const attemptTimeout = 60 * time.Second

func timing() refresh.Timing {
	return refresh.Timing{Interval: 30 * time.Second, Settle: 200 * time.Millisecond, FirstRetry: time.Second, LastRetry: 8 * time.Second}
}

// Config is what a Live follows.
type Config struct {
	// Files are the administrator's schema files or directories.
	Files []string
	// OpenAPI is the API server's.
	OpenAPI openapi.ClientWithContext
	// Services returns who serves the groups of the API server.
	Services func(context.Context) (discovery.Services, error)
	// Definitions returns the CustomResourceDefinitions of the API server, as an informer holds them.
	Definitions func() ([]*unstructured.Unstructured, error)
	// Synced reports whether Definitions has them all.
	Synced func() bool
	// Objects returns the PermissionSchemas and UncoveredPermissionSets of the API server, as informers
	// hold them that may run until the context ends; see Objects.List. Nil: there are none.
	Objects func(context.Context) ([]*unstructured.Unstructured, error)
	// Compiled is told of every compile, LoadFailed of every failure to read; nil for nobody.
	Compiled   func(compiled, failed, faults int, at time.Time, took time.Duration)
	LoadFailed func()
}

// Live is the permission schema in force. There is none until Ready: the API server may have barriers, which nobody may
// pass while they are not read.
type Live struct {
	config Config
	base   schema.Documents
	// proposed is compiled after all else; only Once has it.
	proposed proposal
	loop     *refresh.Loop
	current  atomic.Pointer[state]
	// unread is why the API server has not been read, in words, while that is so.
	unread atomic.Pointer[string]

	// mu guards what Refresh works on.
	mu          sync.Mutex
	services    discovery.Services
	published   published
	definitions definitions
	objects     objects
}

// state is replaced, never changed. It has no schema before Ready.
type state struct {
	schema    *schema.Schema
	documents schema.Documents
	faults    []error
	// unmatched are about kinds that may come later.
	unmatched []error
	objects   []ObjectState
	unknown   map[runtimeschema.GroupKind]bool
}

// New compiles what needs no API server. A faulty file is an error that names file and place.
func New(ctx context.Context, config Config) (*Live, error) {
	started := time.Now()
	base, compiled, unmatched, err := Files(config.Files)
	if err != nil {
		return nil, err
	}
	for _, err := range unmatched {
		klog.FromContext(ctx).Info("A permission schema is about what is not known yet", "err", err)
	}
	l := newLive(config, base)
	l.report(compiled, 0, started)
	return l, nil
}

func newLive(config Config, base schema.Documents) *Live {
	l := &Live{
		config: config, base: base, loop: refresh.New(timing()),
		published:   published{client: config.OpenAPI, known: map[string]groupVersion{}},
		definitions: definitions{list: config.Definitions, known: map[string]*definition{}},
		objects:     objects{list: config.Objects, known: map[objectKey]*object{}},
	}
	l.current.Store(&state{})
	return l
}

// Schema returns the schema in force, nil before Ready.
func (l *Live) Schema() *schema.Schema {
	return l.current.Load().schema
}

// Documents returns what the schema in force was compiled from, nil before Ready. They must not be
// changed.
func (l *Live) Documents() *schema.Documents {
	s := l.current.Load()
	if s.schema == nil {
		return nil
	}
	return &s.documents
}

// Unknown returns the kinds whose barriers are not known, because a document about them was never good.
// They must not be changed.
func (l *Live) Unknown() map[runtimeschema.GroupKind]bool { return l.current.Load().unknown }

// Faults returns what is wrong with the documents now. Where a document was good before, that is
// still in force.
func (l *Live) Faults() []error { return l.current.Load().faults }

// Objects returns the objects of the cluster as the schema in force was compiled from them, in the
// order of kinds and names. They must not be changed.
func (l *Live) Objects() []ObjectState { return l.current.Load().objects }

// Ready is nil once the API server's own schemas have been read and compiled.
func (l *Live) Ready() error {
	if l.Schema() != nil {
		return nil
	}
	if why := l.unread.Load(); why != nil {
		return errors.New("permission schemas: the API server has not been read yet: " + *why)
	}
	return errors.New("permission schemas: the API server has not been read yet: see the log for why")
}

// Changed asks for a refresh soon. It never blocks.
func (l *Live) Changed() { l.loop.Changed() }

// Run refreshes the schema at once, on Changed and every 30 s, until the context ends.
func (l *Live) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("sources"))
	l.loop.Run(ctx, l.Refresh, func(err error) {
		klog.FromContext(ctx).Error(err, "Sources of the permission schema stay as they were")
		if l.config.LoadFailed != nil {
			l.config.LoadFailed()
		}
	})
}

// Refresh reads the API server and compiles anew if anything changed. An error is that something
// could not be read; what could be and has changed is compiled all the same once all was read before.
// Objects may be followed until the context ends.
func (l *Live) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.refresh(ctx)
	if err != nil {
		why := err.Error()
		l.unread.Store(&why)
	}
	return err
}

func (l *Live) refresh(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	live := l.Schema() != nil
	if !live && l.config.Synced != nil && !l.config.Synced() {
		return errors.New("custom resource definitions: are not listed yet: see that fieldperm may list and watch them")
	}
	types, typesErr := l.readTypes(attempt)
	if typesErr != nil && !live {
		return typesErr
	}
	custom, customErr := l.definitions.read(&l.services)
	objects, objectsErr := l.objects.read(ctx)
	err := errors.Join(typesErr, customErr, objectsErr)
	if err != nil && !live {
		return err
	}
	if types || custom || objects || !live {
		l.compile(ctx)
	}
	return err
}

// readTypes reads who serves what, and then what is published, so that no group that is published can be another
// server's unnoticed.
func (l *Live) readTypes(ctx context.Context) (bool, error) {
	paths, err := l.published.client.PathsWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("OpenAPI v3 of the API server: %w", err)
	}
	services, err := l.config.Services(ctx)
	if err != nil {
		return false, err
	}
	l.services = services
	return l.published.read(ctx, paths, &services), nil
}

func (l *Live) store(next *state, started time.Time) {
	l.current.Store(next)
	l.report(next.schema, len(next.faults), started)
}

func (l *Live) report(compiled *schema.Schema, faults int, started time.Time) {
	if l.config.Compiled != nil {
		l.config.Compiled(len(compiled.Kinds()), len(compiled.Failed()), faults, started, time.Since(started))
	}
}
