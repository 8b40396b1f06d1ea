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

	"github.com/fieldperm/fieldperm/generators"
)

// Manifests are the files of the control plane that make kube-apiserver ask fieldperm, where the webhook granular is a
// static manifest. kube-apiserver publishes the hash of those that it has loaded (inForce), so what they say is known
// to be in force, for every resource, operation and user at a time.
type Manifests struct {
	// Directory is the staticManifestsDir of the plugin ValidatingAdmissionWebhook.
	Directory string
	// AuthorizationConfig is the file of kube-apiserver's --authorization-config.
	AuthorizationConfig string
	// Certificate returns fieldperm's serving certificate, PEM, with what it is signed by. The webhook has to lead to it.
	Certificate func() []byte
	// LongestTTL is how long kube-apiserver may keep an Allow of fieldperm.
	LongestTTL time.Duration
}

// Hashes are those of the files, as kube-apiserver publishes them. The zero Hashes are no file's.
type Hashes struct{ Manifests, Authorization string }

// Read checks the files as they are now. It returns their hashes, and why they do not enforce what an Allow of
// /authorize promises, nil if they do. Hashes without an error are of what was checked: both are of the same bytes.
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
	return hashes, ReasonClosed, nil
}

// stamp is another whenever a file was written since, or replaced, even by what it had been before: kube-apiserver may have
// loaded what was there in between.
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

// load reads the directory as kube-apiserver does, with its own loader, but fills in no defaults: what is checked has to
// be said.
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

// checkWebhooks returns why the manifests together do not enforce, nil if they do. Webhooks of others may stand beside
// granular, and fieldperm's own under their names, but none that calls fieldperm in granular's place: it could answer
// canaries while the webhook that is to look at writes does not.
func (m *Manifests) checkWebhooks(configurations []*admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) error {
	paths := map[string]string{generators.GranularPath: generators.GranularWebhook, generators.UncoveredPath: generators.UncoveredWebhookName, generators.SchemasPath: generators.SchemasWebhook}
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
			case webhook.Name != generators.GranularWebhook:
			case granular != nil:
				return fmt.Errorf("there are two webhooks %q", webhook.Name)
			default:
				granular = webhook
			}
		}
	}
	if granular == nil {
		return fmt.Errorf("there is no webhook %q", generators.GranularWebhook)
	}
	if err := enforces(granular); err != nil {
		return fmt.Errorf("webhook %q %w", granular.Name, err)
	}
	if err := m.leadsHere(granular.ClientConfig, now); err != nil {
		return fmt.Errorf("webhook %q %w", granular.Name, err)
	}
	return nil
}

// leadsHere returns why a webhook may call another than fieldperm, nil if only the holder of fieldperm's serving key
// can answer it.
func (m *Manifests) leadsHere(client admissionregistrationv1.WebhookClientConfig, now time.Time) error {
	target, err := url.Parse(*client.URL)
	if err != nil || target.Scheme != "https" || target.Path != generators.GranularPath || target.User != nil || target.RawQuery != "" || target.Fragment != "" {
		return fmt.Errorf("has the URL %q, which is not https://HOST:PORT%s", *client.URL, generators.GranularPath)
	}
	chain, err := cert.ParseCertsPEM(m.Certificate())
	if err != nil {
		return fmt.Errorf("cannot be compared with the serving certificate (%w)", err)
	}
	leaf, options := chain[0], x509.VerifyOptions{DNSName: target.Hostname(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	// TLS holds that it is valid now. A clock that is wrong here says nothing about where the webhook leads.
	if now.Before(leaf.NotBefore) {
		options.CurrentTime = leaf.NotBefore
	} else if now.After(leaf.NotAfter) {
		options.CurrentTime = leaf.NotAfter
	}
	for _, intermediate := range chain[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	// Without a bundle the roots of kube-apiserver's machine count, and those here stand for them.
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
