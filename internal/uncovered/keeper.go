package uncovered

import (
	"context"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// FieldManager is the field manager of the configurations.
const FieldManager = "fieldperm"

const (
	// interval is the longest time until a change without a watch event is noticed.
	interval = 5 * time.Second
	// removeAfter is longer than a replica may be behind: it reads its sources every 30 s even without a watch event, and after an
	// outage of the API server its informers have listed again in little more than a minute.
	removeAfter = 75 * time.Second
	// fresh is how long the last reading is valid.
	fresh = 3 * interval
	// attemptTimeout bounds one attempt to read and write.
	attemptTimeout = 15 * time.Second
)

// Config configures a Keeper. All fields are required, except the last four, and one of Owner and Reach.
type Config struct {
	Client kubernetes.Interface
	// Name is the name of the configuration to maintain.
	Name string
	// Owner is the name of the configuration with the webhook granular, if that is an object. It has the address of fieldperm. While
	// it does not exist or is being deleted, nothing is written.
	Owner string
	// Reach returns how API servers call a path of fieldperm, if the webhook granular is a static manifest. The Keeper then also
	// maintains the webhook schemas, which is in no other configuration in this case.
	Reach func(path string) (admissionregistrationv1.WebhookClientConfig, error)
	// Version is the semantic version of this fieldperm. Any other text counts as older than every version. The Keeper removes
	// nothing that a newer version has written.
	Version string
	// Ready returns nil when Schema and Sets are as recent as the API server.
	Ready func() error
	// Schema and Sets return the schema and the sets in force. Plurals returns the resources of kinds with unusual plurals.
	Schema  func() *schema.Schema
	Sets    func() []sets.Document
	Plurals func() map[runtimeschema.GroupKind]string
	// Denied returns the rules for other requests that /admit/uncovered may refuse; nil for none.
	Denied func() []webhooks.Rule
	// Unknown returns kinds with unknown barriers, in addition to those that failed according to Schema; nil for none.
	Unknown func() map[runtimeschema.GroupKind]bool
	// Unread returns the groups of other servers whose documents were not read; nil for none.
	Unread func() map[string]bool
	// Applied is called after each check with the result: whether the configuration is as it should be. It is not called while there
	// is no Owner. It may be nil.
	Applied func(ok bool)
	// Observed is called when the result of Enforced may have changed. It must not block. It may be nil.
	Observed func()
}

// Keeper maintains the rules of one configuration. Make it with New.
type Keeper struct {
	config Config
	loop   *refresh.Loop
	// Only the loop uses plan and repairs.
	plan    plan
	repairs repairs

	mu   sync.Mutex // guards the fields below
	seen observation
	// renewed is the state that must be replaced.
	renewed string
}

// New returns a Keeper. Run starts it.
func New(config Config) *Keeper {
	return &Keeper{
		config: config, plan: plan{removeAfter: removeAfter, removed: map[place]bool{}},
		loop: refresh.New(refresh.Timing{Interval: interval, Settle: 50 * time.Millisecond, FirstRetry: 200 * time.Millisecond, LastRetry: interval}),
	}
}

// Changed must be called when schemas may have changed. It never blocks.
func (k *Keeper) Changed() { k.loop.Changed() }

// Run maintains the configuration until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("uncovered"))
	factory := informers.NewSharedInformerFactory(k.config.Client, 0)
	informer := factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer()
	// Objects are read again before anything is written, so the informer needs only their names.
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.notice(object) },
		UpdateFunc: func(_, object any) { k.notice(object) },
		DeleteFunc: func(object any) { k.notice(object) },
	}); err != nil {
		klog.FromContext(ctx).Error(err, "Changes by others are noticed late", "after", interval)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	k.loop.Run(ctx, k.keep, func(err error) {
		klog.FromContext(ctx).Error(err, "The rules for barriers stay as they were", "configuration", k.config.Name)
		k.applied(false)
	})
}

func (k *Keeper) notice(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err != nil || key == k.config.Name || key == k.config.Owner {
		k.Changed()
	}
}

func (k *Keeper) applied(ok bool) {
	if k.config.Applied != nil {
		k.config.Applied(ok)
	}
}

