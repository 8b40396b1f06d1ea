package sources

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/schema"
)

const (
	refreshInterval = 30 * time.Second
	// Reads that fail are tried again soon, then less often.
	firstRetry = time.Second
	lastRetry  = 8 * time.Second
	// attemptTimeout bounds one read of the API server; the first reads every document.
	attemptTimeout = 60 * time.Second
	// settle is how long changes may gather before one compile answers them all.
	settle = 200 * time.Millisecond
)

// Config is what a Live follows.
type Config struct {
	// Files are the administrator's schema files or directories.
	Files []string
	// OpenAPI is the API server's.
	OpenAPI openapi.ClientWithContext
	// Aggregated returns the groups that another server serves.
	Aggregated func(context.Context) ([]string, error)
	// Definitions returns the CustomResourceDefinitions of the API server, as an informer holds them.
	Definitions func() ([]*unstructured.Unstructured, error)
	// Synced reports whether Definitions has them all.
	Synced func() bool
	// Compiled is told of every compile, LoadFailed of every failure to read; nil for nobody.
	Compiled   func(compiled, failed, faults int, at time.Time, took time.Duration)
	LoadFailed func()
}

// Live is the permission schema in force. From the start it has what needs no API server; until Ready
// it knows no custom resource, and a kind that is not known is refused, not waved through.
type Live struct {
	config  Config
	base    schema.Documents
	changed chan struct{}
	current atomic.Pointer[state]

	// mu guards what Refresh works on.
	mu          sync.Mutex
	published   published
	definitions definitions
}

// state is replaced, never changed.
type state struct {
	schema    *schema.Schema
	documents schema.Documents
	faults    []error
	live      bool
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
	l := &Live{
		config: config, base: base, changed: make(chan struct{}, 1),
		published:   published{client: config.OpenAPI, aggregated: config.Aggregated, known: map[string]groupVersion{}},
		definitions: definitions{list: config.Definitions, known: map[string]*definition{}},
	}
	l.store(&state{schema: compiled, documents: base}, started)
	return l, nil
}

// Schema returns the schema in force, never nil.
func (l *Live) Schema() *schema.Schema { return l.current.Load().schema }

// Documents returns what the schema in force was compiled from, nil before Ready. They must not be
// changed.
func (l *Live) Documents() *schema.Documents {
	s := l.current.Load()
	if !s.live {
		return nil
	}
	return &s.documents
}

// Faults returns what is wrong with the documents now. Where a document was good before, that is
// still in force.
func (l *Live) Faults() []error { return l.current.Load().faults }

// Ready is nil once the API server's own schemas have been read and compiled.
func (l *Live) Ready() error {
	if !l.current.Load().live {
		return errors.New("permission schemas: the API server has not been read yet: see the log for why")
	}
	return nil
}

// Changed asks for a refresh soon. It never blocks.
func (l *Live) Changed() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Run refreshes the schema at once, on Changed and every 30 s, until the context ends.
func (l *Live) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("sources"))
	log := klog.FromContext(ctx)
	retry := firstRetry
	for {
		wait := refreshInterval
		if err := l.Refresh(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			log.Error(err, "Sources of the permission schema stay as they were")
			if l.config.LoadFailed != nil {
				l.config.LoadFailed()
			}
			wait, retry = retry, min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			continue
		case <-l.changed:
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
	}
}

// Refresh reads the API server and compiles anew if anything changed. An error is that something
// could not be read; definitions that changed are compiled all the same once OpenAPI was read before.
func (l *Live) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	live := l.current.Load().live
	if !live && l.config.Synced != nil && !l.config.Synced() {
		return errors.New("custom resource definitions: are not listed yet: see that fieldperm may list and watch them")
	}
	types, readErr := l.published.read(ctx)
	if readErr != nil && !live {
		return readErr
	}
	custom, err := l.definitions.read()
	if err != nil {
		return errors.Join(readErr, err)
	}
	if types || custom || !live {
		l.compile(ctx)
	}
	return readErr
}

// compile puts the schema in force. A definition that does not compile any more stays as it was last
// good; one that never did makes its kinds fail, and they are refused.
func (l *Live) compile(ctx context.Context) {
	started := time.Now()
	server := l.base.Append(schema.Documents{Topologies: l.published.topologies()})
	server.Topologies = without(server.Topologies, l.definitions.unknown())
	next := &state{live: true, faults: l.definitions.faults()}
	next.documents = server.Append(l.definitions.documents(nil))
	var errs []error
	next.schema, errs = schema.Compile(next.documents)
	for _, err := range errs {
		if isUnmatched(err) {
			klog.FromContext(ctx).V(2).Info("A permission schema is about what is not known yet", "err", err)
			continue
		}
		next.faults = append(next.faults, err)
	}
	retreat := l.definitions.failing(next.schema.Failed())
	l.definitions.settle(next.schema.Failed())
	if len(retreat) > 0 {
		next.documents = server.Append(l.definitions.documents(retreat))
		next.schema, _ = schema.Compile(next.documents)
	}
	for _, err := range next.faults {
		klog.FromContext(ctx).Error(err, "A permission schema is faulty")
	}
	l.store(next, started)
	klog.FromContext(ctx).V(2).Info("Compiled the permission schema", "kinds", len(next.schema.Kinds()), "failed", len(next.schema.Failed()), "took", time.Since(started))
}

func (l *Live) store(next *state, started time.Time) {
	l.current.Store(next)
	if l.config.Compiled != nil {
		l.config.Compiled(len(next.schema.Kinds()), len(next.schema.Failed()), len(next.faults), started, time.Since(started))
	}
}
