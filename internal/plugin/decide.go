package plugin

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/rbac"
)

// cacheTTL is the cache time for decisions of the cluster. One call asks for no verb twice.
const cacheTTL = 10 * time.Second

// chain returns a chain that decides by the grants. If there are none, it is that of --authorization-config, or asks the cluster.
func (o *options) chain(ctx context.Context, request *admissionv1.AdmissionRequest) (*authz.Chain, error) {
	if o.offline() {
		grants, err := rbac.Read(o.grants)
		if err != nil {
			return nil, err
		}
		a, err := rbac.New(grants)
		if err != nil {
			return nil, err
		}
		if len(grants.RoleBindings) > 0 {
			o.hintAtNamespace(request)
		}
		for _, w := range a.Warnings() {
			o.warn("%s", w)
		}
		return authz.Fixed("grants", a), nil
	}
	o.hintAtNamespace(request)
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	return o.configured(ctx, config)
}

// configured returns the chain of --authorization-config. Without the flag, the chain asks the cluster.
func (o *options) configured(ctx context.Context, config *rest.Config) (*authz.Chain, error) {
	chain, warnings, err := authz.Once(ctx, authz.Settings{File: o.authorizationConfig, TTL: cacheTTL, Cluster: config})
	switch {
	case err != nil && o.authorizationConfig != "":
		return nil, fmt.Errorf("--authorization-config: %w", err)
	case err != nil:
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or decide from files with --grants", err)
	}
	for _, warning := range warnings {
		o.warn("%s", warning)
	}
	return chain, nil
}

// hintAtNamespace prepares a hint for objects from files that kubectl would have put into a namespace.
func (o *options) hintAtNamespace(request *admissionv1.AdmissionRequest) {
	if o.file == "" && request.Namespace == "" {
		o.denialHint = "the object names no namespace, and so RoleBindings did not count: give --namespace if its kind has namespaces"
	}
}

// config returns the connection to the cluster. client-go's rate limit is off: --max-checks bounds the requests of one call.
func (o *options) config() (*rest.Config, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or %s", err, o.withoutCluster())
	}
	config.QPS = -1
	return config, nil
}
