package certificates

import (
	"context"
	"crypto/x509"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

const (
	namespace     = "fieldperm-system"
	secretName    = "fieldperm-tls"
	configuration = "fieldperm"
)

var dnsNames = []string{"fieldperm.fieldperm-system.svc", "fieldperm.fieldperm-system.svc.cluster.local"}

// place is a cluster with the webhook configuration in it, and a clock.
type place struct {
	t      *testing.T
	client *fake.Clientset
	clock  *testingclock.FakeClock
	// timeless is the error of reading the API server's clock.
	timeless error
}

func newPlace(t *testing.T) *place {
	t.Helper()
	equivalent, none := admissionregistrationv1.Equivalent, admissionregistrationv1.SideEffectClassNone
	webhook := func(name string) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name: name, MatchPolicy: &equivalent, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "fieldperm"}},
		}
	}
	client := fake.NewClientset(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{webhook("granular.fieldperm.dev"), webhook("schemas.fieldperm.dev")},
	})
	p := &place{t: t, client: client, clock: testingclock.NewFakeClock(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))}
	client.PrependReactor("*", "secrets", versions(client.Tracker()))
	return p
}

// versions adds a check that the fake client lacks: a write must name the resource version that it read.
func versions(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	var mu sync.Mutex
	last := 1
	resource := runtimeschema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		switch action := action.(type) {
		case clienttesting.CreateActionImpl:
			last++
			secret := action.Object.(*corev1.Secret).DeepCopy()
			secret.ResourceVersion = strconv.Itoa(last)
			return true, secret, tracker.Create(resource, secret, secret.Namespace)
		case clienttesting.UpdateActionImpl:
			secret := action.Object.(*corev1.Secret).DeepCopy()
			there, err := tracker.Get(resource, secret.Namespace, secret.Name)
			if err != nil {
				return true, nil, err
			}
			if secret.ResourceVersion != there.(*corev1.Secret).ResourceVersion {
				return true, nil, apierrors.NewConflict(resource.GroupResource(), secret.Name, nil)
			}
			last++
			secret.ResourceVersion = strconv.Itoa(last)
			return true, secret, tracker.Update(resource, secret, secret.Namespace)
		}
		return false, nil, nil
	}
}

// replica returns another replica of fieldperm in the place.
func (p *place) replica() *Keeper { p.t.Helper(); return p.replicaWith(p.clock) }

// replicaWith returns a replica with its own clock. The place's clock is the API server's.
func (p *place) replicaWith(own clock.Clock) *Keeper {
	p.t.Helper()
	k, err := New(Config{
		Client: p.client, Namespace: namespace, Name: secretName, DNSNames: dnsNames, WebhookConfiguration: configuration, Clock: own,
		ServerTime: func(context.Context) (time.Time, error) { return p.clock.Now(), p.timeless },
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return k
}

// secret returns the Secret; nil if there is none.
func (p *place) secret() *corev1.Secret {
	p.t.Helper()
	secret, err := p.client.CoreV1().Secrets(namespace).Get(p.t.Context(), secretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return secret
}

// put writes the Secret, like a user with an editor.
func (p *place) put(data map[string][]byte) {
	p.t.Helper()
	var err error
	if secret := p.secret(); secret == nil {
		_, err = p.client.CoreV1().Secrets(namespace).Create(p.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName}, Data: data}, metav1.CreateOptions{})
	} else {
		secret.Data = data
		_, err = p.client.CoreV1().Secrets(namespace).Update(p.t.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// trusted returns the CAs that the API servers trust. They must be the same in every webhook.
func (p *place) trusted() []*x509.Certificate {
	p.t.Helper()
	found, err := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(p.t.Context(), configuration, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(found.Webhooks) != 2 {
		p.t.Fatalf("the configuration has %d webhooks", len(found.Webhooks))
	}
	for _, w := range found.Webhooks {
		if string(w.ClientConfig.CABundle) != string(found.Webhooks[0].ClientConfig.CABundle) {
			p.t.Fatalf("webhook %q has another caBundle than %q", w.Name, found.Webhooks[0].Name)
		}
		if w.ClientConfig.Service == nil || w.SideEffects == nil {
			p.t.Fatalf("webhook %q lost a field of another manager: %+v", w.Name, w)
		}
	}
	out, err := cert.ParseCertsPEM(found.Webhooks[0].ClientConfig.CABundle)
	if err != nil {
		p.t.Fatalf("caBundle: %v", err)
	}
	return out
}

// accepted fails the test if an API server would not accept the certificate of the replica.
func (p *place) accepted(k *Keeper) *x509.Certificate {
	p.t.Helper()
	certificate, key := k.CurrentCertKeyContent()
	bundle, err := cert.EncodeCertificates(p.trusted()...)
	if err != nil {
		p.t.Fatal(err)
	}
	m, errs := decode(map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key, keyBundle: bundle}, dnsNames, p.clock.Now())
	if m.serving == nil {
		p.t.Fatalf("%s: the served certificate is refused: %v", p.clock.Now(), errs)
	}
	return m.serving.leaf
}

// reconcile runs one check, like Run.
func (p *place) reconcile(k *Keeper) {
	p.t.Helper()
	if err := k.reconcile(p.t.Context()); err != nil && err != errSettling {
		p.t.Fatal(err)
	}
}

// settle runs checks until no replica waits.
func (p *place) settle(replicas ...*Keeper) {
	p.t.Helper()
	for range 3 {
		for _, k := range replicas {
			p.reconcile(k)
			p.accepted(k)
		}
		p.clock.Step(recheck)
	}
}
