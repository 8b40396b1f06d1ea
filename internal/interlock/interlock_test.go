package interlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/allowlist"
)

const (
	testInterval = 5 * time.Second
	// elsewhere is the group of an aggregated API server.
	elsewhere = "aggregated.example.com"
)

// world is an interlock with two API servers.
type world struct {
	*Interlock
	clock  *clocktesting.FakeClock
	tokens *ProbeTokens
	apis   []*apiserver
	files  *testFiles

	mu            sync.Mutex
	servers       []Server
	serversFail   error
	configuration *admissionregistrationv1.ValidatingWebhookConfiguration
	unreadable    error
	// writes counts what was written. Servers load it at once if loads is true.
	writes     int
	loads      bool
	unwritable error
	said       []string
}

// newWorld has a webhook configuration if readable is true, else static manifests that every server has loaded.
func newWorld(t *testing.T, readable bool) *world {
	t.Helper()
	w := &world{}
	w.tokens, _, w.clock = newTestTokens(t)
	for range 2 {
		api := newAPIServer(t, w.tokens)
		w.apis = append(w.apis, api)
		w.servers = append(w.servers, api.server(t))
	}
	config := Config{
		Servers: func() ([]Server, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.servers, w.serversFail },
		Prober:  &Prober{Tokens: w.tokens},
		Resources: func(group, resource string) (allowlist.Served, bool) {
			return allowlist.Served{Version: "v1", Versions: []string{"v1", "v1beta1"}, Kind: "Any", Namespaced: true, Aggregated: group == elsewhere}, resource != "unknown"
		},
		Interval: testInterval, Clock: w.clock,
		Observe: func(reason Reason, err error) {
			if err == nil {
				reason = "proven"
			}
			w.set(func() { w.said = append(w.said, string(reason)) })
		},
	}
	if readable {
		w.configuration = granular(t)
		config.Configuration = func(context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.configuration.DeepCopy(), w.unreadable
		}
		config.Write = func(_ context.Context, next *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.unwritable != nil {
				return nil, w.unwritable
			}
			w.writes++
			w.configuration = next.DeepCopy()
			w.configuration.Generation++
			if w.loads {
				w.loadLocked()
			}
			return w.configuration.DeepCopy(), nil
		}
		w.loads = true
	}
	if !readable {
		w.files = newFiles(t)
		config.Manifests = w.files.Manifests
		for _, api := range w.apis {
			api.load(w.files.hashes(t))
		}
	}
	w.Interlock = New(config)
	return w
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// load simulates that the servers have loaded the configuration as it is stored.
func (w *world) load() { w.set(w.loadLocked) }

func (w *world) loadLocked() {
	for _, api := range w.apis {
		api.mu.Lock()
		api.has.State = webhooks.State(w.configuration)
		api.mu.Unlock()
	}
}

// reasons returns what was observed.
func (w *world) reasons() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.said)
}

// prove proves enforcement, so that requests are allowed.
func (w *world) prove(t *testing.T) {
	t.Helper()
	w.round(t.Context())
	if err := w.Status(); err != nil {
		t.Fatal(err)
	}
}

func asking(verb, group, resource, name string) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Version: "v1", Resource: resource, Namespace: "shop", Name: name}
}

func (w *world) mustBe(t *testing.T, proven bool, when string) {
	t.Helper()
	err := w.Enforced(t.Context(), asking("patch", "", "configmaps", "web"))
	if proven != (err == nil) {
		t.Errorf("%s: %v, %v", when, err, w.Status())
	}
}

func TestA5_OpenIsTheZeroState(t *testing.T) {
	if (&Interlock{}).Status() == nil || (&Interlock{}).Enforced(t.Context(), asking("patch", "", "configmaps", "web")) == nil {
		t.Error("enforcement is proven for the zero Interlock")
	}
	w := newWorld(t, true)
	w.mustBe(t, false, "before the first round")
	w.round(t.Context())
	w.mustBe(t, true, "proven")
}

