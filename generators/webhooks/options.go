package webhooks

import (
	"net"
	"strconv"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// DefaultUser is fieldperm's own user if it runs in the cluster.
const DefaultUser = "system:serviceaccount:fieldperm-system:fieldperm"

// admitTimeoutSeconds is the timeout of one call of /admit, which may ask for up to 32 verbs.
const admitTimeoutSeconds = 10

// Options describe how kube-apiserver reaches fieldperm's webhooks. The zero value is not valid.
type Options struct {
	// ServiceURL is the URL at which kube-apiserver reaches fieldperm, such as https://127.0.0.1:9443. If Service is set, only the
	// authorizer uses the URL, because it cannot look up a Service; use the Service's cluster IP, for example.
	ServiceURL string

	// CABundle holds the PEM certificates that verify fieldperm's serving certificate.
	CABundle []byte

	// User is the name under which fieldperm calls the API server. Empty: DefaultUser.
	User string

	// Service is the Service that the webhooks of REST call. Nil: they call ServiceURL.
	Service *ServiceReference

	// CABundleUsers are the users that may change the CA bundle of the webhooks of REST, besides fieldperm itself and cert-manager.
	CABundleUsers []string

	// Uncovered are the resources with barriers, as webhook rules, for REST. A resource does not include its subresources. Empty:
	// fieldperm maintains the webhook for them itself.
	Uncovered []v1alpha1.ResourceRule
}

// WithDefaults returns the options with the default user, if they have none.
func (o Options) WithDefaults() Options {
	if o.User == "" {
		o.User = DefaultUser
	}
	return o
}

// ServiceReference names a Service of the cluster.
type ServiceReference struct {
	Namespace, Name string
	// Port is the port of the Service; zero means 443.
	Port int32
}

// Host returns the DNS name under which the API server calls the Service and looks up its credentials.
func (r *ServiceReference) Host() string { return r.Name + "." + r.Namespace + ".svc" }

// HostPort returns the name under which the API server looks up its credentials first.
func (r *ServiceReference) HostPort() string {
	return net.JoinHostPort(r.Host(), strconv.Itoa(int(r.port())))
}

func (r *ServiceReference) port() int32 {
	if r.Port == 0 {
		return 443
	}
	return r.Port
}
