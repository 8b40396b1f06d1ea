package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// Options are the flags of serve. The zero Options are not valid; NewOptions returns the defaults.
type Options struct {
	// Kubeconfig is the path of the kubeconfig for the API server that fieldperm follows and asks. "" selects the cluster that
	// fieldperm runs in.
	Kubeconfig string
	// SecureServing has address, port, certificate and key. If its Listener is set, the server uses this listener.
	SecureServing *genericoptions.SecureServingOptions
	// TLSSecret is NAMESPACE/NAME of a Secret. fieldperm creates its serving certificate and stores it there. It is "" if
	// SecureServing names files.
	TLSSecret string
	// WebhookCAFile has the CAs that WebhookConfiguration must trust; "" accepts any. With WebhookURL, fieldperm writes these CAs to
	// UncoveredConfiguration.
	WebhookCAFile string
	// WebhookURL is the URL at which kube-apiservers call fieldperm, for UncoveredConfiguration. "" uses the address in
	// WebhookConfiguration.
	WebhookURL string
	// ClientCAFile has the CAs of the callers' certificates.
	ClientCAFile string
	// PermissionSchemas are paths of files or directories.
	PermissionSchemas []string
	// AuthorizationConfig is the path of the AuthorizationConfiguration for fieldperm's own checks. "" sends all checks to the API
	// server.
	AuthorizationConfig string
	// AuthenticationConfig is the path of the AuthenticationConfiguration for callers of the review API. "" accepts only client
	// certificates.
	AuthenticationConfig string
	// WebhookTokenUsers are users that may call /admit and /authorize with a token that AuthenticationConfig accepts.
	WebhookTokenUsers []string
	// MaxChecks bounds the number of verbs that are checked for one request (P3).
	MaxChecks int
	// DecisionCacheTTL is how long the decision of a check is cached, allowed or denied (P8). AuthorizationConfig overrides it.
	DecisionCacheTTL time.Duration
	// MaxRequestBytes bounds the body of an admission review, in bytes. Other requests have a lower bound: see largestQuestion.
	MaxRequestBytes int64
	// MaxRequestsInFlight bounds the number of requests in progress.
	MaxRequestsInFlight int
	// MemoryLimit is the memory limit of the process in bytes. 0 detects it. A fraction of it bounds the request bodies in memory at
	// the same time.
	MemoryLimit int64
	// AggregatedGroups are API groups of aggregated API servers for which /authorize still decides (A2).
	AggregatedGroups []string
	// WebhookConfiguration is the name of the ValidatingWebhookConfiguration that calls fieldperm. "" means that a static manifest
	// does.
	WebhookConfiguration string
	// StaticManifests is the directory of kube-apiserver's static manifests, if the webhook configuration is one of them. ""
	// otherwise.
	StaticManifests string
	// KubeAPIServerAuthorizationConfig is the file of kube-apiserver's --authorization-config. It is used with StaticManifests.
	KubeAPIServerAuthorizationConfig string
	// UncoveredConfiguration is the name of the ValidatingWebhookConfiguration for barriers that fieldperm maintains. "" for none.
	UncoveredConfiguration string
	// APIServers says which kube-apiservers call this instance of fieldperm: own, or all.
	APIServers string
	// ProofInterval is the time between two proofs of enforcement.
	ProofInterval time.Duration
	// ReleaseDelay is how long a finalizer holds a deleted WebhookConfiguration.
	ReleaseDelay time.Duration
	// AdmissionCallers says which callers may use /admit: only those with a certificate, or any.
	AdmissionCallers string
	// TracingConfigFile is the path of the tracing configuration. "" exports no spans.
	TracingConfigFile string
	// ShutdownDelay is how long the server accepts requests after /readyz has begun to fail.
	ShutdownDelay time.Duration
	// ShutdownTimeout is how long requests in progress may take to end.
	ShutdownTimeout time.Duration
}

const (
	defaultPort     = 9443
	defaultCacheTTL = 10 * time.Second
	// defaultMaxRequestBytes is enough for a review of the largest object that etcd stores (1.5 MiB) and that kube-apiserver reads
	// (3 MiB) with every byte written as six: kube-apiserver escapes control characters and HTML characters.
	defaultMaxRequestBytes = 32 << 20
	// largestQuestion is the maximum size in bytes of a request that is not an admission review.
	largestQuestion = 8 << 20
	defaultInterval = 5 * time.Second
	minInterval     = 500 * time.Millisecond
	// defaultInFlight is more than the default number of requests in progress of one kube-apiserver (600).
	defaultInFlight = 1000
	// defaultStreams is the maximum per connection: an API server uses one connection for all its calls.
	defaultStreams = 1000
)