func TestA5_OneMissingProofOpens(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(*world)
		reason Reason
	}{
		"a probe passes one server":                       {func(w *world) { w.apis[1].set(always("passes")) }, ReasonProbeNotEnforced},
		"one server has no state":                         {func(w *world) { w.apis[0].set(always("has no state")) }, ReasonNotLoaded},
		"one server has an earlier state":                 {func(w *world) { w.apis[0].has.State = "u-1-x" }, ReasonNotLoaded},
		"one server answers with what nobody has written": {func(w *world) { w.apis[0].has.State = "x" }, ReasonNotLoaded},
		"another webhook refuses it":                      {func(w *world) { w.apis[1].set(always("admission webhook \"other\" denied the request")) }, ReasonProbeError},
		"the object is not there":                         {func(w *world) { w.apis[1].set(always("not found")) }, ReasonProbeError},
		"a server is down":                                {func(w *world) { w.apis[1].Close(); eventually(t, func() bool { return w.Status() != nil }) }, ReasonWatchEnded},
		"servers cannot be listed":                        {func(w *world) { w.serversFail = errors.New("forbidden") }, ReasonServersUnknown},
		"there is no server":                              {func(w *world) { w.servers = nil }, ReasonServersUnknown},
		"configuration cannot be read":                    {func(w *world) { w.unreadable = errors.New("timeout") }, ReasonConfigurationUnread},
		"configuration is gone":                           {func(w *world) { w.configuration = nil }, ReasonConfigurationMissing},
		"configuration is loose":                          {func(w *world) { w.configuration.Webhooks[0].Rules = nil }, ReasonConfigurationLoose},
		"configuration is being deleted":                  {func(w *world) { now := metav1Now(); w.configuration.DeletionTimestamp = &now }, ReasonConfigurationDeleted},
		"the configuration is another":                    {func(w *world) { w.configuration.Generation++; w.loads = false }, ReasonNotLoaded},
		"it was deleted and made anew":                    {func(w *world) { w.configuration.UID = "v"; w.loads = false }, ReasonNotLoaded},
		"another replica writes the state": {func(w *world) {
			w.configuration.Generation++
			w.unwritable = apierrors.NewConflict(schema.GroupResource{}, "fieldperm", errors.New("modified"))
		}, ReasonConfigurationChanged},
		"the state cannot be written": {func(w *world) {
			w.configuration.Generation++
			w.unwritable = errors.New("forbidden")
		}, ReasonConfigurationChanged},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			w.prove(t)
			w.set(func() { c.fault(w) })
			w.clock.Step(time.Second)
			w.round(t.Context())
			w.mustBe(t, false, "with a proof missing")
			if said := w.reasons(); said[len(said)-1] != string(c.reason) {
				t.Errorf("said %q", said)
			}
		})
	}
}

func TestA5_ResourcesOfAnotherServerAreProvenSeparately(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	aggregated := asking("patch", elsewhere, "things", "web")
	if err := w.Enforced(t.Context(), aggregated); err != nil {
		t.Error(err)
	}
	w.apis[0].set(func(t Target) string { return map[bool]string{true: "passes"}[t.Resource == "things"] })
	w.clock.Step(2*testInterval - time.Second)
	w.round(t.Context())
	w.clock.Step(2 * time.Second)
	if err := w.Enforced(t.Context(), aggregated); err == nil {
		t.Error("the configuration counts for a server that need not read it")
	}
}

func TestA5_AProofAges(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.clock.Step(2*testInterval - time.Millisecond)
	w.mustBe(t, true, "within two intervals")
	w.clock.Step(time.Millisecond)
	w.mustBe(t, false, "after two intervals")
	w.round(t.Context())
	w.mustBe(t, true, "proven again")
}

func TestA5_ChangesOpenAtOnceAndRoundsUnderWayProveNothing(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	loose := granular(t)
	loose.Generation, loose.Webhooks[0].FailurePolicy = 2, nil
	w.ConfigurationChanged(loose)
	w.mustBe(t, false, "an event with a loose configuration")
	w.set(func() { w.configuration = granular(t); w.configuration.Generation, w.loads = 3, false })
	w.round(t.Context())
	w.mustBe(t, false, "corrected, and not loaded")
	w.load()
	w.mustBe(t, false, "without a round since")
	w.round(t.Context())
	w.mustBe(t, true, "loaded")
	w.ConfigurationChanged(w.configuration)
	w.mustBe(t, true, "an event without a change")
	w.ConfigurationChanged(nil)
	w.mustBe(t, false, "an event of its deletion")

	for _, before := range []bool{true, false} {
		w = newWorld(t, true)
		if before {
			w.prove(t)
		}
		// A probe does not prove what happens while it is in progress.
		once := sync.OnceFunc(func() {
			changed := w.configuration.DeepCopy()
			changed.Generation = 9
			w.ConfigurationChanged(changed)
		})
		w.apis[0].set(func(Target) string { once(); return "" })
		w.round(t.Context())
		w.mustBe(t, false, "changed during the round")
	}
}

