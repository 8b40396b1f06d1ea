package authn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authenticationmetrics "k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/configfile"
	"github.com/fieldperm/fieldperm/internal/reload"
)

// Settings configures New.
type Settings struct {
	// File is the path of the AuthenticationConfiguration.
	File string
	// Identity identifies this process in metrics (apiserver_id_hash).
	Identity string
	// Observer receives the state of issuers. nil turns this off.
	Observer Observer

	// Only tests set the fields below. 0 selects the default.
	interval   time.Duration // period between two reads of the file
	startWait  time.Duration // bound for the probe of all issuers at start
	reloadWait time.Duration // bound for the probe of all issuers at a reload
}

const (
	// defaultStartWait is short: fieldperm must start to serve even if issuers are down, because issuers may depend on fieldperm.
	defaultStartWait = 5 * time.Second
	// defaultReloadWait is enough for three attempts of k8s.io/apiserver, which makes one every 10 s.
	defaultReloadWait = 30 * time.Second
)

// Authenticator authenticates the sender of a request. One generation is in force at a time. The generation that is in force when a
// request arrives handles the whole request.
type Authenticator struct {
	settings Settings
	compiler authenticationcel.Compiler // compiling costs as much as all the rest of a reload
	// base outlives the context of New, so that requests are still authenticated while the server drains.
	base    context.Context
	end     context.CancelFunc
	watcher *reload.Watcher

	mu      sync.Mutex
	current *generation // nil after Run has ended
}

var _ authenticator.Request = (*Authenticator)(nil)

// New reads the file and puts its configuration in force. If the file is not valid, the error is configfile.Problems. An issuer
// that answers with another name than the file has is an error too. An issuer that cannot be reached is only logged, and tried
// again until it answers. The context bounds New only. The caller must call Run to stop the goroutines that New starts.
func New(ctx context.Context, s Settings) (*Authenticator, error) {
	if s.startWait == 0 {
		s.startWait = defaultStartWait
	}
	if s.reloadWait == 0 {
		s.reloadWait = defaultReloadWait
	}
	if s.Observer == nil {
		s.Observer = noObserver{}
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("authentication configuration: %w", err)
	}
	compiler, err := configfile.NewClaimsCompiler()
	if err != nil {
		return nil, fmt.Errorf("authentication configuration: %w", err)
	}
	a := &Authenticator{settings: s, compiler: compiler}
	configuration, err := a.load(ctx, data)
	if err != nil {
		return nil, err
	}
	faults, err := a.askAtStart(ctx, configuration, data)
	if err != nil {
		return nil, err
	}
	a.base, a.end = context.WithCancel(context.WithoutCancel(ctx))
	if a.current, err = a.newGeneration(configuration, nil); err != nil {
		a.end()
		return nil, fmt.Errorf("authentication configuration %q: %w", s.File, err)
	}
	awaited, cancel := context.WithTimeout(ctx, s.startWait)
	defer cancel()
	for i, one := range a.current.providers {
		if faults[i] == nil && one.initialized(awaited) != nil {
			klog.FromContext(ctx).Info("An issuer is asked again, until it answers", "issuer", one.url())
		}
	}
	authenticationmetrics.RegisterMetrics()
	authenticationmetrics.RecordAuthenticationConfigLastConfigInfo(s.Identity, string(data))
	report(klog.FromContext(ctx), s.File, configuration)
	a.watcher = reload.New(reload.Config{
		File:     s.File,
		Interval: s.interval,
		Apply:    a.apply,
		Observe:  func(data []byte, err error) { a.observe(klog.FromContext(ctx), data, err) },
	}, data, nil)
	return a, nil
}

// askAtStart asks each issuer for its name. It returns one result for each issuer, nil for a good one. The error covers only the
// issuers that answer with another name.
func (a *Authenticator) askAtStart(ctx context.Context, configuration *apiserver.AuthenticationConfiguration, data []byte) ([]*IssuerError, error) {
	ctx, cancel := context.WithTimeout(ctx, a.settings.startWait)
	defer cancel()
	faults := probe(ctx, configuration.JWT)
	var lies configfile.Problems
	for _, fault := range faults {
		switch {
		case fault == nil:
		case fault.Lies:
			lies = append(lies, fault.Problem(a.settings.File, data))
		default:
			klog.FromContext(ctx).Info("Authentication configuration: warning: an issuer is not there, and its tokens are refused until it is", "warning", fault.Problem(a.settings.File, data).Error())
		}
	}
	if len(lies) > 0 {
		return nil, lies
	}
	return faults, nil
}

// Run reloads the file when it changes, until the context ends. Then it stops the goroutines of New, and no request is authenticated any
// more. A caller that needs no reload must still call it.
func (a *Authenticator) Run(ctx context.Context) {
	defer a.end()
	defer a.swap(nil)
	a.watcher.Run(ctx)
}

// Fault returns why the current content of the file is not in force. It returns nil if it is in force.
func (a *Authenticator) Fault() error { return a.watcher.Fault() }

// AuthenticateRequest authenticates a request by its bearer token. A request without a token is system:anonymous if the file allows
// that; otherwise the result is (nil, false, nil). A token that is not accepted gives (nil, false, error), even if the file allows
// anonymous requests. The error has the cause, for the log; do not send it to the caller.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	g := a.enter()
	if g == nil {
		return nil, false, errors.New("bearer token: authentication has ended: the server is going down")
	}
	defer a.leave(g)
	response, ok, err := g.request.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, false, err
	}
	return response, true, nil
}
