package interlock

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	manifestloader "k8s.io/apiserver/pkg/admission/plugin/webhook/manifest/loader"
	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// Manifests are the files of the control plane that make kube-apiserver call fieldperm, if the webhook granular is a static
// manifest. kube-apiserver publishes the hashes of the files that it has loaded (filesInForce). Equal hashes prove that the files
// are in force, for all resources, operations and users at once.
type Manifests struct {
	// Directory is the staticManifestsDir of the plugin ValidatingAdmissionWebhook.
	Directory string
	// AuthorizationConfig is the file of kube-apiserver's --authorization-config.
	AuthorizationConfig string
	// Certificate returns fieldperm's serving certificate in PEM, with its chain. The webhook must call the holder of this
	// certificate.
	Certificate func() []byte
	// LongestTTL is the longest time for which kube-apiserver may cache an Allow of fieldperm.
	LongestTTL time.Duration
}

// Hashes are the hashes of the files, in the form in which kube-apiserver publishes them. The zero Hashes match no file.
type Hashes struct{ Manifests, Authorization string }

// Read checks the current files. It returns their hashes, and the reason and the error if they do not enforce what an Allow of
// /authorize promises. The hashes and the check are from the same bytes.
func (m *Manifests) Read(now time.Time) (Hashes, Reason, error) {
	configurations, hash, err := m.load()
	if err != nil {
		return Hashes{}, ReasonManifestsUnread, fmt.Errorf("--static-manifests: cannot be read: mount kube-apiserver's staticManifestsDir there, read-only (%w)", err)
	}
	raw, err := os.ReadFile(m.AuthorizationConfig)
	if err != nil {
		return Hashes{}, ReasonManifestsUnread, fmt.Errorf("--kube-apiserver-authorization-config: cannot be read: mount the file of kube-apiserver's --authorization-config there, read-only (%w)", err)
	}
	hashes := Hashes{Manifests: hash, Authorization: fmt.Sprintf("sha256:%x", sha256.Sum256(raw))}
	if err := m.checkWebhooks(configurations, now); err != nil {
		return hashes, ReasonManifestsLoose, fmt.Errorf("--static-manifests %q: %w: write there what fieldperm-gen manifests makes, again", m.Directory, err)
	}
	if err := checkChain(raw, m.LongestTTL); err != nil {
		return hashes, ReasonManifestsLoose, fmt.Errorf("--kube-apiserver-authorization-config %q: %w: write it as fieldperm-gen manifests does", m.AuthorizationConfig, err)
	}
	return hashes, ReasonProven, nil
}

// stamp returns a value that changes when a file is written or replaced, even with its former content: kube-apiserver may have
// loaded the content in between.
func (m *Manifests) stamp() string {
	paths := []string{m.Directory, m.AuthorizationConfig}
	entries, err := os.ReadDir(m.Directory)
	stamps := []string{fmt.Sprint(err)}
	for _, entry := range entries {
		paths = append(paths, filepath.Join(m.Directory, entry.Name()))
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			stamps = append(stamps, err.Error())
			continue
		}
		stamps = append(stamps, fmt.Sprintf("%q %d %d %s", path, info.Size(), info.ModTime().UnixNano(), identity(path, info)))
	}
	return strings.Join(stamps, "\n")
}

// load reads the directory with kube-apiserver's own loader, but sets no defaults: every field that is checked must be present in
// the file.
func (m *Manifests) load() ([]*admissionregistrationv1.ValidatingWebhookConfiguration, string, error) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		return nil, "", err
	}
	scheme.AddUnversionedTypes(metav1.SchemeGroupVersion, &metav1.List{}, &metav1.Status{})
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	return manifestloader.LoadManifests(m.Directory, decoder, func(object runtime.Object) ([]*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
		switch object := object.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			return []*admissionregistrationv1.ValidatingWebhookConfiguration{object}, nil
		case *admissionregistrationv1.ValidatingWebhookConfigurationList:
			var items []*admissionregistrationv1.ValidatingWebhookConfiguration
			for i := range object.Items {
				items = append(items, &object.Items[i])
			}
			return items, nil
		}
		return nil, fmt.Errorf("a %T is no ValidatingWebhookConfiguration", object)
	})
}

