package uncovered

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// base is the configuration without the rules.
type base struct {
	name string
	// client is how API servers call /admit/uncovered.
	client admissionregistrationv1.WebhookClientConfig
	// owners are nil if the webhook granular is a static manifest. more are then the webhooks in addition to the one for barriers.
	owners []metav1.OwnerReference
	more   []admissionregistrationv1.ValidatingWebhook
}

// ErrNoOwner means that the configuration with the webhook granular is gone or is being deleted, so that fieldperm keeps no other.
var ErrNoOwner = errors.New("is not there or is being deleted")

// Reach returns how API servers call a path of fieldperm, and the owners of a configuration that does so.
func (k *Keeper) Reach(ctx context.Context, path string) (admissionregistrationv1.WebhookClientConfig, []metav1.OwnerReference, error) {
	if k.config.Reach != nil {
		client, err := k.config.Reach(path)
		return client, nil, err
	}
	owner, err := k.owner(ctx)
	if err != nil {
		return admissionregistrationv1.WebhookClientConfig{}, nil, err
	}
	client, err := clientConfig(owner, path)
	return client, ownedBy(owner), err
}

// owner returns the configuration with the webhook granular.
func (k *Keeper) owner(ctx context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	owner, err := Read(ctx, k.config.Client, k.config.Owner)
	if err != nil {
		return nil, err
	}
	if owner == nil || owner.DeletionTimestamp != nil {
		return nil, fmt.Errorf("webhook configuration %q %w", k.config.Owner, ErrNoOwner)
	}
	return owner, nil
}

func ownedBy(owner *admissionregistrationv1.ValidatingWebhookConfiguration) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: owner.Name, UID: owner.UID,
	}}
}

// base returns nil if nothing must be written, because the owner is gone.
func (k *Keeper) base(ctx context.Context) (*base, error) {
	if k.config.Reach != nil {
		return k.staticBase()
	}
	owner, err := k.owner(ctx)
	if errors.Is(err, ErrNoOwner) {
		// Uninstalling fieldperm also removes the configuration, when nothing needs it any more.
		k.note(observation{fault: err.Error()})
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	client, err := clientConfig(owner, webhooks.UncoveredPath)
	return &base{name: k.config.Name, client: client, owners: ownedBy(owner)}, err
}

// staticBase is base if the webhook granular is a static manifest.
func (k *Keeper) staticBase() (*base, error) {
	client, err := k.config.Reach(webhooks.UncoveredPath)
	if err != nil {
		return nil, err
	}
	schemas, err := k.config.Reach(webhooks.SchemasPath)
	return &base{
		name: k.config.Name, client: client, more: []admissionregistrationv1.ValidatingWebhook{webhooks.NewSchemasWebhook(schemas)},
	}, err
}

// with returns the configuration with the rules, without the webhook for probes. version is the version of fieldperm that writes it.
func (b *base) with(rules []webhooks.Rule, version string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := webhooks.UncoveredConfiguration(b.client, rules)
	out.Name = b.name
	out.Webhooks = append(out.Webhooks, b.more...)
	if _, ok := parse(version); ok {
		out.Annotations = map[string]string{webhooks.WriterAnnotation: version}
	}
	out.OwnerReferences = b.owners
	return out
}

// inState adds the webhook for probes to a configuration. The API servers that call it in this state have the whole configuration as it is.
func (b *base) inState(c *admissionregistrationv1.ValidatingWebhookConfiguration, state string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	client, _ := webhooks.ClientConfigFor(&b.client, webhooks.UncoveredPath, webhooks.ProbePath) // Reach has made it for that path.
	return webhooks.InState(c, client, webhooks.UncoveredProbed, state)
}

// clientConfig returns the client configuration of the owner's webhook with another path.
func clientConfig(owner *admissionregistrationv1.ValidatingWebhookConfiguration, path string) (admissionregistrationv1.WebhookClientConfig, error) {
	for i := range owner.Webhooks {
		if owner.Webhooks[i].Name != webhooks.GranularWebhook {
			continue
		}
		if out, ok := webhooks.ClientConfigFor(&owner.Webhooks[i].ClientConfig, webhooks.GranularPath, path); ok {
			return out, nil
		}
		return admissionregistrationv1.WebhookClientConfig{}, fmt.Errorf("webhook configuration %q: %q is not called at %s: install what fieldperm-gen manifests wrote", owner.Name, webhooks.GranularWebhook, webhooks.GranularPath)
	}
	return admissionregistrationv1.WebhookClientConfig{}, fmt.Errorf("webhook configuration %q: has no webhook %q: install what fieldperm-gen manifests wrote", owner.Name, webhooks.GranularWebhook)
}

// Read returns a configuration, nil if it does not exist.
func Read(ctx context.Context, client kubernetes.Interface, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	out, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", name, err)
	}
	return out, nil
}

// Write replaces live, nil if it does not exist, by want, only if live is still the current version: if two replicas write at the same time,
// the second gets a conflict.
func Write(
	ctx context.Context, client kubernetes.Interface, live, want *admissionregistrationv1.ValidatingWebhookConfiguration,
) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	sent := want.DeepCopy()
	if live != nil {
		sent.ResourceVersion = live.ResourceVersion
	}
	written, err := apply(ctx, client, sent)
	if err != nil || Same(written, want) {
		return written, err
	}
	// Server-side apply keeps what others have added to the webhooks.
	written.Webhooks = want.Webhooks
	written, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(ctx, written, metav1.UpdateOptions{FieldManager: FieldManager})
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", want.Name, err)
	}
	return written, nil
}

func apply(ctx context.Context, client kubernetes.Interface, want *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	raw, err := json.Marshal(want)
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", want.Name, err)
	}
	force := true
	out, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, want.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: FieldManager, Force: &force})
	if err != nil {
		return nil, fmt.Errorf("webhook configuration %q: %w", want.Name, err)
	}
	return out, nil
}

// ours reports whether a webhook of the configuration is fieldperm's.
func ours(name string) bool { return slices.Contains(ownWebhooks, name) }

// ownWebhooks are the webhooks of the configurations that fieldperm maintains.
var ownWebhooks = []string{webhooks.UncoveredWebhookName, webhooks.SchemasWebhook, webhooks.ProbeWebhook, webhooks.ObservationsWebhook, webhooks.TrialsWebhook}