// The watch may deliver a change while the round still reads what was there before.
func TestA5_AnOutdatedReadingProvesNothing(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	read := w.config.Configuration
	w.config.Configuration = func(ctx context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
		before, err := read(ctx)
		loose := granular(t)
		loose.Generation, loose.Webhooks[0].FailurePolicy = 2, nil
		w.ConfigurationChanged(loose)
		return before, err
	}
	w.round(t.Context())
	w.mustBe(t, false, "loosened while the round read")
}

func TestA5_ANewServerOpensAtOnce(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	w.ServersChanged()
	w.mustBe(t, true, "the same servers")
	third := newAPIServer(t, w.tokens)
	third.has.State = webhooks.State(w.configuration)
	w.set(func() { w.servers = append(w.servers, third.server(t)) })
	w.ServersChanged()
	w.mustBe(t, false, "a server that is not proven")
	w.round(t.Context())
	w.mustBe(t, true, "proven too")
	w.set(func() { w.servers = w.servers[:1] })
	w.ServersChanged()
	w.mustBe(t, true, "fewer servers")
	w.set(func() { w.serversFail = errors.New("forbidden") })
	w.ServersChanged()
	w.mustBe(t, false, "servers are not known")
}

func TestA5_ARoundUnderWayDoesNotProveALaterServer(t *testing.T) {
	for _, before := range []bool{false, true} {
		w := newWorld(t, false)
		if before {
			w.round(t.Context())
		}
		third := newAPIServer(t, w.tokens)
		third.set(always("passes"))
		once := sync.OnceFunc(func() {
			w.set(func() { w.servers = append(w.servers, third.server(t)) })
			w.ServersChanged()
		})
		w.apis[0].set(func(Target) string { once(); return "" })
		w.round(t.Context())
		if w.Status() == nil {
			t.Errorf("proven before %t: proven, and a server is not", before)
		}
	}
}

// Only the withdrawal itself tells a round in progress about the new server.
func TestA5_ARoundDoesNotProveAServerAddedDuringIt(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	third := newAPIServer(t, w.tokens)
	third.has.State = webhooks.State(w.configuration)
	once := sync.OnceFunc(func() {
		w.set(func() { w.servers = append(w.servers, third.server(t)) })
		w.ServersChanged()
	})
	w.apis[0].set(func(Target) string { once(); return "" })
	w.round(t.Context())
	w.mustBe(t, false, "a server came during the round")
	if third.count() > 0 {
		t.Error("the round was about the new server")
	}
	w.round(t.Context())
	w.mustBe(t, true, "proven too")
}

func TestA5_AServerThatComesBackIsProvenAnew(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	both := w.servers
	w.set(func() { w.servers = both[:1] })
	w.ServersChanged()
	w.mustBe(t, true, "one has left")
	w.set(func() { w.servers = both })
	w.ServersChanged()
	w.mustBe(t, false, "it is back, perhaps without the webhook")
	// A round that did not see that the server was gone for a moment.
	w.set(func() { w.servers = both[:1] })
	once := sync.OnceFunc(func() {
		w.set(func() { w.servers = both })
		w.ServersChanged()
	})
	w.apis[0].set(func(Target) string { once(); return "" })
	w.round(t.Context())
	w.mustBe(t, false, "back during the round")
}

func TestA5_RunProvesAndOpensAtTheEnd(t *testing.T) {
	w := newWorld(t, false)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	deadline := time.After(20 * time.Second)
	for w.Status() != nil {
		select {
		case <-deadline:
			t.Fatal(w.Status())
		case <-time.After(time.Millisecond):
		}
	}
	w.apis[0].set(always("passes"))
	for w.Status() == nil {
		w.clock.Step(testInterval)
		select {
		case <-deadline:
			t.Fatal("a probe that passes does not withdraw the proof")
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	<-done
	if err := w.Status(); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Error(err)
	}
}

func TestA5_AnInterlockThatStaysOpenWaitsBetweenRounds(t *testing.T) {
	w := newWorld(t, false)
	retry := firstRetry
	for range 100 {
		next := w.later(retry)
		if next < retry || next > testInterval {
			t.Fatalf("%s is followed by %s", retry, next)
		}
		retry = next
	}
	if retry != testInterval {
		t.Errorf("rounds that fail follow each other after %s, want the interval", retry)
	}
}
