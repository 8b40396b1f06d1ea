package server

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/certificates"
)

// listen loads the certificates and opens the port.
func (s *Server) listen(config *rest.Config) error {
	callers, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", s.options.ClientCAFile)
	if err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	if err := s.options.SecureServing.ApplyTo(&s.serving); err != nil {
		return fmt.Errorf("serving: %w: see --bind-address, --secure-port, --tls-cert-file and --tls-private-key-file", err)
	}
	s.serving.ClientCA = callers
	s.callers = callers
	if s.options.TLSSecret != "" {
		if err := s.keepCertificate(config); err != nil {
			return err
		}
	} else {
		s.keyChanged()
	}
	s.metrics.ServingCertificate(s.serving.Cert.CurrentCertKeyContent)
	if notifier, ok := s.serving.Cert.(dynamiccertificates.Notifier); ok {
		notifier.AddListener(enqueue(s.keyChanged))
	}
	return nil
}

// keepCertificate sets up fieldperm's own serving certificate (--tls-secret).
func (s *Server) keepCertificate(config *rest.Config) error {
	clients, err := kubernetes.NewForConfig(client(config, "certificates"))
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	time, err := certificates.ServerTime(client(config, "certificates"))
	if err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(s.options.TLSSecret, "/")
	s.certificate, err = certificates.New(certificates.Config{
		Client: clients, Namespace: namespace, Name: name, WebhookConfiguration: s.options.WebhookConfiguration,
		ServerTime: time,
		DNSNames:   []string{"fieldperm." + namespace + ".svc", "fieldperm." + namespace + ".svc.cluster.local"},
	})
	if err != nil {
		return err
	}
	s.serving.Cert = s.certificate
	return nil
}

// trusted returns a function for the CAs that the webhook configuration must trust. It returns nil if any CA is accepted.
func (s *Server) trusted() (func() []byte, error) {
	switch {
	case s.options.TLSSecret != "":
		return func() []byte { return s.certificate.CABundle() }, nil
	case s.options.WebhookCAFile != "":
		file, err := dynamiccertificates.NewDynamicCAContentFromFile("webhook-ca", s.options.WebhookCAFile)
		if err != nil {
			return nil, fmt.Errorf("--webhook-ca-file: %w", err)
		}
		s.webhookCA = file
		return file.CurrentCABundleContent, nil
	}
	return nil, nil
}

// followCertificates starts what keeps the certificates current until background ends. It returns when there is a certificate to
// serve, or when ctx ends.
func (s *Server) followCertificates(ctx, background context.Context) error {
	if s.webhookCA != nil {
		go s.webhookCA.Run(background, 1)
	}
	if s.certificate == nil {
		return nil
	}
	go s.certificate.Run(background)
	klog.FromContext(ctx).Info("Waiting for the serving certificate", "secret", s.options.TLSSecret)
	return s.certificate.Await(ctx)
}

// keyChanged uses the key of the serving certificate as the key of probes.
func (s *Server) keyChanged() {
	_, key := s.serving.Cert.CurrentCertKeyContent()
	if len(key) == 0 {
		return // There is no key yet. keyChanged is called again when there is one.
	}
	if err := s.keys.Set(key); err != nil {
		klog.Background().Error(err, "Canaries have no key")
	}
}

// enqueue is a listener for changes of certificates.
type enqueue func()

func (f enqueue) Enqueue() { f() }