// keep reads both configurations, and writes the maintained one if it is not as it should be.
func (k *Keeper) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := k.config.Ready(); err != nil {
		klog.FromContext(ctx).V(2).Info("Rules for barriers wait for the schemas", "err", err)
		return nil
	}
	base, err := k.base(ctx)
	if err != nil {
		k.plan.interrupted()
		return err
	}
	if base == nil {
		return nil
	}
	live, err := Read(ctx, k.config.Client, k.config.Name)
	if err != nil {
		k.plan.interrupted()
		return err
	}
	before, newer := rulesOf(live), newerWriter(live, k.config.Version)
	rules := k.plan.next(k.Needed(), before, k.failed(), k.unread(), time.Now())
	content := base.with(rules, k.config.Version)
	known := newer == "" || enforces(live, content)
	if newer != "" {
		content = widened(live, content)
	}
	state := webhooks.State(live)
	want := content
	if newer == "" || state == "" { // A newer version may have another webhook for probes.
		want = base.inState(content, state)
	}
	note := func(stored *admissionregistrationv1.ValidatingWebhookConfiguration) {
		seen := observed(stored, want)
		if !known {
			seen.newer = newer
		}
		k.note(seen)
	}
	note(live)
	if live != nil && live.DeletionTimestamp != nil {
		return fmt.Errorf("webhook configuration %q: is being deleted: remove its finalizers, then it is made again", k.config.Name)
	}
	if Same(live, want) && state != "" && !k.renews(state) {
		k.repairs.stands(time.Now())
		if !known {
			return fmt.Errorf("webhook configuration %q: was written by fieldperm %q, which is newer than this one (%q), and is left as it is: finish the upgrade; after a downgrade delete it as a member of system:masters, then it is made again", k.config.Name, newer, k.config.Version)
		}
		k.applied(true)
		return nil
	}
	repaired := base.inState(content, "") // Whatever the state, it is the same once more.
	if wait := k.repairs.wait(repaired, time.Now()); wait > 0 {
		return fmt.Errorf("webhook configuration %q: is changed by another client again and again: find its user in the audit log; it is written again in %s", k.config.Name, wait.Round(time.Millisecond))
	}
	written := live
	// A new object gets a UID with the first write. Fields that others had added take a write more, too.
	for range 2 {
		if want = base.inState(content, ""); written != nil {
			want = base.inState(content, webhooks.NewState(written))
		}
		if written, err = Write(ctx, k.config.Client, written, want); err != nil || webhooks.State(written) != "" {
			break
		}
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		k.Changed()
		return nil
	}
	if err != nil {
		return err
	}
	k.repairs.wrote(repaired, time.Now())
	k.plan.written(before, rulesOf(want))
	klog.FromContext(ctx).Info("Wrote the rules for barriers", "configuration", written.Name, "rules", len(rules), "resourceVersion", written.ResourceVersion)
	note(written)
	k.applied(known)
	return nil
}

// Renew requests a new state in place of this one, because an API server keeps an earlier version of the configuration. It never blocks.
func (k *Keeper) Renew(state string) {
	k.mu.Lock()
	k.renewed = state
	k.mu.Unlock()
	k.Changed()
}

// renews reports whether a state is to be replaced.
func (k *Keeper) renews(state string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.renewed == state
}

// Needed returns the rules that all barriers need, and what policies deny.
func (k *Keeper) Needed() []webhooks.Rule {
	barriers := webhooks.Writes.On(webhooks.Uncovered(k.config.Schema(), k.config.Sets(), k.config.Plurals()))
	if k.config.Denied == nil {
		return barriers
	}
	return webhooks.Union(barriers, k.config.Denied())
}

func (k *Keeper) unread() map[string]bool {
	if k.config.Unread == nil {
		return nil
	}
	return k.config.Unread()
}

// failed returns the resources of the kinds whose barriers are unknown. Their rules stay: all writes there are refused, because a
// barrier may be needed.
func (k *Keeper) failed() map[runtimeschema.GroupResource]bool {
	out, plurals := map[runtimeschema.GroupResource]bool{}, k.config.Plurals()
	add := func(kind runtimeschema.GroupKind) {
		out[runtimeschema.GroupResource{Group: kind.Group, Resource: webhooks.Resource(kind, plurals)}] = true
	}
	for gvk := range k.config.Schema().Failed() {
		add(gvk.GroupKind())
	}
	if k.config.Unknown != nil {
		for kind := range k.config.Unknown() {
			add(kind)
		}
	}
	return out
}
