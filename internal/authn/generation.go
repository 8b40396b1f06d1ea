package authn

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// acceptedFor is how long an accepted token is not verified again, as in kube-apiserver. A token may therefore be accepted for this
// time after it has expired, or after its key was removed. Refusals are not cached.
const acceptedFor = 10 * time.Second

// generation is made from one content of the file. It is immutable, except for its cache. The cache ends with it, so that no token
// outlives the configuration that accepted it.
type generation struct {
	providers []*provider
	anonymous *apiserver.AnonymousAuthConfig
	request   authenticator.Request

	// Guarded by Authenticator.mu: the number of requests that use this generation, and whether another generation has replaced it.
	callers int
	retired bool
}

// provider is the issuer of one entry of jwt. While its entry is unchanged, the next generation uses the same provider with its
// keys: a reload of other entries must not require this issuer to be up.
type provider struct {
	configuration apiserver.JWTAuthenticator
	token         oidc.AuthenticatorTokenWithHealthCheck
	transport     *http.Transport
	cancel        context.CancelFunc
	// generations is the number of generations that use the provider. The provider ends with the last one. Guarded by
	// Authenticator.mu.
	generations int
}

func (p *provider) url() string { return p.configuration.Issuer.URL }

func (p *provider) end() {
	p.cancel()
	p.transport.CloseIdleConnections()
}

// initialized waits until the issuer's discovery document has been read.
func (p *provider) initialized(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		last = p.token.HealthCheck()
		return last == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}

// newGeneration makes a generation. It reuses the providers of before whose entries are unchanged. New providers start to fetch
// their discovery documents.
func (a *Authenticator) newGeneration(configuration *apiserver.AuthenticationConfiguration, before []*provider) (*generation, error) {
	g := &generation{anonymous: configuration.Anonymous}
	var tokens []authenticator.Token
	for n := range configuration.JWT {
		one := kept(before, &configuration.JWT[n])
		if one == nil {
			var err error
			if one, err = a.newProvider(configuration.JWT[n]); err != nil {
				a.endNew(g)
				return nil, fmt.Errorf("jwt[%d]: %w", n, err)
			}
		}
		g.providers = append(g.providers, one)
		tokens = append(tokens, one.token)
	}
	// A token names its issuer, and every other authenticator skips it without an error. So the first error is the only one, and no
	// further authenticator needs to be asked after it.
	union := cache.New(tokenunion.NewFailOnError(tokens...), true, acceptedFor, 0)
	g.request = group.NewAuthenticatedGroupAdder(bearertoken.New(explained(union, configuration.JWT)))
	if configuration.Anonymous != nil && configuration.Anonymous.Enabled {
		// A request with a bad token is refused, not treated as anonymous.
		g.request = requestunion.NewFailOnError(g.request, anonymous.NewAuthenticator(configuration.Anonymous.Conditions))
	}
	for _, one := range g.providers {
		a.mu.Lock()
		one.generations++
		a.mu.Unlock()
	}
	return g, nil
}

// endNew stops the providers of a generation that was not put in force, if no other generation uses them.
func (a *Authenticator) endNew(g *generation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range g.providers {
		if one.generations == 0 {
			one.end()
		}
	}
}

func kept(before []*provider, entry *apiserver.JWTAuthenticator) *provider {
	for _, one := range before {
		if reflect.DeepEqual(&one.configuration, entry) {
			return one
		}
	}
	return nil
}

func (a *Authenticator) newProvider(entry apiserver.JWTAuthenticator) (*provider, error) {
	client, transport, err := newClient(entry.Issuer.CertificateAuthority)
	if err != nil {
		return nil, err
	}
	address, _ := discoveryAddress(&entry.Issuer)
	url := entry.Issuer.URL
	ctx, cancel := context.WithCancel(a.base)
	client.Transport = &watched{client.Transport, address, url, func(good bool) {
		if ctx.Err() == nil { // The metrics of an issuer that was dropped must not come back.
			a.settings.Observer.Provider(url, a.settings.Identity, good)
		}
	}}
	token, err := oidc.New(ctx, oidc.Options{
		JWTAuthenticator:     entry,
		Client:               client,
		Compiler:             a.compiler,
		SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
		APIServerID:          a.settings.Identity,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return &provider{configuration: entry, token: token, transport: transport, cancel: cancel}, nil
}

// enter returns the generation in force. The generation stays usable until leave. enter returns nil after Run has ended.
func (a *Authenticator) enter() *generation {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil {
		a.current.callers++
	}
	return a.current
}

func (a *Authenticator) leave(g *generation) {
	a.mu.Lock()
	g.callers--
	ended := a.released(g)
	a.mu.Unlock()
	a.endProviders(ended)
}

// swap puts a generation in force. The previous generation ends when its last request has been answered.
func (a *Authenticator) swap(next *generation) {
	a.mu.Lock()
	before := a.current
	a.current = next
	var ended []*provider
	if before != nil {
		before.retired = true
		ended = a.released(before)
	}
	a.mu.Unlock()
	a.endProviders(ended)
}

// drop ends a generation that was never in force.
func (a *Authenticator) drop(g *generation) {
	a.mu.Lock()
	g.retired = true
	ended := a.released(g)
	a.mu.Unlock()
	a.endProviders(ended)
}

// released returns the providers that no generation uses any more after g has ended. The caller holds the lock.
func (a *Authenticator) released(g *generation) []*provider {
	if !g.retired || g.callers > 0 {
		return nil
	}
	var ended []*provider
	for _, one := range g.providers {
		if one.generations--; one.generations == 0 {
			ended = append(ended, one)
		}
	}
	return ended
}

// endProviders stops the providers, and removes the metrics of issuers that no generation has any more.
func (a *Authenticator) endProviders(ended []*provider) {
	for _, one := range ended {
		one.end()
		if !a.has(one.url()) {
			oidc.DeleteJWKSFetchMetrics(one.url(), a.settings.Identity)
			a.settings.Observer.ProviderGone(one.url(), a.settings.Identity)
		}
	}
}

func (a *Authenticator) has(url string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil {
		return false
	}
	for _, one := range a.current.providers {
		if one.url() == url {
			return true
		}
	}
	return false
}
