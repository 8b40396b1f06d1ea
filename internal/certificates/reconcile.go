package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyadmissionregistrationv1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

const (
	// fieldManager is the field manager of fieldperm. It owns only the caBundles of the configuration.
	fieldManager = "fieldperm-certificates"

	// attempts is how often one check starts again because another replica wrote first.
	attempts = 5
)

// errSettling means that there is no fault, but that some callers may not have the new CA yet.
var errSettling = errors.New("certificates: the CA is new in the webhook configuration: waiting until every API server knows it")

// reconcile updates the Secret, then the caBundles, then the serving certificate. In this order fieldperm never serves a
// certificate that the API servers would not accept.
func (k *Keeper) reconcile(ctx context.Context) error {
	m, err := k.secret(ctx)
	if err == nil {
		err = k.follow(ctx, m)
	}
	k.mu.Lock()
	k.lastErr = err
	k.mu.Unlock()
	return err
}

// secret returns the content of the Secret. It makes or renews the content first if that is due by the clock of this replica and by
// the clock of the API server. New certificates are dated by the API server's clock, because callers verify them by that clock.
func (k *Keeper) secret(ctx context.Context) (material, error) {
	log := klog.FromContext(ctx)
	secrets := k.config.Client.CoreV1().Secrets(k.config.Namespace)
	var last error
	for range attempts {
		secret, err := secrets.Get(ctx, k.config.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			secret, err = nil, nil
		}
		if err != nil {
			return material{}, fmt.Errorf("certificates: %w", err)
		}
		now := k.config.Clock.Now()
		next, reasons, err := k.due(ctx, secret, now)
		if err != nil || len(reasons) == 0 {
			return next, err
		}
		theirs, err := k.config.ServerTime(ctx)
		if err != nil {
			return material{}, fmt.Errorf("certificates: %q, and nothing is replaced by the clock here alone: %w", reasons, err)
		}
		mine := reasons
		if next, reasons, err = k.due(ctx, secret, theirs); err != nil || len(reasons) == 0 {
			if err == nil {
				log.Info("Nothing is replaced: it is due by the clock here and not by the API server's: see that both keep time", "reasons", mine, "here", now, "server", theirs)
			}
			return next, err
		}
		if last = k.write(ctx, secret, next); last == nil {
			log.Info("Wrote the certificates", "secret", klog.KRef(k.config.Namespace, k.config.Name), "reasons", reasons, "ca", next.authority.certificate.Subject.CommonName)
			return next, nil
		}
		if !apierrors.IsConflict(last) && !apierrors.IsAlreadyExists(last) && !apierrors.IsNotFound(last) {
			break
		}
	}
	return material{}, fmt.Errorf("certificates: %w", last)
}

// due returns the content that the Secret should have at a time, and the reasons why it differs from the content that was read.
func (k *Keeper) due(ctx context.Context, secret *corev1.Secret, now time.Time) (material, []string, error) {
	var found material
	if secret != nil {
		var faults []error
		if found, faults = decode(secret.Data, k.config.DNSNames, now); len(faults) > 0 {
			klog.FromContext(ctx).Info("The Secret has parts that cannot be used", "secret", klog.KObj(secret), "err", errors.Join(faults...))
		}
	}
	k.mu.Lock()
	held := k.bundle
	k.mu.Unlock()
	return found.renew(k.config.DNSNames, held, now)
}

// write creates the Secret if it did not exist, or updates exactly the version that was read. If several replicas write, one
// succeeds and the others use its result.
func (k *Keeper) write(ctx context.Context, read *corev1.Secret, m material) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	secrets := k.config.Client.CoreV1().Secrets(k.config.Namespace)
	if read == nil {
		_, err := secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.config.Namespace, Name: k.config.Name, Labels: map[string]string{"app.kubernetes.io/name": "fieldperm"}},
			Type:       corev1.SecretTypeTLS,
			Data:       data,
		}, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	updated := read.DeepCopy()
	updated.Data = data
	_, err = secrets.Update(ctx, updated, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}

