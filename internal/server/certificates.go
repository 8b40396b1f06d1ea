package server

import (
	"context"
	"fmt"
	"strings"

	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/certificates"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/metrics"
)

// servingCertificates has the serving certificate, the CAs of callers, and the port.
type servingCertificates struct {
	callers dynamiccertificates.CAContentProvider
	// keeper keeps fieldperm's own serving certificate (--tls-secret). It is nil if the certificate is in files.
	keeper *certificates.Keeper
	secret string
	// trusted returns the CAs that the webhook configuration must trust. It is nil if any CA is accepted.
	trusted func() []byte
	// webhookCA is the file of these CAs. It is nil without --webhook-ca-file.
	webhookCA *dynamiccertificates.DynamicFileCAContent
	// serving is set by listen.
	serving *genericserver.SecureServingInfo
}

// newCertificates loads the CAs and sets up the keeper of the serving certificate. It does not open the port.
func newCertificates(o *Options, config *rest.Config) (*servingCertificates, error) {
	callers, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("--client-ca-file: %w", err)
	}
	c := &servingCertificates{callers: callers, secret: o.TLSSecret}
	switch {
	case o.TLSSecret != "":
		if c.keeper, err = newKeeper(o, config); err != nil {
			return nil, err
		}
		c.trusted = c.keeper.CABundle
	case o.WebhookCAFile != "":
		if c.webhookCA, err = dynamiccertificates.NewDynamicCAContentFromFile("webhook-ca", o.WebhookCAFile); err != nil {
			return nil, fmt.Errorf("--webhook-ca-file: %w", err)
		}
		c.trusted = c.webhookCA.CurrentCABundleContent
	}
	return c, nil
}

func newKeeper(o *Options, config *rest.Config) (*certificates.Keeper, error) {
	clients, err := kubernetes.NewForConfig(client(config, "certificates"))
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	time, err := certificates.ServerTime(client(config, "certificates"))
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(o.TLSSecret, "/")
	return certificates.New(certificates.Config{
		Client: clients, Namespace: namespace, Name: name, WebhookConfiguration: o.WebhookConfiguration,
		ServerTime: time,
		DNSNames:   []string{"fieldperm." + namespace + ".svc", "fieldperm." + namespace + ".svc.cluster.local"},
	})
}

// listen loads the serving certificate and opens the port. The key of the certificate becomes the key of probes.
func (c *servingCertificates) listen(o *Options, m *metrics.Metrics, keys *interlock.Keyring) error {
	if err := o.SecureServing.ApplyTo(&c.serving); err != nil {
		return fmt.Errorf("serving: %w: see --bind-address, --secure-port, --tls-cert-file and --tls-private-key-file", err)
	}
	c.serving.ClientCA = c.callers
	keyChanged := func() {
		_, key := c.serving.Cert.CurrentCertKeyContent()
		if len(key) == 0 {
			return // There is no key yet. This is called again when there is one.
		}
		if err := keys.Set(key); err != nil {
			klog.Background().Error(err, "Probes have no key")
		}
	}
	if c.keeper != nil {
		c.serving.Cert = c.keeper
	} else {
		keyChanged()
	}
	m.ServingCertificate(c.serving.Cert.CurrentCertKeyContent)
	if notifier, ok := c.serving.Cert.(dynamiccertificates.Notifier); ok {
		notifier.AddListener(enqueue(keyChanged))
	}
	return nil
}

// current returns the serving certificate.
func (c *servingCertificates) current() []byte {
	certificate, _ := c.serving.Cert.CurrentCertKeyContent()
	return certificate
}

// follow starts the goroutines that keep the certificates current until background ends. It returns when there is a certificate to serve, or when
// ctx ends.
func (c *servingCertificates) follow(ctx, background context.Context) error {
	if c.webhookCA != nil {
		go c.webhookCA.Run(background, 1)
	}
	if c.keeper == nil {
		return nil
	}
	go c.keeper.Run(background)
	klog.FromContext(ctx).Info("Waiting for the serving certificate", "secret", c.secret)
	return c.keeper.Await(ctx)
}

// Ready returns nil if there is a certificate to serve.
func (c *servingCertificates) Ready() error {
	if c.keeper == nil {
		return nil
	}
	return c.keeper.Ready()
}

// enqueue is a listener for changes of certificates.
type enqueue func()

func (f enqueue) Enqueue() { f() }
