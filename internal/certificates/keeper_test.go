package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
)

type counter struct{ calls atomic.Int32 }

func (c *counter) Enqueue() { c.calls.Add(1) }

func TestCreation_SecretThenBundleThenServing(t *testing.T) {
	p := newPlace(t)
	k := p.replica()
	var listener counter
	k.AddListener(&listener)
	if err := k.Ready(); err == nil {
		t.Error("a keeper that has nothing is ready")
	}
	if certificate, key := k.CurrentCertKeyContent(); certificate != nil || key != nil {
		t.Error("a keeper that has nothing serves something")
	}
	p.reconcile(k)
	leaf := p.accepted(k)
	if err := k.Ready(); err != nil {
		t.Error(err)
	}
	if got := listener.calls.Load(); got != 1 {
		t.Errorf("the listener was called %d times", got)
	}
	if secret := p.secret(); secret.Type != corev1.SecretTypeTLS || len(secret.Data) != 4 {
		t.Errorf("the Secret has type %q and %d keys", secret.Type, len(secret.Data))
	}
	if life := leaf.NotAfter.Sub(p.clock.Now()); life != servingLife {
		t.Errorf("the certificate lasts %s", life)
	}
	if got := len(p.trusted()); got != 1 {
		t.Errorf("%d CAs are trusted", got)
	}
	p.reconcile(k)
	if got := listener.calls.Load(); got != 1 {
		t.Errorf("the listener was called %d times for the same certificate", got)
	}
}

func TestReplicas_TwoAtOnceServeTheSame(t *testing.T) {
	for range 10 {
		p := newPlace(t)
		replicas := []*Keeper{p.replica(), p.replica(), p.replica()}
		var running sync.WaitGroup
		errs := make([]error, len(replicas))
		for i, k := range replicas {
			running.Go(func() { errs[i] = k.reconcile(t.Context()) })
		}
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		first := p.accepted(replicas[0])
		for _, k := range replicas[1:] {
			if !p.accepted(k).Equal(first) {
				t.Error("replicas serve different certificates")
			}
		}
	}
}

// Two replicas check at different times, for 10 years. The API servers accept what they serve at every time.
func TestRotation_ServedCertificatesAreAlwaysTrusted(t *testing.T) {
	p := newPlace(t)
	early, late := p.replica(), p.replica()
	leaves, authorities, most := map[string]bool{}, map[string]bool{}, 0
	const days = 10 * 365
	for day := 0; day < days; day += 2 {
		p.reconcile(early)
		if day == 0 {
			p.reconcile(late)
		}
		p.accepted(late)
		leaf := p.accepted(early)
		leaves[string(leaf.Raw)], authorities[leaf.Issuer.CommonName] = true, true
		most = max(most, len(p.trusted()))
		if left := leaf.NotAfter.Sub(p.clock.Now()); left < servingLife/3-lead-96*time.Hour {
			t.Fatalf("day %d: the certificate has %s left only", day, left)
		}
		p.clock.Step(24 * time.Hour)
		p.reconcile(late)
		p.accepted(early)
		p.accepted(late)
		p.clock.Step(24 * time.Hour)
	}
	if want := days / 60; len(leaves) < want || len(leaves) > want+10 {
		t.Errorf("there were %d certificates, want about %d", len(leaves), want)
	}
	if len(authorities) != 2 || most != 2 {
		t.Errorf("there were %d CAs, and %d at a time: want 2, and 2", len(authorities), most)
	}
}

