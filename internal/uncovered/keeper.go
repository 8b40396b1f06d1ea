package uncovered

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/schema"
)

// FieldManager is the owner of what is written.
const FieldManager = "fieldperm"

const (
	// interval is how long a change that no watch told of goes unnoticed.
	interval = 5 * time.Second
	// removeAfter is more than twice as long as a replica may be behind: it reads its sources every
	// 30 s even where no watch tells of a change.
	removeAfter = 75 * time.Second
	// settled is how long API servers may take to learn of new rules. They learn by watching.
	settled = 2 * time.Second
	// fresh is how long what was read counts.
	fresh = 3 * interval
	// attemptTimeout bounds one reading and writing.
	attemptTimeout = 15 * time.Second
)

// Config is what a Keeper follows. All but the last three must be set.
type Config struct {
	Client kubernetes.Interface
	// Name is the configuration to keep, Owner the one with the webhook granular. The latter says how
	// to reach fieldperm, and while it is not there or is being deleted, nothing is written.
	Name, Owner string
	// Ready is nil when Schema and Sets are those of the API server.
	Ready func() error
	// Schema and Sets are what is in force, Plurals the resources of kinds that have unusual ones.
	Schema  func() *schema.Schema
	Sets    func() []schema.UncoveredDocument
	Plurals func() map[runtimeschema.GroupKind]string
	// Unknown returns kinds of which neither is known, beside those that Schema says have failed; nil
	// for none.
	Unknown func() map[runtimeschema.GroupKind]bool
	// Applied is told whether the configuration is as it should be, each time that was looked at; nil
	// for nobody. It is not told while there is no Owner.
	Applied func(ok bool)
	// Observed is told when Enforced may answer differently; nil for nobody. It must not block.
	Observed func()
}

// Keeper keeps the rules of one configuration. Make it with New.
type Keeper struct {
	config Config
	loop   *refresh.Loop
	// plan is for the loop alone.
	plan plan

	mu      sync.Mutex // guards what follows
	seen    observation
	settles *time.Timer
}

// New returns a Keeper that does not run yet.
func New(config Config) *Keeper {
	return &Keeper{
		config: config, plan: plan{removeAfter: removeAfter, removed: map[place]bool{}},
		loop: refresh.New(refresh.Timing{Interval: interval, Settle: 50 * time.Millisecond, FirstRetry: 200 * time.Millisecond, LastRetry: interval}),
	}
}

// Changed says that schemas may have changed. It never blocks.
func (k *Keeper) Changed() { k.loop.Changed() }

// Run keeps the configuration until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("uncovered"))
	factory := informers.NewSharedInformerFactory(k.config.Client, 0)
	informer := factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer()
	// Objects are read anew before anything is written, so the informer only has to know their names.
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.notice(object) },
		UpdateFunc: func(_, object any) { k.notice(object) },
		DeleteFunc: func(object any) { k.notice(object) },
	}); err != nil {
		klog.FromContext(ctx).Error(err, "Changes by others are noticed late", "after", interval)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer k.stop()
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

// keep reads both configurations and writes the one if it is not as it should be.
func (k *Keeper) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := k.config.Ready(); err != nil {
		klog.FromContext(ctx).V(2).Info("Rules for barriers wait for the schemas", "err", err)
		return nil
	}
	owner, err := k.get(ctx, k.config.Owner)
	if err != nil {
		return err
	}
	if owner == nil || owner.DeletionTimestamp != nil {
		// Who removes fieldperm removes the configuration too, when nothing needs it any more.
		k.note(observation{fault: fmt.Sprintf("webhook configuration %q is not there or is being deleted", k.config.Owner)})
		return nil
	}
	client, err := k.clientConfig(owner)
	if err != nil {
		return err
	}
	live, err := k.get(ctx, k.config.Name)
	if err != nil {
		return err
	}
	before := rulesOf(live)
	rules := k.plan.next(k.needed(), before, k.failed(), time.Now())
	want := generators.UncoveredConfiguration(client, rules)
	want.Name = k.config.Name
	want.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: owner.Name, UID: owner.UID,
	}}
	k.note(observed(live, want))
	if live != nil && live.DeletionTimestamp != nil {
		return fmt.Errorf("webhook configuration %q: is being deleted: remove its finalizers, then it is made again", k.config.Name)
	}
	if same(live, want) {
		k.applied(true)
		return nil
	}
	if live != nil {
		// Whoever changed it meanwhile is taken into account first.
		want.ResourceVersion = live.ResourceVersion
	}
	written, err := k.apply(ctx, want)
	if apierrors.IsConflict(err) {
		k.Changed()
		return nil
	}
	if err != nil {
		return err
	}
	if !same(written, want) {
		// Server-side apply leaves in our webhook what someone else has added to it.
		others := slices.DeleteFunc(written.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return w.Name == generators.UncoveredWebhookName
		})
		written.Webhooks = slices.Concat(others, want.Webhooks)
		if written, err = k.config.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(ctx, written, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
			return fmt.Errorf("webhook configuration %q: %w", want.Name, err)
		}
	}
	k.plan.written(before, rules)
	klog.FromContext(ctx).Info("Wrote the rules for barriers", "configuration", written.Name, "rules", len(rules), "resourceVersion", written.ResourceVersion)
	k.note(observed(written, want))
	k.applied(true)
	return nil
}

// get returns nil if there is no such configuration.
func (k *Keeper) get(ctx context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	out, err := k.config.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", name, err)
	}
	return out, nil
}

func (k *Keeper) apply(ctx context.Context, want *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	raw, err := json.Marshal(want)
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", want.Name, err)
	}
	force := true
	out, err := k.config.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, want.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: FieldManager, Force: &force})
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", want.Name, err)
	}
	return out, nil
}

// clientConfig is that of the owner's webhook, with another path.
func (k *Keeper) clientConfig(owner *admissionregistrationv1.ValidatingWebhookConfiguration) (admissionregistrationv1.WebhookClientConfig, error) {
	for i := range owner.Webhooks {
		if owner.Webhooks[i].Name != generators.GranularWebhook {
			continue
		}
		if out, ok := generators.ClientConfigFor(&owner.Webhooks[i].ClientConfig, generators.UncoveredPath); ok {
			return out, nil
		}
		return admissionregistrationv1.WebhookClientConfig{}, fmt.Errorf("webhook configuration %q: %q is not called at %s: install what fieldperm-gen manifests wrote", owner.Name, generators.GranularWebhook, generators.GranularPath)
	}
	return admissionregistrationv1.WebhookClientConfig{}, fmt.Errorf("webhook configuration %q: has no webhook %q: install what fieldperm-gen manifests wrote", owner.Name, generators.GranularWebhook)
}

func (k *Keeper) needed() []v1alpha1.ResourceRule {
	return generators.Uncovered(k.config.Schema(), k.config.Sets(), k.config.Plurals())
}

// failed returns the resources of the kinds whose barriers are not known. The rules that they have
// stay: everyone is refused there, rather than let through where a barrier may be.
func (k *Keeper) failed() map[runtimeschema.GroupResource]bool {
	out, plurals := map[runtimeschema.GroupResource]bool{}, k.config.Plurals()
	add := func(kind runtimeschema.GroupKind) {
		out[runtimeschema.GroupResource{Group: kind.Group, Resource: generators.Resource(kind, plurals)}] = true
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