// The values of --api-servers and of --admission-callers.
const (
	apiServersOwn      = "own"
	apiServersAll      = "all"
	callersCertificate = "certificate"
	callersAny         = "any"
)

// NewOptions returns Options with the default values.
func NewOptions() *Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.BindAddress = net.IPv4zero
	serving.BindPort = defaultPort
	serving.Required = true
	serving.HTTP2MaxStreamsPerConnection = defaultStreams
	// Without these fields, SecureServing never generates a self-signed certificate: callers have no CA to verify it with.
	serving.ServerCert.CertDirectory, serving.ServerCert.PairName = "", ""
	return &Options{
		SecureServing:       serving,
		MaxChecks:           fieldperm.DefaultMaxChecks,
		DecisionCacheTTL:    defaultCacheTTL,
		MaxRequestBytes:     defaultMaxRequestBytes,
		MaxRequestsInFlight: defaultInFlight,
		APIServers:          apiServersAll,
		ProofInterval:       defaultInterval,
		ReleaseDelay:        webhooks.DefaultReleaseDelay,
		AdmissionCallers:    callersCertificate,
		ShutdownDelay:       time.Second,
		ShutdownTimeout:     30 * time.Second,
	}
}

// AddFlags adds the flags of serve to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the kube-apiserver to follow and to ask; in-cluster configuration if empty.")
	fs.IPVar(&o.SecureServing.BindAddress, "bind-address", o.SecureServing.BindAddress, "IP address to listen on; 0.0.0.0 or :: for all.")
	fs.IntVar(&o.SecureServing.BindPort, "secure-port", o.SecureServing.BindPort, "Port to serve HTTPS on.")
	fs.StringVar(&o.SecureServing.ServerCert.CertKey.CertFile, "tls-cert-file", "", "File with the serving certificate, PEM, intermediates after it. Required without --tls-secret.")
	fs.StringVar(&o.SecureServing.ServerCert.CertKey.KeyFile, "tls-private-key-file", "", "File with the key of --tls-cert-file.")
	fs.StringVar(&o.TLSSecret, "tls-secret", o.TLSSecret, "NAMESPACE/NAME of a Secret in which fieldperm keeps a CA and a certificate for fieldperm.NAMESPACE.svc, in place of --tls-cert-file.")
	fs.StringVar(&o.WebhookCAFile, "webhook-ca-file", o.WebhookCAFile, "File with the only CAs that --webhook-configuration may trust, or those to write with --webhook-url. If empty, each CA with which a probe comes back is accepted.")
	fs.StringVar(&o.WebhookURL, "webhook-url", o.WebhookURL, "URL at which every kube-apiserver reaches fieldperm, for --uncovered-configuration with --static-manifests.")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile, "File with the CAs of callers' client certificates, above all the kube-apiserver's. Each caller can ask what users may do. Required.")
	fs.StringSliceVar(&o.PermissionSchemas, "permission-schemas", o.PermissionSchemas, "Files or directories with PermissionSchemas, UncoveredPermissionSets and CustomResourceDefinitions. fieldperm does not start with an invalid one.")
	fs.StringVar(&o.AuthorizationConfig, "authorization-config", o.AuthorizationConfig, "File with the AuthorizationConfiguration of fieldperm's own checks. Empty to ask the SubjectAccessReview API of --kubeconfig.")
	fs.StringVar(&o.AuthenticationConfig, "authentication-config", o.AuthenticationConfig, "File with an AuthenticationConfiguration: whose bearer tokens /review and /permissions accept.")
	fs.StringSliceVar(&o.WebhookTokenUsers, "webhook-token-users", o.WebhookTokenUsers, "Users of --authentication-config whose bearer token /admit, /authorize and /conditions accept in place of a client certificate: the kube-apiserver's own.")
	fs.IntVar(&o.MaxChecks, "max-checks", o.MaxChecks, "Largest number of permission checks for one request; a request that needs more is denied.")
	fs.DurationVar(&o.DecisionCacheTTL, "decision-cache-ttl", o.DecisionCacheTTL, "How long the answer of a permission check is kept: a revoked verb counts at most that much longer.")
	fs.Int64Var(&o.MaxRequestBytes, "max-request-bytes", o.MaxRequestBytes, "Largest body of an admission review, in bytes.")
	fs.IntVar(&o.MaxRequestsInFlight, "max-requests-in-flight", o.MaxRequestsInFlight, "How many requests are answered at the same time; more are refused with 503.")
	fs.Int64Var(&o.MemoryLimit, "memory-limit", o.MemoryLimit, "Memory for the process, in bytes; an eighth is for bodies of reviews. 0 takes GOMEMLIMIT, else nine tenths of the container's limit, else 1 GiB.")
	fs.StringSliceVar(&o.AggregatedGroups, "aggregated-groups", o.AggregatedGroups, "API groups of aggregated API servers that the marker lets in. Name only groups whose server calls this webhook in its own admission: for others the marker would grant every field.")
	fs.StringVar(&o.WebhookConfiguration, "webhook-configuration", o.WebhookConfiguration, "Name of the ValidatingWebhookConfiguration that makes the kube-apiservers ask /admit/granular. Empty if a static manifest does.")
	fs.StringVar(&o.StaticManifests, "static-manifests", o.StaticManifests, "Directory of kube-apiserver's static manifests, mounted read-only, if one names /admit/granular. Needs --kube-apiserver-authorization-config, and get on the nonResourceURL /metrics.")
	fs.StringVar(&o.KubeAPIServerAuthorizationConfig, "kube-apiserver-authorization-config", o.KubeAPIServerAuthorizationConfig, "File of kube-apiserver's own --authorization-config, mounted read-only, to prove that fieldperm is its last authorizer. Not --authorization-config.")
	fs.StringVar(&o.UncoveredConfiguration, "uncovered-configuration", o.UncoveredConfiguration, "Name of the ValidatingWebhookConfiguration for /admit/uncovered that fieldperm writes. If empty, barriers hold only where something else makes kube-apiservers ask /admit/uncovered.")
	fs.StringVar(&o.APIServers, "api-servers", o.APIServers, "Which kube-apiservers ask /authorize and have to be proven: \"all\" that register themselves in the EndpointSlice default/kubernetes, these (host:port, separated by commas), or the \"own\" one of --kubeconfig, if fieldperm listens for it alone.")
	fs.DurationVar(&o.ProofInterval, "proof-interval", o.ProofInterval, "Time between two proofs of enforcement. A proof counts for two intervals.")
	fs.DurationVar(&o.ReleaseDelay, "release-delay", o.ReleaseDelay, "How long the deletion of --webhook-configuration is delayed: more than two --proof-interval, 3s, and kube-apiserver's authorizedTTL and --request-timeout together.")
	fs.StringVar(&o.AdmissionCallers, "admission-callers", o.AdmissionCallers, "Who may call /admit: \"certificate\" for holders of a certificate of --client-ca-file, or \"any\". Callers can ask what users may do: with \"any\", limit them by a network policy.")
	fs.StringVar(&o.TracingConfigFile, "tracing-config-file", o.TracingConfigFile, "File with a TracingConfiguration; empty for no spans.")
	fs.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay, "How long to serve after SIGTERM with /readyz failing.")
	fs.DurationVar(&o.ShutdownTimeout, "shutdown-timeout", o.ShutdownTimeout, "How long requests in progress may take to end after that.")
}