func TestRotation_NewAuthorityIsKnownForAWeekBeforeItSigns(t *testing.T) {
	made := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	old, err := newAuthority(made)
	if err != nil {
		t.Fatal(err)
	}
	now := due(old.certificate)
	current, err := old.issue(dnsNames, now.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	m := material{old, []*x509.Certificate{old.certificate}, current}
	for _, step := range []struct {
		after        time.Duration
		bundle       int
		byOld, byNew bool
	}{
		{-time.Second, 1, true, false},
		{0, 2, true, false},
		{lead - time.Second, 2, true, false},
		{lead, 2, false, true},
		{lead + overlap - time.Second, 2, false, true},
		{lead + overlap, 1, false, true},
	} {
		if m, _, err = m.renew(dnsNames, nil, now.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		byOld, byNew := old.signed(m.serving.leaf), !old.signed(m.serving.leaf) && m.authority.signed(m.serving.leaf)
		if len(m.bundle) != step.bundle || byOld != step.byOld || byNew != step.byNew {
			t.Errorf("%s after the CA was due: %d CAs, certificate of the old one %t, of the new one %t: want %+v", step.after, len(m.bundle), byOld, byNew, step)
		}
	}
}

// The order of a change of CA, as the API server sees it: the new CA first, a certificate signed by it ten seconds later, and the
// removal of the previous CA last.
func TestRotation_BundleFirst(t *testing.T) {
	p := newPlace(t)
	k, other := p.replica(), p.replica()
	p.settle(k, other)
	before := p.accepted(k)
	var listener counter
	k.AddListener(&listener)
	if err := p.client.CoreV1().Secrets(namespace).Delete(t.Context(), secretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.reconcile(k)
	if got := listener.calls.Load(); got != 1 {
		t.Errorf("the listener was called %d times for the new CA", got)
	}
	if got := len(p.trusted()); got != 2 {
		t.Fatalf("%d CAs are trusted after the Secret was made again, want the old and the new", got)
	}
	if !p.accepted(k).Equal(before) {
		t.Fatal("the new certificate is served before the API servers had time to hear of its CA")
	}
	p.clock.Step(settle - time.Second)
	p.reconcile(k)
	p.reconcile(other)
	if !p.accepted(k).Equal(before) {
		t.Fatal("the new certificate is served too early")
	}
	p.clock.Step(time.Second)
	p.reconcile(k)
	if p.accepted(k).Equal(before) {
		t.Fatal("the new certificate is not served")
	}
	if got := listener.calls.Load(); got != 2 {
		t.Errorf("the listener was called %d times for the new CA and its certificate", got)
	}
	if !p.accepted(other).Equal(before) {
		t.Fatal("the other replica switched before it saw the CA long enough")
	}
	p.settle(k, other)
	if !p.accepted(k).Equal(p.accepted(other)) {
		t.Fatal("the other replica did not follow")
	}
	p.clock.Step(overlap)
	p.settle(k, other)
	if got := len(p.trusted()); got != 1 {
		t.Errorf("%d CAs are trusted when all is over", got)
	}
}

func TestExpiry_AfterALongSleep(t *testing.T) {
	p := newPlace(t)
	k := p.replica()
	p.settle(k)
	before := p.accepted(k)
	p.clock.Step(servingLife)
	if err := k.Ready(); err == nil {
		t.Error("a keeper whose certificate has expired is ready")
	}
	p.reconcile(k)
	if after := p.accepted(k); after.Equal(before) || after.Issuer.CommonName != before.Issuer.CommonName {
		t.Errorf("served is %s of %s", after.NotAfter, after.Issuer)
	}
	p.clock.Step(authorityLife)
	p.reconcile(k)
	p.accepted(k)
	if got := len(p.trusted()); got != 1 {
		t.Errorf("%d CAs are trusted, an expired one among them", got)
	}
}

func TestOutage_TheServedCertificateStays(t *testing.T) {
	p := newPlace(t)
	k := p.replica()
	p.settle(k)
	before := p.accepted(k)
	down := true
	p.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if down {
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	p.clock.Step(time.Hour)
	if err := k.reconcile(t.Context()); err == nil {
		t.Error("an outage is no error")
	}
	if err := k.Ready(); err != nil {
		t.Errorf("an outage makes a good certificate unready: %v", err)
	}
	down = false
	if !p.accepted(k).Equal(before) {
		t.Error("an outage changed the served certificate")
	}
}

func TestRun_FollowsTheSecretAndTheConfiguration(t *testing.T) {
	p := newPlace(t)
	k := p.replica()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { k.Run(ctx) })
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := k.Await(waiting); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first certificate", func() bool { return len(k.CABundle()) > 0 })

	// A user replaces the configuration, and so its caBundle.
	configurations := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	object, err := configurations.Get(ctx, configuration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range object.Webhooks {
		object.Webhooks[i].ClientConfig.CABundle = nil
	}
	if _, err := configurations.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the caBundle", func() bool {
		object, err := configurations.Get(ctx, configuration, metav1.GetOptions{})
		return err == nil && string(object.Webhooks[0].ClientConfig.CABundle) == string(k.CABundle())
	})

	// A user deletes the Secret. It is made again without any step of the clock.
	if err := p.client.CoreV1().Secrets(namespace).Delete(ctx, secretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another Secret", func() bool { return p.secret() != nil && len(p.trusted()) == 2 })
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestNew_NamesTheMissingOption(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("the zero Config is accepted")
	}
}
