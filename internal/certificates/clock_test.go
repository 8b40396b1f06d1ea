package certificates

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// A replica with a wrong clock, for example in a resumed virtual machine, must not replace the certificates of the others.
func TestD3_NothingIsReplacedBecauseOfAClockAlone(t *testing.T) {
	for name, off := range map[string]time.Duration{
		"an hour behind": -time.Hour, "a year behind": -365 * 24 * time.Hour,
		"61 days ahead": 61 * 24 * time.Hour, "91 days ahead": 91 * 24 * time.Hour, "11 years ahead": 11 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			right := p.replica()
			p.settle(right)
			before := p.secret()
			wrong := p.replicaWith(testingclock.NewFakeClock(p.clock.Now().Add(off)))
			for range 5 {
				p.reconcile(wrong)
				p.reconcile(right)
				p.accepted(wrong)
				p.accepted(right)
				p.clock.Step(recheck)
			}
			if after := p.secret(); after.ResourceVersion != before.ResourceVersion || !maps.EqualFunc(after.Data, before.Data, bytes.Equal) {
				t.Error("the Secret was written")
			}
			if got := len(p.trusted()); got != 1 {
				t.Errorf("%d CAs are trusted, want the one that there is", got)
			}
		})
	}
}

// Both clocks are behind. The present certificate is valid for clients with a correct clock.
func TestD3_ACertificateThatIsNotYetValidIsNotReplaced(t *testing.T) {
	p := newPlace(t)
	k := p.replica()
	p.settle(k)
	before := p.secret()
	p.clock.SetTime(p.clock.Now().Add(-30 * 24 * time.Hour))
	p.reconcile(k)
	p.reconcile(p.replica())
	if p.secret().ResourceVersion != before.ResourceVersion {
		t.Error("the Secret was written")
	}
}

// If there are no certificates, a replica with a wrong clock makes certificates that are valid now.
func TestD3_NewCertificatesAreDatedByTheAPIServersClock(t *testing.T) {
	p := newPlace(t)
	wrong := p.replicaWith(testingclock.NewFakeClock(p.clock.Now().Add(400 * 24 * time.Hour)))
	p.reconcile(wrong)
	if leaf := p.accepted(wrong); leaf.NotBefore.After(p.clock.Now()) {
		t.Errorf("it holds from %s, and it is %s", leaf.NotBefore, p.clock.Now())
	}
}

func TestD3_NothingIsReplacedWithoutTheAPIServersClock(t *testing.T) {
	p := newPlace(t)
	k := p.replica()
	p.settle(k)
	before := p.secret()
	p.timeless = errors.New("no Date")
	p.clock.Step(servingLife)
	if err := k.reconcile(t.Context()); err == nil {
		t.Error("it says nothing")
	}
	if p.secret().ResourceVersion != before.ResourceVersion {
		t.Error("the Secret was written")
	}
	p.timeless = nil
	p.reconcile(k)
	p.accepted(k)
}

func TestD3_TheAPIServersClockIsTheDateOfItsAnswer(t *testing.T) {
	date := "Sun, 22 Nov 2026 05:00:00 GMT"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prefix/version" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header()["Date"] = []string{date}
	}))
	defer server.Close()
	ask, err := ServerTime(&rest.Config{Host: server.URL + "/prefix"})
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := ask(t.Context()); err != nil || !shown.Equal(time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", shown, err)
	}
	date = "never"
	if shown, err := ask(t.Context()); err == nil {
		t.Errorf("%s of an answer without a date", shown)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := ask(ended); err == nil {
		t.Error("a question that has ended is answered")
	}
}
