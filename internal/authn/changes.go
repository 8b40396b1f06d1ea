package authn

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationmetrics "k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

// load reads a configuration. An egress selector in it gives a warning and has no effect: only kube-apiserver has egress selectors.
func (a *Authenticator) load(ctx context.Context, data []byte) (*apiserver.AuthenticationConfiguration, error) {
	configuration, warnings, err := configfile.LoadAuthentication(a.settings.File, data)
	if err != nil {
		return nil, err
	}
	for _, warning := range warnings {
		klog.FromContext(ctx).Info("Authentication configuration: warning", "warning", warning)
	}
	return configuration, nil
}

// apply puts the current content of the file in force if the file is valid and every new or changed issuer answers with the name in
// the file.
func (a *Authenticator) apply(ctx context.Context, data []byte) ([]string, error) {
	configuration, err := a.load(ctx, data)
	if err != nil {
		return nil, err
	}
	g := a.enter()
	if g == nil {
		return nil, context.Canceled
	}
	defer a.leave(g)
	if !reflect.DeepEqual(anonymousOf(g.anonymous), anonymousOf(configuration.Anonymous)) {
		// kube-apiserver also refuses this change at a reload. A file that is dropped into a directory must not change whether
		// requests without a token are accepted.
		return nil, configfile.Problems{configfile.NewProblem(a.settings.File, data, "anonymous",
			"is not what it was at start, and does not change by a reload", "restart fieldperm, or put it back")}
	}
	ctx, cancel := context.WithTimeout(ctx, a.settings.reloadWait)
	defer cancel()
	if err := a.askNew(ctx, g, configuration, data); err != nil {
		return nil, err
	}
	next, err := a.newGeneration(configuration, g.providers)
	if err != nil {
		return nil, fmt.Errorf("authentication configuration %q: %w", a.settings.File, err)
	}
	for i, one := range next.providers {
		if kept(g.providers, &one.configuration) != nil {
			continue
		}
		if err := one.initialized(ctx); err != nil {
			a.drop(next)
			return nil, configfile.Problems{(&IssuerError{Key: keyOf(i), Err: err, Cure: "see that it is up; it is asked again from time to time"}).Problem(a.settings.File, data)}
		}
	}
	a.swap(next)
	report(klog.FromContext(ctx), a.settings.File, configuration)
	return nil, nil
}

// askNew asks the issuers that are new or changed for their names.
func (a *Authenticator) askNew(ctx context.Context, g *generation, configuration *apiserver.AuthenticationConfiguration, data []byte) error {
	fresh := make([]apiserver.JWTAuthenticator, 0, len(configuration.JWT))
	places := make([]int, 0, len(configuration.JWT))
	for i := range configuration.JWT {
		if kept(g.providers, &configuration.JWT[i]) == nil {
			fresh, places = append(fresh, configuration.JWT[i]), append(places, i)
		}
	}
	var problems configfile.Problems
	for n, fault := range probe(ctx, fresh) {
		if fault != nil {
			fault.Key = keyOf(places[n])
			problems = append(problems, fault.Problem(a.settings.File, data))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// anonymousOf returns the setting with its default: an absent setting is the same as a disabled one.
func anonymousOf(c *apiserver.AnonymousAuthConfig) apiserver.AnonymousAuthConfig {
	if c == nil {
		return apiserver.AnonymousAuthConfig{}
	}
	out := *c.DeepCopy()
	if len(out.Conditions) == 0 {
		out.Conditions = nil
	}
	return out
}

func (a *Authenticator) observe(log klog.Logger, data []byte, err error) {
	if err != nil {
		authenticationmetrics.RecordAuthenticationConfigAutomaticReloadFailure(a.settings.Identity)
		log.Error(err, "Authentication configuration: what was in force stays", "file", a.settings.File)
		return
	}
	authenticationmetrics.RecordAuthenticationConfigAutomaticReloadSuccess(a.settings.Identity, string(data))
	log.Info("Authentication configuration: what the file has now is in force", "file", a.settings.File)
}

// report logs the configuration that is in force now.
func report(log klog.Logger, file string, configuration *apiserver.AuthenticationConfiguration) {
	log.Info("Authentication configuration: is in force", "file", file, "issuers", configfile.SummaryOfIssuers(configuration))
}
