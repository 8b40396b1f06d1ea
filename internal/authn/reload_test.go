package authn

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// apply applies new contents at once, like a change of the file.
func apply(t *testing.T, a *Authenticator, entries ...string) error {
	t.Helper()
	_, err := a.apply(t.Context(), []byte(configuration(entries...)))
	return err
}

func TestP8_ReloadAddsAndDropsIssuers(t *testing.T) {
	first, second := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	a := startWith(t, entry(first, named))
	ofFirst, ofSecond := sign(t, first, claims(), issuer.Token{}), sign(t, second, claims(), issuer.Token{})
	accepted(t, a, ofFirst, "ann")
	refusedWith(t, a, ofSecond, "is none of jwt[].issuer.url")
	if err := apply(t, a, entry(first, named), entry(second, named)); err != nil {
		t.Fatal(err)
	}
	accepted(t, a, ofFirst, "ann")
	accepted(t, a, ofSecond, "ann")
	// The cache of the first generation ends with the generation that filled it.
	if err := apply(t, a, entry(second, named)); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, a, ofFirst, "is none of jwt[].issuer.url")
	accepted(t, a, ofSecond, "ann")
	if err := apply(t, a); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, a, ofSecond, "is none of jwt[].issuer.url")
}

func TestP8_ReloadOfAnIssuerThatIsChanged(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	token := sign(t, i, claims(map[string]any{"hd": "acme"}), issuer.Token{})
	accepted(t, a, token, "ann")
	if err := apply(t, a, entry(i, "\n  claimMappings: {username: {claim: sub, prefix: 'oidc:'}}")); err != nil {
		t.Fatal(err)
	}
	accepted(t, a, token, "oidc:ann")
	if err := apply(t, a, entry(i, "\n  claimValidationRules: [{claim: hd, requiredValue: other}]"+named)); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, a, token, "has another value")
}

// An unchanged issuer keeps its keys, and may be down during a reload.
func TestP8_ReloadAsksNewIssuersOnly(t *testing.T) {
	old, added := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	a := startWith(t, entry(old, named))
	accepted(t, a, sign(t, old, claims(), issuer.Token{}), "ann")
	if err := old.Stop(); err != nil {
		t.Fatal(err)
	}
	before := old.Requests()
	if err := apply(t, a, entry(added, named), entry(old, named)); err != nil {
		t.Fatal(err)
	}
	accepted(t, a, sign(t, old, claims(map[string]any{"sub": "bob"}), issuer.Token{}), "bob")
	accepted(t, a, sign(t, added, claims(), issuer.Token{}), "ann")
	if after := old.Requests(); after != before {
		t.Errorf("the issuer was asked: %+v, before %+v", after, before)
	}
}

func TestP8_ReloadKeepsTheLastGood(t *testing.T) {
	good, other := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	a := startWith(t, entry(good, named))
	token := sign(t, good, claims(), issuer.Token{})
	for name, c := range map[string]struct {
		change func() error
		text   string
		want   []string
	}{
		"a file with faults":       {text: configuration(entry(good, named)) + "anonimous: {}\n", want: []string{"anonimous"}},
		"no YAML":                  {text: "\t", want: []string{":1"}},
		"anonymous callers":        {text: configuration(entry(good, named)) + "anonymous: {enabled: true, conditions: [{path: /x}]}\n", want: []string{": anonymous: is not what it was at start", "restart"}},
		"an issuer that lies":      {func() error { other.Behave(issuer.Behaviour{Name: "https://x"}); return nil }, configuration(entry(other, named)), []string{":5: jwt[0].issuer.url", `with the name "https://x"`}},
		"an issuer that is broken": {func() error { other.Behave(issuer.Behaviour{Status: 500}); return nil }, configuration(entry(good, named), entry(other, named)), []string{"jwt[1].issuer.url", "500"}},
		"an issuer that is down":   {other.Stop, configuration(entry(other, named)), []string{"jwt[0].issuer.url", "refused", "see that it is up"}},
	} {
		t.Run(name, func(t *testing.T) {
			other.Behave(issuer.Behaviour{})
			if c.change != nil {
				if err := c.change(); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := other.Restart(); err != nil {
						t.Error(err)
					}
				}()
			}
			_, err := a.apply(t.Context(), []byte(c.text))
			if err == nil {
				t.Fatal("it is in force")
			}
			for _, want := range append(c.want, a.settings.File+":") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error is %v, want %q in it", err, want)
				}
			}
			accepted(t, a, token, "ann")
			refusedWith(t, a, sign(t, other, claims(), issuer.Token{}), "is none of jwt[].issuer.url")
		})
	}
	other.Behave(issuer.Behaviour{})
	if err := apply(t, a, entry(other, named)); err != nil {
		t.Fatal(err)
	}
	accepted(t, a, sign(t, other, claims(), issuer.Token{}), "ann")
}