// follow publishes the CAs and then serves the certificate. A replica without a certificate, or with an expired one, does not wait
// for the CAs to settle: it rejects no caller that it served before.
func (k *Keeper) follow(ctx context.Context, m material) error {
	now := k.config.Clock.Now()
	k.mu.Lock()
	bundle, current := m.bundle, k.current
	if now.Before(k.beforeUntil) {
		bundle = join(bundle, k.before, nil, now)
	}
	if current != nil {
		// The current certificate must be accepted until it is replaced.
		bundle = join(bundle, issuers(current.leaf, k.bundle), nil, now)
	}
	news := !slices.EqualFunc(k.bundle, bundle, (*x509.Certificate).Equal)
	k.bundle = bundle
	k.mu.Unlock()

	err := k.publish(ctx, bundle)
	defer func() {
		if news {
			k.tell()
		}
	}()
	if current == nil || current.equal(m.serving) || expired(current.leaf, now) {
		news = k.serve(ctx, m.serving) || news
		return err
	}
	if err != nil {
		return err
	}
	if !k.settled(m.serving.leaf, now) {
		return errSettling
	}
	k.mu.Lock()
	// Other replicas may serve the previous certificate a little longer.
	k.before, k.beforeUntil = issuers(current.leaf, bundle), now.Add(recheck)
	k.mu.Unlock()
	news = k.serve(ctx, m.serving) || news
	return nil
}

// issuers returns the CAs that signed the certificate.
func issuers(leaf *x509.Certificate, of []*x509.Certificate) []*x509.Certificate {
	var out []*x509.Certificate
	for _, ca := range of {
		if leaf.CheckSignatureFrom(ca) == nil {
			out = append(out, ca)
		}
	}
	return out
}

// publish writes the CAs to every webhook of the configuration, if they differ.
func (k *Keeper) publish(ctx context.Context, bundle []*x509.Certificate) error {
	if k.config.WebhookConfiguration == "" {
		k.note(bundle)
		return nil
	}
	want, err := cert.EncodeCertificates(bundle...)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	configurations := k.config.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := configurations.Get(ctx, k.config.WebhookConfiguration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The configuration does not exist, so no API server calls. Its creation starts a new check.
		k.note(bundle)
		return nil
	}
	if err != nil {
		return fmt.Errorf("certificates: caBundle: %w", err)
	}
	apply := applyadmissionregistrationv1.ValidatingWebhookConfiguration(configuration.Name)
	differs := false
	for _, webhook := range configuration.Webhooks {
		differs = differs || !bytes.Equal(webhook.ClientConfig.CABundle, want)
		apply.WithWebhooks(applyadmissionregistrationv1.ValidatingWebhook().WithName(webhook.Name).
			WithClientConfig(applyadmissionregistrationv1.WebhookClientConfig().WithCABundle(want...)))
	}
	if !differs {
		k.note(bundle)
		return nil
	}
	if _, err := configurations.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("certificates: caBundle: %w", err)
	}
	klog.FromContext(ctx).Info("Wrote the CAs into the webhook configuration", "webhookConfiguration", configuration.Name, "cas", len(bundle))
	k.note(bundle)
	return nil
}

// note records since when each CA has been published, and removes the CAs that are not published any more.
func (k *Keeper) note(bundle []*x509.Certificate) {
	now := k.config.Clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	known := make(map[string]time.Time, len(bundle))
	for _, c := range bundle {
		since, ok := k.known[string(c.Raw)]
		if !ok {
			since = now
		}
		known[string(c.Raw)] = since
	}
	k.known = known
}

// settled reports whether a CA of the certificate has been published for long enough.
func (k *Keeper) settled(leaf *x509.Certificate, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(issuers(leaf, k.bundle), func(c *x509.Certificate) bool {
		since, ok := k.known[string(c.Raw)]
		return ok && now.Sub(since) >= settle
	})
}
