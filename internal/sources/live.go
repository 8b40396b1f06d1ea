package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// attemptTimeout bounds one reading of the API server. The first reading reads every document.
const attemptTimeout = 60 * time.Second

func timing() refresh.Timing {
	return refresh.Timing{Interval: 30 * time.Second, Settle: 200 * time.Millisecond, FirstRetry: time.Second, LastRetry: 8 * time.Second}
}

// Config configures a Live.
type Config struct {
	// Files are paths of the administrator's schema files or directories.
	Files []string
	// OpenAPI is the client of the API server's OpenAPI v3.
	OpenAPI openapi.ClientWithContext
	// Services returns which server serves each group of the API server.
	Services func(context.Context) (allowlist.Services, error)
	// Definitions returns the CustomResourceDefinitions of the API server from an informer.
	Definitions func() ([]*Definition, error)
	// Synced reports whether Definitions has all of them.
	Synced func() bool
	// Objects returns the PermissionSchemas and UncoveredPermissionSets of the API server from informers, which may run until the
	// context ends; see Objects.List. nil means that there are none.
	Objects func(context.Context) ([]*unstructured.Unstructured, error)
	// Compiled is called after every compile, LoadFailed after every failure to read. Both may be nil.
	Compiled   func(compiled, failed, faults int, at time.Time, took time.Duration)
	LoadFailed func()
}

// Live holds the permission schema in force. It has none until Ready: the API server may have barriers, and no write may pass while
// these have not been read.
type Live struct {
	config Config
	base   compile.Documents
	// proposed is compiled after all other sources. Only Once sets it.
	proposed proposal
	loop     *refresh.Loop
	current  atomic.Pointer[state]
	// unread is the reason why the API server has not been read; nil once it has been read.
	unread atomic.Pointer[string]
	// groups are the groups of other servers of which a document is not known.
	groups atomic.Pointer[map[string]bool]

	// mu guards the fields that Refresh uses.
	mu          sync.Mutex
	services    allowlist.Services
	published   published
	definitions definitions
	objects     objects
}

// state is immutable; a change replaces it. It has no schema before Ready.
type state struct {
	schema    *schema.Schema
	documents compile.Documents
	faults    []error
	// unmatched are faults about kinds that may be installed later.
	unmatched []error
	objects   []ObjectState
	unknown   map[runtimeschema.GroupKind]bool
	// hiding are the groups of other servers of which a kind is left out, because this API server has a kind of the same name.
	hiding map[string]bool
}

// New compiles the sources that need no API server. The error of a faulty file names file and position.
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

func newLive(config Config, base compile.Documents) *Live {
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

// Documents returns the documents that the schema in force was compiled from, nil before Ready. The caller must not change them.
func (l *Live) Documents() *compile.Documents {
	s := l.current.Load()
	if s.schema == nil {
		return nil
	}
	return &s.documents
}

// Unknown returns the kinds with unknown barriers, because a document about them was never valid. The caller must not change the
// result.
func (l *Live) Unknown() map[runtimeschema.GroupKind]bool { return l.current.Load().unknown }

// Unread returns the groups of other servers of which a document is not known, because the server was down or the document is faulty, or of
// which a kind is left out. The barriers of such a group are not known.
func (l *Live) Unread() map[string]bool {
	out := maps.Clone(l.current.Load().hiding)
	groups := l.groups.Load()
	if groups == nil {
		return out
	}
	if out == nil {
		return *groups
	}
	maps.Copy(out, *groups)
	return out
}

// Faults returns the current faults of the documents. If a faulty document was valid before, its earlier form is in force.
func (l *Live) Faults() []error { return l.current.Load().faults }

// Objects returns the objects of the cluster in the form from which the schema in force was compiled, in the order of kinds and
// names. The caller must not change them.
func (l *Live) Objects() []ObjectState { return l.current.Load().objects }

// Ready returns nil when the API server's own schemas have been read and compiled.
func (l *Live) Ready() error {
	if l.Schema() != nil {
		return nil
	}
	if why := l.unread.Load(); why != nil {
		return errors.New("permission schemas: the API server has not been read yet: " + *why)
	}
	return errors.New("permission schemas: the API server has not been read yet: see the log for why")
}

// Changed requests a refresh soon. It never blocks.
func (l *Live) Changed() { l.loop.Changed() }

// Run refreshes the schema until the context ends: at once, after Changed, and every 30 s.
func (l *Live) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("sources"))
	l.loop.Run(ctx, l.Refresh, func(err error) {
		klog.FromContext(ctx).Error(err, "Sources of the permission schema stay as they were")
		if l.config.LoadFailed != nil {
			l.config.LoadFailed()
		}
	})
}

// Refresh reads the API server, and compiles if anything changed. It returns an error if something could not be read. If everything
// has been read once before, it then still compiles the parts that could be read. Objects may be followed until the context ends.
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
	live := l.Schema() != nil
	if !live && l.config.Synced != nil && !l.config.Synced() {
		return errors.New("custom resource definitions: are not listed yet: see that fieldperm may list and watch them")
	}
	if live {
		// What the informers have does not wait for an API server that is busy. The second reading below returns the error.
		if changed, _ := l.readInformed(ctx); changed {
			l.compile(ctx)
		}
	}
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	types, typesErr := l.readTypes(attempt)
	if typesErr != nil && !live {
		return typesErr
	}
	informed, informedErr := l.readInformed(ctx)
	err := errors.Join(typesErr, informedErr)
	if err != nil && !live {
		return err
	}
	if types || informed || !live {
		l.compile(ctx)
	}
	return err
}

// readInformed reads the definitions and objects from the informers, and reports whether any changed.
func (l *Live) readInformed(ctx context.Context) (bool, error) {
	custom, customErr := l.definitions.read(&l.services)
	objects, objectsErr := l.objects.read(ctx)
	return custom || objects, errors.Join(customErr, objectsErr)
}

// readTypes reads first which server serves each group, and then the published documents. In this order, a document of another
// server is never taken for the API server's own.
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
	changed := l.published.read(ctx, paths, &services)
	groups := l.published.missing(&services)
	l.groups.Store(&groups)
	return changed, nil
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