// After the wait, a slow issuer counts as down.
func TestP8_ReloadWaitsForABoundedTime(t *testing.T) {
	good, slow := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	s := settings(t, configuration(entry(good, named)))
	s.reloadWait = 50 * time.Millisecond
	a, _ := start(t, s)
	slow.Behave(issuer.Behaviour{Wait: make(chan struct{})})
	if err := apply(t, a, entry(slow, named)); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Fatalf("error is %v, want that the time is over", err)
	}
	accepted(t, a, sign(t, good, claims(), issuer.Token{}), "ann")
}

// An issuer that fails after the probe and before its first use.
func TestP8_ReloadDropsIssuersThatStayUnhealthy(t *testing.T) {
	good, breaking := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	s := settings(t, configuration(entry(good, named)))
	s.reloadWait = 2 * time.Second
	a, _ := start(t, s)
	wait := make(chan struct{})
	breaking.Behave(issuer.Behaviour{Wait: wait, Only: issuer.Keys})
	failed := make(chan error)
	go func() { failed <- apply(t, a, entry(breaking, named)) }()
	eventually(t, "its keys are asked for", func() bool { return breaking.Requests().Keys > 0 })
	breaking.Behave(issuer.Behaviour{Only: issuer.Discovery, Status: http.StatusServiceUnavailable})
	close(wait)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "jwt[0].issuer.url: ") || !strings.Contains(err.Error(), "503") {
		t.Fatalf("error is %v, want the issuer's", err)
	}
	accepted(t, a, sign(t, good, claims(), issuer.Token{}), "ann")
	awaitNoRequest(t)
}

// The library sends requests to an issuer that is down until the provider is stopped.
func TestP8_ADroppedIssuerIsNotAskedAnyMore(t *testing.T) {
	up, down := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	if err := down.Stop(); err != nil {
		t.Fatal(err)
	}
	a := startWith(t, entry(up, named), entry(down, named))
	if !strings.Contains(goroutines(t), oidcPackage) {
		t.Fatal("nothing asks, so that nothing can be seen to end")
	}
	if err := apply(t, a, entry(up, named)); err != nil {
		t.Fatal(err)
	}
	awaitNoRequest(t)
}

func TestP8_AnonymousDisabledEqualsAnonymousAbsent(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a, _ := start(t, settings(t, configuration(entry(i, named))+"anonymous: {enabled: false}\n"))
	if err := apply(t, a, entry(i, named)); err != nil {
		t.Error(err)
	}
}

func TestP8_RequestsFinishOnTheGenerationTheyBeganWith(t *testing.T) {
	staying, leaving := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	a := startWith(t, entry(staying, named), entry(leaving, named))
	stays, leaves := a.current.providers[0], a.current.providers[1]
	wait := make(chan struct{})
	leaving.Behave(issuer.Behaviour{Wait: wait, Only: issuer.Keys})
	asked := leaving.Requests().Keys
	token := sign(t, leaving, claims(), issuer.Token{})
	type answer struct {
		name string
		err  error
	}
	answered := make(chan answer)
	go func() {
		info, err := identify(a, token)
		if err != nil {
			answered <- answer{err: err}
			return
		}
		answered <- answer{name: info.GetName()}
	}()
	eventually(t, "the request waits for keys", func() bool { return leaving.Requests().Keys > asked })
	if err := apply(t, a, entry(staying, named)); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, a, token, "is none of jwt[].issuer.url")
	accepted(t, a, sign(t, staying, claims(), issuer.Token{}), "ann")
	select {
	case got := <-answered:
		t.Fatalf("the request ended with the configuration: %+v", got)
	default:
	}
	if a.held(stays) != 2 || a.held(leaves) != 1 {
		t.Errorf("generations are %d and %d, want 2 and 1", a.held(stays), a.held(leaves))
	}
	close(wait)
	if got := <-answered; got.err != nil || got.name != "ann" {
		t.Fatalf("the request that was under way is %+v, want ann's", got)
	}
	// The old generation ends with its last request, and with it the issuer that only this generation uses.
	if a.held(stays) != 1 || a.held(leaves) != 0 {
		t.Errorf("generations are %d and %d, want 1 and 0", a.held(stays), a.held(leaves))
	}
	refusedWith(t, a, token, "is none of jwt[].issuer.url")
}