// checkWebhooks returns why the manifests together do not enforce, nil if they do. The manifests may contain webhooks of others and
// fieldperm's own webhooks under their names. No other webhook may call fieldperm at the path of granular: it could answer probes
// while the webhook granular does not see writes.
func (m *Manifests) checkWebhooks(configurations []*admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) error {
	paths := map[string]string{webhooks.GranularPath: webhooks.GranularWebhook, webhooks.UncoveredPath: webhooks.UncoveredWebhookName, webhooks.SchemasPath: webhooks.SchemasWebhook}
	var granular *admissionregistrationv1.ValidatingWebhook
	for _, configuration := range configurations {
		for i := range configuration.Webhooks {
			webhook := &configuration.Webhooks[i]
			target, err := url.Parse(*webhook.ClientConfig.URL)
			if err != nil {
				return fmt.Errorf("webhook %q of %q: URL %q cannot be parsed", webhook.Name, configuration.Name, *webhook.ClientConfig.URL)
			}
			switch owner, ours := paths[path.Clean("/"+target.Path)]; {
			case ours && owner != webhook.Name:
				return fmt.Errorf("webhook %q of %q calls %s, which is for the webhook %q alone", webhook.Name, configuration.Name, target.Path, owner)
			case webhook.Name != webhooks.GranularWebhook:
			case granular != nil:
				return fmt.Errorf("there are two webhooks %q", webhook.Name)
			default:
				granular = webhook
			}
		}
	}
	if granular == nil {
		return fmt.Errorf("there is no webhook %q", webhooks.GranularWebhook)
	}
	if err := enforces(granular); err != nil {
		return fmt.Errorf("webhook %q %w", granular.Name, err)
	}
	if err := m.leadsHere(granular.ClientConfig, now); err != nil {
		return fmt.Errorf("webhook %q %w", granular.Name, err)
	}
	return nil
}

// leadsHere returns why a webhook may call a server other than fieldperm. It returns nil if only the holder of fieldperm's serving
// key can answer the webhook.
func (m *Manifests) leadsHere(client admissionregistrationv1.WebhookClientConfig, now time.Time) error {
	target, err := url.Parse(*client.URL)
	if err != nil || target.Scheme != "https" || target.Path != webhooks.GranularPath || target.User != nil || target.RawQuery != "" || target.Fragment != "" {
		return fmt.Errorf("has the URL %q, which is not https://HOST:PORT%s", *client.URL, webhooks.GranularPath)
	}
	chain, err := cert.ParseCertsPEM(m.Certificate())
	if err != nil {
		return fmt.Errorf("cannot be compared with the serving certificate (%w)", err)
	}
	leaf, options := chain[0], x509.VerifyOptions{DNSName: target.Hostname(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	// TLS checks the validity period. A wrong clock here is no reason to assume that the webhook calls another server.
	if now.Before(leaf.NotBefore) {
		options.CurrentTime = leaf.NotBefore
	} else if now.After(leaf.NotAfter) {
		options.CurrentTime = leaf.NotAfter
	}
	for _, intermediate := range chain[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	// Without a bundle kube-apiserver uses the roots of its machine. The roots of this machine stand for them.
	if len(client.CABundle) > 0 {
		options.Roots = x509.NewCertPool()
		if !options.Roots.AppendCertsFromPEM(client.CABundle) {
			return errors.New("has a caBundle without a certificate")
		}
	}
	if _, err := leaf.Verify(options); err != nil {
		return fmt.Errorf("with the URL %q and its caBundle does not lead to fieldperm's serving certificate (%w)", *client.URL, err)
	}
	return nil
}
