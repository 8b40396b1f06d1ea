package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// files returns all files that may have schemas. The loader determines their types by their content.
func (o *options) files() []string { return slices.Concat(o.crds, o.permissions) }

// schemas returns the permission schema that decides the request. Any fault of the files is an error. A part of the cluster that
// cannot be read is an error too, because the webhook would decide with it.
func (o *options) schemas(ctx context.Context) (*sources.Snapshot, error) {
	if o.offline() {
		compiled, errs := load.Offline(o.files())
		return &sources.Snapshot{Schema: compiled}, o.faults(errs)
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	if err := reachable(ctx, config, o.withoutCluster()); err != nil {
		return nil, err
	}
	snapshot, err := sources.Once(ctx, config, o.files())
	if err != nil {
		return nil, err
	}
	for _, warning := range snapshot.Warnings {
		o.warn("%v", warning)
	}
	return snapshot, nil
}

// reachable returns an error if the cluster cannot be asked at all, in contrast to one that does not show everything. instead is another
// cure than to correct the flags.
func reachable(ctx context.Context, config *rest.Config, instead string) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err == nil {
		_, err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or %s", err, instead)
	}
	return nil
}

// faults joins the errors that are fatal, and prints the others as warnings. A document about an unknown kind is never fatal: users
// may give the same set of documents for all reviews.
func (o *options) faults(errs []error) error {
	var faults []error
	for _, err := range errs {
		var fault *schema.Error
		if errors.As(err, &fault) && fault.Unmatched {
			o.warn("%v", err)
			continue
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
