package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects writes the objects of manifests as one user. It does what kubectl does with -f, without a process for each call: use kubectl
// where kubectl is tested.
type Objects struct {
	client client.Client
	user   *User
}

// Objects returns the objects of the cluster as a user sees them.
func (c *Cluster) Objects(user *User) (*Objects, error) {
	config := rest.CopyConfig(user.Config)
	config.WarningHandlerWithContext = listener{}
	o, err := client.New(config, client.Options{Log: klog.Background()})
	if err != nil {
		return nil, fmt.Errorf("objects of user %q: %w", user.Name, err)
	}
	return &Objects{client: o, user: user}, nil
}

// Create creates the objects of a manifest in their order, and ends with the first error. It returns the warnings.
func (o *Objects) Create(ctx context.Context, manifest string) (warnings []string, err error) {
	ctx = context.WithValue(ctx, listener{}, &warnings)
	err = o.each(manifest, func(u *unstructured.Unstructured) error {
		return o.client.Create(ctx, u, client.FieldOwner("kubectl-create"))
	})
	return warnings, err
}

// listener puts the warnings about a request where the request's context says, if it says so.
type listener struct{}

func (listener) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if heard, ok := ctx.Value(listener{}).(*[]string); ok && code == 299 && text != "" {
		*heard = append(*heard, text)
	}
}

// Apply applies the objects of a manifest by server-side apply, and takes over fields of others.
func (o *Objects) Apply(ctx context.Context, manifest string) error {
	return o.each(manifest, func(u *unstructured.Unstructured) error {
		return o.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership)
	})
}

// Delete deletes the objects of a manifest that exist. It waits until a CustomResourceDefinition is gone with its objects, and takes away
// the finalizers of other objects, which nothing removes here. A namespace therefore stays.
func (o *Objects) Delete(ctx context.Context, manifest string) error {
	return o.each(manifest, func(u *unstructured.Unstructured) error {
		if err := o.client.Delete(ctx, u, client.GracePeriodSeconds(0)); err != nil {
			return client.IgnoreNotFound(err)
		}
		if u.GetKind() == "CustomResourceDefinition" {
			return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				err := o.client.Get(ctx, client.ObjectKeyFromObject(u), u.DeepCopy())
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			})
		}
		noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		return client.IgnoreNotFound(o.client.Patch(ctx, u, noFinalizers))
	})
}

// Remove deletes an object by the name of its resource as kubectl takes it, but for short names: "pod", "networkpolicy.v1.networking.k8s.io".
// It is in the namespace default, or in none. It returns the kind. An object that does not exist is no error.
func (o *Objects) Remove(ctx context.Context, resource, name string) (schema.GroupVersionKind, error) {
	known, err := discovery.NewDiscoveryClientForConfig(o.user.Config)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	groups, err := restmapper.GetAPIGroupResources(known)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	versioned, partial := schema.ParseResourceArg(resource)
	if versioned == nil {
		versioned = &schema.GroupVersionResource{Group: partial.Group, Resource: partial.Resource}
	}
	kind, err := mapper.KindFor(*versioned)
	if meta.IsNoMatchError(err) {
		kind, err = mapper.KindFor(partial.WithVersion(""))
	}
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	manifest := fmt.Sprintf("{apiVersion: %q, kind: %q, metadata: {name: %q}}", kind.GroupVersion(), kind.Kind, name)
	return kind, o.Delete(ctx, manifest)
}

// Await waits until is answers true to the status, the reason and the message of a condition of each object of a manifest. An object that
// does not exist, or has no such condition, has three empty strings. It waits for at most limit for each object.
func (o *Objects) Await(ctx context.Context, manifest, condition string, limit time.Duration, is func(status, reason, message string) bool) error {
	return o.each(manifest, func(u *unstructured.Unstructured) error {
		var last [3]string
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
			live := u.DeepCopy()
			err := o.client.Get(ctx, client.ObjectKeyFromObject(u), live)
			if client.IgnoreNotFound(err) != nil {
				return false, err
			}
			last = [3]string{}
			conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
			for _, item := range conditions {
				if c, ok := item.(map[string]any); ok && err == nil && c["type"] == condition {
					for i, name := range []string{"status", "reason", "message"} {
						last[i], _ = c[name].(string)
					}
				}
			}
			return is(last[0], last[1], last[2]), nil
		})
		if err != nil {
			return fmt.Errorf("condition %q: %w: it is %q", condition, err, last)
		}
		return nil
	})
}

// each calls f for each object of a manifest, YAML or JSON.
func (o *Objects) each(manifest string, f func(*unstructured.Unstructured) error) error {
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("manifest: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		// The kind of an object may be defined by the one before it.
		if namespaced, err := o.client.IsObjectNamespaced(u); err == nil && namespaced && u.GetNamespace() == "" {
			u.SetNamespace("default")
		}
		if err := f(u); err != nil {
			return fmt.Errorf("%s %q: %w", u.GetKind(), u.GetName(), err)
		}
	}
}