const oidcPackage = "authenticator/token/oidc."

// awaitNoRequest waits until the library has no request to an issuer in progress.
func awaitNoRequest(t *testing.T) {
	t.Helper()
	eventually(t, "no issuer is being asked", func() bool { return !strings.Contains(goroutines(t), oidcPackage) })
}

// held returns how many generations use a provider.
func (a *Authenticator) held(p *provider) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return p.generations
}

// The complete sequence: the file, a change, a fault that stays, and the same bytes that become valid.
func TestP8_FollowsItsFile(t *testing.T) {
	first, second := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	s := settings(t, configuration(entry(first, named)))
	s.interval = 20 * time.Millisecond
	a, _ := start(t, s)
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	write(t, s.File, configuration(entry(second, named)))
	eventually(t, "the fault is reported", func() bool { return a.Fault() != nil })
	if err := a.Fault(); !strings.Contains(err.Error(), s.File+":5: jwt[0].issuer.url: ") {
		t.Errorf("fault is %v", err)
	}
	accepted(t, a, sign(t, first, claims(), issuer.Token{}), "ann")
	if err := second.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the same bytes are tried again", func() bool { return a.Fault() == nil })
	accepted(t, a, sign(t, second, claims(), issuer.Token{}), "ann")
	refusedWith(t, a, sign(t, first, claims(), issuer.Token{}), "is none of jwt[].issuer.url")
	write(t, s.File, "")
	eventually(t, "the fault is reported", func() bool { return a.Fault() != nil })
	accepted(t, a, sign(t, second, claims(), issuer.Token{}), "ann")
}

// Requests and reloads at the same time, for the race detector. Each answer must be from one of the two configurations.
func TestP8_RequestsAndReloadsAtOnce(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	one, two := entry(i, "\n  claimMappings: {username: {claim: sub, prefix: '1:'}}"), entry(i, "\n  claimMappings: {username: {claim: sub, prefix: '2:'}}")
	a := startWith(t, one)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 4)
	for n := range cap(failed) {
		token := sign(t, i, claims(map[string]any{"jti": fmt.Sprint(n / 2)}), issuer.Token{})
		go func() {
			for ctx.Err() == nil {
				info, err := identify(a, token)
				if err == nil && info.GetName() != "1:ann" && info.GetName() != "2:ann" {
					err = fmt.Errorf("caller is %q", info.GetName())
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for n := range 10 {
		text := one
		if n%2 == 0 {
			text = two
		}
		if err := apply(t, a, text); err != nil {
			t.Error(err)
		}
	}
	cancel()
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// A caller that leaves is released, and does not affect the answers of others.
func TestCancelledRequest(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	wait := make(chan struct{})
	i.Behave(issuer.Behaviour{Wait: wait, Only: issuer.Keys})
	token := sign(t, i, claims(), issuer.Token{})
	asked := i.Requests().Keys
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := a.AuthenticateRequest(bearing(token).WithContext(ctx))
		left <- err
	}()
	eventually(t, "keys are asked for", func() bool { return i.Requests().Keys > asked })
	cancel()
	if err := <-left; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("error is %v, want that the caller has left", err)
	}
	stays := make(chan error)
	go func() {
		_, err := identify(a, token)
		stays <- err
	}()
	close(wait)
	if err := <-stays; err != nil {
		t.Error(err)
	}
}
