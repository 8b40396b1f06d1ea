package certificates

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Whatever the Secret contains, a new replica and a running one end with a certificate that is accepted, and keep everything that
// is still usable.
func TestGarbage_InTheSecret(t *testing.T) {
	donor := newPlace(t)
	donor.settle(donor.replica())
	foreign := donor.secret().Data
	junk := []byte("-----BEGIN CERTIFICATE-----\nbm9ib2R5\n-----END CERTIFICATE-----\n")

	for _, test := range []struct {
		name          string
		change        map[string][]byte
		sameAuthority bool
	}{
		{"no data", map[string][]byte{corev1.TLSCertKey: nil, corev1.TLSPrivateKeyKey: nil, keyBundle: nil, keyAuthority: nil}, false},
		{"certificate", map[string][]byte{corev1.TLSCertKey: junk}, true},
		{"certificate of another CA", map[string][]byte{corev1.TLSCertKey: foreign[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: foreign[corev1.TLSPrivateKeyKey]}, true},
		{"key", map[string][]byte{corev1.TLSPrivateKeyKey: []byte("none")}, true},
		{"key of another certificate", map[string][]byte{corev1.TLSPrivateKeyKey: foreign[corev1.TLSPrivateKeyKey]}, true},
		{"bundle", map[string][]byte{keyBundle: junk}, false},
		{"bundle that is no CA", map[string][]byte{keyBundle: foreign[corev1.TLSCertKey]}, false},
		{"bundle of another", map[string][]byte{keyBundle: foreign[keyBundle]}, false},
		{"key of the CA", map[string][]byte{keyAuthority: junk}, false},
		{"key of another CA", map[string][]byte{keyAuthority: foreign[keyAuthority]}, false},
		{"all of another", foreign, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			running := p.replica()
			p.settle(running)
			before := p.trusted()[0]
			data := maps.Clone(p.secret().Data)
			maps.Copy(data, test.change)
			p.put(data)

			fresh := p.replica()
			p.reconcile(running)
			p.accepted(running)
			p.settle(running, fresh)
			if got := p.trusted()[0].Equal(before); got != test.sameAuthority {
				t.Errorf("the CA stayed: %t, want %t", got, test.sameAuthority)
			}
			p.clock.Step(lead + time.Hour)
			p.settle(running, fresh)
			p.clock.Step(overlap)
			p.settle(running, fresh)
			if !p.accepted(running).Equal(p.accepted(fresh)) {
				t.Error("the replicas serve different certificates")
			}
			if got := len(p.trusted()); got != 1 {
				t.Errorf("%d CAs are trusted when all is over", got)
			}
		})
	}
}

func TestDecode_NamesAndTimes(t *testing.T) {
	p := newPlace(t)
	p.settle(p.replica())
	data, now := p.secret().Data, p.clock.Now()
	for name, test := range map[string]struct {
		names             []string
		at                time.Time
		serving, issuable bool
	}{
		"unchanged":    {dnsNames, now, true, true},
		"another name": {append([]string{"fieldperm.elsewhere.svc"}, dnsNames...), now, false, true},
		// In this case a clock is behind, and a new certificate would not help.
		"before it holds":   {dnsNames, now.Add(-time.Hour), true, true},
		"certificate ended": {dnsNames, now.Add(servingLife), false, true},
		"CA ended":          {dnsNames, now.Add(authorityLife), false, false},
	} {
		m, _ := decode(data, test.names, test.at)
		if (m.serving != nil) != test.serving || (m.authority != nil) != test.issuable {
			t.Errorf("%s: serving %t, authority %t: want %t, %t", name, m.serving != nil, m.authority != nil, test.serving, test.issuable)
		}
	}
}

// A user writes certificates of another CA into the Secret. Until every API server knows that CA, the current certificate must stay
// accepted.
func TestRotation_BundleFirstOfAnotherAuthority(t *testing.T) {
	p, elsewhere := newPlace(t), newPlace(t)
	k, other := p.replica(), elsewhere.replica()
	p.settle(k)
	elsewhere.settle(other)
	before := p.accepted(k)
	p.put(elsewhere.secret().Data)
	p.reconcile(k)
	if !p.accepted(k).Equal(before) {
		t.Fatal("served before its CA is known")
	}
	if got := len(p.trusted()); got != 2 {
		t.Errorf("%d CAs are trusted, want the one that is served and the one that will be", got)
	}
	p.clock.Step(settle)
	p.reconcile(k)
	if !p.accepted(k).Equal(elsewhere.accepted(other)) {
		t.Error("the certificate of the Secret is not served")
	}
}
