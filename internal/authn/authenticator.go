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

// Settings are what an Authenticator is made of.
type Settings struct {
	// File is the AuthenticationConfiguration.
	File string
	// Identity tells this process from others in metrics (apiserver_id_hash).
	Identity string

	// Tests alone set what follows. 0 is the default.
	interval   time.Duration // between two looks at the file
	startWait  time.Duration // for all issuers, at start
	reloadWait time.Duration // for all issuers, at a reload
}

const (
	// defaultStartWait is short: serving goes before issuers, which may run behind it.
	defaultStartWait = 5 * time.Second
	// defaultReloadWait is enough for three tries of k8s.io/apiserver, which are 10 s apart.
	defaultReloadWait = 30 * time.Second
)

// Authenticator says who a request is from. What is in force is one generation; each request is
// answered by the one that it began with.
type Authenticator struct {
	settings Settings
	compiler authenticationcel.Compiler // costs as much as all else of a reload
	// base outlives the context of New, so that requests are answered while the server drains.
	base    context.Context
	end     context.CancelFunc
	watcher *reload.Watcher

	mu      sync.Mutex
	current *generation // nil after Run
}

var _ authenticator.Request = (*Authenticator)(nil)

// New reads the file and puts it in force. A file with faults is an error (configfile.Problems), and so
// is an issuer that answers with another name; one that cannot be reached is logged, and tried until it
// can. The context bounds New alone. Run ends what New begins.
func New(ctx context.Context, s Settings) (*Authenticator, error) {
	if s.startWait == 0 {
		s.startWait = defaultStartWait
	}
	if s.reloadWait == 0 {
		s.reloadWait = defaultReloadWait
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return nil, fmt.Errorf("authentication configuration: %w", err)
	}
	a := &Authenticator{settings: s, compiler: authenticationcel.NewDefaultCompiler()}
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
	a.watcher = reload.New(reload.Config{
		File:     s.File,
		Interval: s.interval,
		Apply:    a.apply,
		Observe:  func(data []byte, err error) { a.observe(klog.FromContext(ctx), data, err) },
	}, data, nil)
	return a, nil
}

// askAtStart asks each issuer for its name. It returns what is wrong with each; the error is about those
// that have another name.
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

// Run puts into force what becomes of the file, until the context ends. It ends what New began, so it is
// to be called also by whoever wants no more than that, and nothing is authenticated after it.
func (a *Authenticator) Run(ctx context.Context) {
	defer a.end()
	defer a.swap(nil)
	a.watcher.Run(ctx)
}

// Fault says why what the file has now is not in force, nil if it is.
func (a *Authenticator) Fault() error { return a.watcher.Fault() }

// AuthenticateRequest says who a request is from: by its bearer token, or as system:anonymous where the
// file lets callers without a token be that. A request without a token is (nil, false, nil); one whose
// token is not accepted is (nil, false, error), whatever anonymous callers may do. The error says why,
// for the log and not for the caller.
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
