package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// recheck is the period between two checks for a renewal. retry is the delay after a failure.
	recheck = time.Minute
	retry   = 5 * time.Second

	// settle is how long an API server may take to receive a new CA in the webhook configuration.
	settle = 10 * time.Second
)

// Config configures a Keeper. Only Clock and WebhookConfiguration are optional.
type Config struct {
	Client kubernetes.Interface
	// Namespace and Name identify the Secret, of type kubernetes.io/tls.
	Namespace, Name string
	// DNSNames are the host names that callers use. The first one is the certificate's common name.
	DNSNames []string
	// WebhookConfiguration is the name of a ValidatingWebhookConfiguration. The caBundle of each of its webhooks is set to the CAs.
	// It need not exist. "" means none.
	WebhookConfiguration string
	// Clock is the real clock if nil.
	Clock clock.Clock
	// ServerTime returns the time of the API server's clock: see the function ServerTime. Without it nothing is made or replaced.
	ServerTime func(context.Context) (time.Time, error)
}

func (c Config) validate() error {
	var errs []error
	if c.Client == nil {
		errs = append(errs, errors.New("certificates: there is no client: give one"))
	}
	if c.Namespace == "" || c.Name == "" {
		errs = append(errs, fmt.Errorf("certificates: secret %q/%q: namespace or name is missing: give both", c.Namespace, c.Name))
	}
	if len(c.DNSNames) == 0 || slices.Contains(c.DNSNames, "") {
		errs = append(errs, fmt.Errorf("certificates: DNS names %q: there is none, or an empty one: give what callers call fieldperm", c.DNSNames))
	}
	if c.ServerTime == nil {
		errs = append(errs, errors.New("certificates: there is no clock of the API server: give one"))
	}
	return errors.Join(errs...)
}

// Keeper makes, follows and renews the certificate. Several replicas may each run one for the same Secret. All methods are safe for
// concurrent use. Run may be called once.
type Keeper struct {
	config Config
	// wake requests a check before its period ends.
	wake chan struct{}
	// first is closed when there is a certificate to serve.
	first chan struct{}

	mu        sync.Mutex // guards the fields below
	current   *serving
	bundle    []*x509.Certificate
	listeners []dynamiccertificates.Listener
	lastErr   error
	// known is the time since when a CA is in the webhook configuration, as far as this replica has seen. The key is the
	// certificate's bytes.
	known map[string]time.Time
	// before are the CAs of the previous serving certificate. They stay in the bundle until beforeUntil.
	before      []*x509.Certificate
	beforeUntil time.Time
}

var _ dynamiccertificates.CertKeyContentProvider = &Keeper{}

// New returns a Keeper if the configuration is valid. Only Run reads or writes the cluster.
func New(config Config) (*Keeper, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	return &Keeper{config: config, wake: make(chan struct{}, 1), first: make(chan struct{}), known: map[string]time.Time{}}, nil
}

// Name is the name of the certificate in the server's log.
func (k *Keeper) Name() string {
	return "secret::" + k.config.Namespace + "/" + k.config.Name
}

// CurrentCertKeyContent returns certificate and key in PEM. Both are empty until Await has returned.
func (k *Keeper) CurrentCertKeyContent() (certificate, key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		return nil, nil
	}
	return k.current.certificate, k.current.keyPEM
}

// AddListener adds a listener. It is called each time the serving certificate or CABundle changes. For a new CA it is called before
// a certificate of this CA is served.
func (k *Keeper) AddListener(listener dynamiccertificates.Listener) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listeners = append(k.listeners, listener)
}

// CABundle returns the CAs in PEM that callers must trust and that are written to the webhook configuration. During a renewal the
// bundles of two replicas may differ for a moment.
func (k *Keeper) CABundle() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	out, err := cert.EncodeCertificates(k.bundle...)
	if err != nil {
		return nil // They were parsed before, so this does not happen.
	}
	return out
}

// Ready returns nil if there is a certificate that callers accept, else why there is none.
func (k *Keeper) Ready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.current == nil && k.lastErr != nil:
		return k.lastErr
	case k.current == nil:
		return errors.New("certificates: the Secret has not been read yet")
	case expired(k.current.leaf, k.config.Clock.Now()):
		expired := fmt.Errorf("certificates: what is served holds from %s to %s only", k.current.leaf.NotBefore, k.current.leaf.NotAfter)
		return errors.Join(expired, k.lastErr)
	}
	return nil
}

// Await waits until there is a certificate to serve, or until the context ends.
func (k *Keeper) Await(ctx context.Context) error {
	select {
	case <-k.first:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), k.Ready())
	}
}

// Run maintains the certificate until the context ends. It logs failures and tries again; the current certificate stays in use.
func (k *Keeper) Run(ctx context.Context) {
	log := klog.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	for _, informer := range k.informers() {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { k.look() }, UpdateFunc: func(any, any) { k.look() }, DeleteFunc: func(any) { k.look() },
		}); err != nil {
			log.Error(err, "Not told of changes, looking each minute only")
		}
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	for {
		next := recheck
		if err := k.reconcile(ctx); errors.Is(err, errSettling) {
			next = settle
		} else if err != nil && ctx.Err() == nil {
			log.Error(err, "Serving certificate is not kept", "secret", klog.KRef(k.config.Namespace, k.config.Name))
			next = retry
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-k.config.Clock.After(next):
		}
	}
}

// look requests a check now. Several requests during one check cause one further check.
func (k *Keeper) look() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// informers report changes of the Secret and of the configuration. Their contents are not used: the objects are read again before
// anything is written or trusted.
func (k *Keeper) informers() []cache.SharedIndexInformer {
	only := func(name string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		})
	}
	// The Secret has private keys, so the informer must not hold a second copy of them.
	empty := informers.WithTransform(func(object any) (any, error) {
		if meta, ok := object.(metav1.ObjectMetaAccessor); ok {
			return &metav1.PartialObjectMetadata{ObjectMeta: *meta.GetObjectMeta().(*metav1.ObjectMeta)}, nil
		}
		return object, nil
	})
	secrets := informers.NewSharedInformerFactoryWithOptions(k.config.Client, 0, informers.WithNamespace(k.config.Namespace), only(k.config.Name), empty)
	out := []cache.SharedIndexInformer{secrets.Core().V1().Secrets().Informer()}
	if k.config.WebhookConfiguration != "" {
		webhooks := informers.NewSharedInformerFactoryWithOptions(k.config.Client, 0, only(k.config.WebhookConfiguration))
		out = append(out, webhooks.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer())
	}
	return out
}

// serve switches to a certificate. It reports whether the certificate differs from the previous one.
func (k *Keeper) serve(ctx context.Context, s *serving) bool {
	k.mu.Lock()
	before := k.current
	k.current = s
	k.mu.Unlock()
	if before == nil {
		close(k.first)
	} else if before.equal(s) {
		return false
	}
	klog.FromContext(ctx).Info("Serving another certificate", "notBefore", s.leaf.NotBefore, "notAfter", s.leaf.NotAfter, "issuer", s.leaf.Issuer.CommonName)
	return true
}

func (k *Keeper) tell() {
	k.mu.Lock()
	listeners := slices.Clone(k.listeners)
	k.mu.Unlock()
	for _, listener := range listeners {
		listener.Enqueue()
	}
}