func (o *Options) validate() error {
	errs := o.SecureServing.Validate()
	if o.SecureServing.Listener != nil {
		errs = nil
	}
	certificate := o.SecureServing.ServerCert.CertKey
	switch files := certificate.CertFile != "" || certificate.KeyFile != ""; {
	case o.TLSSecret == "" && (certificate.CertFile == "" || certificate.KeyFile == ""):
		errs = append(errs, errors.New("--tls-cert-file, --tls-private-key-file: must both be given, or --tls-secret: the kube-apiserver calls by HTTPS only"))
	case o.TLSSecret != "" && files:
		errs = append(errs, errors.New("--tls-secret: excludes --tls-cert-file and --tls-private-key-file: give one or the others"))
	}
	if namespace, name, ok := strings.Cut(o.TLSSecret, "/"); o.TLSSecret != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		errs = append(errs, fmt.Errorf("--tls-secret: %q is not NAMESPACE/NAME: write it as fieldperm-system/fieldperm-tls", o.TLSSecret))
	}
	if o.WebhookCAFile != "" && (o.WebhookConfiguration == "" && o.WebhookURL == "" || o.TLSSecret != "") {
		errs = append(errs, errors.New("--webhook-ca-file: has a meaning with --webhook-configuration or --webhook-url, and without --tls-secret only: leave it out"))
	}
	if o.ClientCAFile == "" {
		errs = append(errs, errors.New("--client-ca-file: is missing: without it anyone could ask what users may do; give the CA of the kube-apiserver's client certificate"))
	}
	if o.MaxChecks < 1 {
		errs = append(errs, fmt.Errorf("--max-checks: %d is too few: use at least 1", o.MaxChecks))
	}
	if o.MaxRequestBytes < 1 {
		errs = append(errs, fmt.Errorf("--max-request-bytes: %d is too few: use at least 1", o.MaxRequestBytes))
	}
	if o.MaxRequestsInFlight < 1 {
		errs = append(errs, fmt.Errorf("--max-requests-in-flight: %d is too few: use at least 1", o.MaxRequestsInFlight))
	}
	if o.MemoryLimit < 0 {
		errs = append(errs, fmt.Errorf("--memory-limit: %d is negative: use 0 to take that of the container", o.MemoryLimit))
	}
	if o.APIServers != apiServersOwn && o.APIServers != apiServersAll {
		for _, address := range strings.Split(o.APIServers, ",") {
			if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
				errs = append(errs, fmt.Errorf("--api-servers: %q is no host:port: use %q, %q or the addresses, separated by commas", address, apiServersOwn, apiServersAll))
			}
		}
	}
	errs = append(errs, o.validateUncovered()...)
	if (o.StaticManifests == "") != (o.KubeAPIServerAuthorizationConfig == "") {
		errs = append(errs, errors.New("--static-manifests, --kube-apiserver-authorization-config: must both be given, or neither: an Allow counts on both"))
	}
	if len(o.AggregatedGroups) > 0 && o.WebhookConfiguration == "" {
		errs = append(errs, errors.New("--aggregated-groups: needs --webhook-configuration: an aggregated API server does not read static manifests of kube-apiserver, so nothing would make it ask fieldperm"))
	}
	if o.AdmissionCallers != callersCertificate && o.AdmissionCallers != callersAny {
		errs = append(errs, fmt.Errorf("--admission-callers: %q is not known: use %q or %q", o.AdmissionCallers, callersCertificate, callersAny))
	}
	if len(o.WebhookTokenUsers) > 0 && o.AuthenticationConfig == "" {
		errs = append(errs, errors.New("--webhook-token-users: needs --authentication-config, which says whose tokens they are"))
	}
	for _, name := range o.WebhookTokenUsers {
		if name == "" || name == user.Anonymous {
			errs = append(errs, fmt.Errorf("--webhook-token-users: %q has no token: name the user that the kube-apiserver's token is of", name))
		}
	}
	if o.ProofInterval < minInterval {
		errs = append(errs, fmt.Errorf("--proof-interval: %s is too short for a probe to come back: use at least %s", o.ProofInterval, minInterval))
	}
	if o.ReleaseDelay < 2*o.ProofInterval {
		errs = append(errs, fmt.Errorf("--release-delay: %s is shorter than the life of a proof: use more than two --proof-interval, 3s, authorizedTTL and --request-timeout together", o.ReleaseDelay))
	}
	for name, d := range map[string]time.Duration{"--decision-cache-ttl": o.DecisionCacheTTL, "--shutdown-delay-duration": o.ShutdownDelay, "--shutdown-timeout": o.ShutdownTimeout} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is negative: use 0 or more", name, d))
		}
	}
	for _, group := range o.AggregatedGroups {
		if group == "" || strings.Contains(group, "*") {
			errs = append(errs, fmt.Errorf("--aggregated-groups: %q is no API group: name each group in full", group))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// validateUncovered checks how kube-apiservers can call fieldperm for barriers.
func (o *Options) validateUncovered() []error {
	var errs []error
	if o.UncoveredConfiguration != "" && o.WebhookConfiguration == "" && o.WebhookURL == "" {
		errs = append(errs, errors.New("--uncovered-configuration: needs --webhook-configuration or --webhook-url: they say how kube-apiservers reach fieldperm"))
	}
	if o.WebhookConfiguration != "" && o.UncoveredConfiguration == "" {
		errs = append(errs, errors.New("--webhook-configuration: needs --uncovered-configuration: an API server that has loaded the one that fieldperm writes has loaded the other, too: use fieldperm-uncovered"))
	}
	if o.WebhookURL == "" {
		return errs
	}
	if u, err := url.Parse(o.WebhookURL); err != nil || u.Scheme != "https" || u.Hostname() == "" || strings.TrimSuffix(o.WebhookURL, "/") != "https://"+u.Host {
		errs = append(errs, fmt.Errorf("--webhook-url: %q is not of the form https://host:port: give --url of fieldperm-gen manifests", o.WebhookURL))
	}
	switch {
	case o.WebhookConfiguration != "":
		errs = append(errs, errors.New("--webhook-url: excludes --webhook-configuration, which says how to reach fieldperm: leave one of them out"))
	case o.UncoveredConfiguration == "":
		errs = append(errs, errors.New("--webhook-url: has a meaning with --uncovered-configuration only: name the configuration to keep, fieldperm-uncovered"))
	case o.WebhookCAFile == "" && o.TLSSecret == "":
		errs = append(errs, errors.New("--webhook-url: needs --webhook-ca-file: kube-apiservers check fieldperm's certificate against it"))
	}
	return errs
}
