package server

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fieldperm/fieldperm/internal/metrics"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// Complete checks the options, compiles the schema files and opens the port. It starts no other component. The error names the flag, or
// the file and the position in it.
func (o *Options) Complete(ctx context.Context) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w: give a kubeconfig, or run in a cluster", err)
	}
	s := &Server{options: *o, metrics: metrics.New()}
	if s.tracer, err = tracing.Provider(ctx, o.TracingConfigFile); err != nil {
		return nil, err
	}
	if s.schemas, err = newSchemas(ctx, o, config, s.metrics); err != nil {
		return nil, err
	}
	if s.certificates, err = newCertificates(o, config); err != nil {
		return nil, err
	}
	if s.enforcement, err = newEnforcement(o, config, s.metrics, s.schemas, s.certificates); err != nil {
		return nil, err
	}
	if s.barriers, err = newBarriers(o, config, s.metrics, s.schemas, s.certificates, s.enforcement); err != nil {
		return nil, err
	}
	if s.observations, err = newObservations(config, s.metrics, s.schemas, s.barriers, s.options.AdmissionCallers != callersAny); err != nil {
		return nil, err
	}
	if s.authorization, err = newAuthorization(ctx, o, config, s.metrics, s.tracer, s.schemas, s.enforcement); err != nil {
		return nil, err
	}
	return s, s.certificates.listen(o, s.metrics, s.enforcement.keys)
}

// client returns a client configuration with its own user agent for part. It has no client-side rate limit: the API server's
// priority and fairness limits the requests. Its informers list again after each watch: see relist.
func client(config *rest.Config, part string) *rest.Config {
	out := rest.AddUserAgent(rest.CopyConfig(config), "fieldperm-webhook/"+part)
	out.QPS, out.Burst, out.RateLimiter = -1, 0, nil
	out.Wrap(newRelist)
	return out
}
