package oracle

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// stateAnnotation keeps the values for which a version has no field, as conversion webhooks do.
const stateAnnotation = "oracle.test/state"

// converter is the conversion webhook of drawn definitions.
type converter struct {
	server *httptest.Server
	bundle []byte

	mu    sync.Mutex // guards kinds
	kinds map[runtimeschema.GroupKind]*custom
}

func newConverter() (*converter, error) {
	authority, err := cluster.NewAuthority("oracle-conversion")
	if err != nil {
		return nil, err
	}
	c := &converter{kinds: map[runtimeschema.GroupKind]*custom{}}
	if c.bundle, err = authority.Bundle(); err != nil {
		return nil, err
	}
	certificate, key, err := authority.Issue(cluster.Leaf{Name: "conversion", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	c.server = httptest.NewUnstartedServer(c)
	c.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	return c, nil
}

// serve makes this converter convert the objects of the definition.
func (c *converter) serve(one *custom) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[runtimeschema.GroupKind{Group: one.group, Kind: one.kind}] = one
	raw, err := json.Marshal(apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &c.server.URL, CABundle: c.bundle},
		},
	})
	if err != nil {
		return err
	}
	conversion, err := parseObject(raw)
	if err != nil {
		return err
	}
	child(one.object, "spec")["conversion"] = conversion
	return nil
}

// ServeHTTP answers a ConversionReview.
func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no ConversionReview", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, one := range review.Request.Objects {
		raw, err := c.convert(one.Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: raw})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // Encoding fails only if the API server has closed the connection.
}

// convert moves fields of the specification that the other version lacks into an annotation, and moves fields that the other version has
// back from it.
func (c *converter) convert(raw []byte, to string) ([]byte, error) {
	object, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	gv, err := runtimeschema.ParseGroupVersion(to)
	if err != nil {
		return nil, err
	}
	kind, _ := object["kind"].(string)
	c.mu.Lock()
	one := c.kinds[runtimeschema.GroupKind{Group: gv.Group, Kind: strings.TrimSuffix(kind, "List")}]
	c.mu.Unlock()
	if one == nil {
		return nil, fmt.Errorf("kind %q of %q is not known", kind, to)
	}
	if one.renamed != "" {
		one.rename(object, gv.Version)
		object["apiVersion"] = to
		return json.Marshal(object)
	}
	object["apiVersion"] = to
	declared, _ := one.version(gv.Version).schema["properties"].(properties)["spec"].(properties)["properties"].(properties)
	state := map[string]any{}
	annotations, _ := metadata(object)["annotations"].(map[string]any)
	if text, ok := annotations[stateAnnotation].(string); ok {
		_ = json.Unmarshal([]byte(text), &state) // A client may have written another text into the annotation. It is no state.
		delete(annotations, stateAnnotation)
	}
	spec, _ := object["spec"].(map[string]any)
	if state == nil {
		state = map[string]any{}
	}
	for key, value := range spec {
		if _, ok := declared[key]; !ok {
			state[key] = value
			delete(spec, key)
		}
	}
	for key, value := range state {
		if _, ok := declared[key]; ok {
			child(object, "spec")[key] = value
			delete(state, key)
		}
	}
	if len(state) > 0 {
		text, err := json.Marshal(state)
		if err != nil {
			return nil, err
		}
		child(metadata(object), "annotations")[stateAnnotation] = string(text)
	} else if len(annotations) == 0 {
		delete(metadata(object), "annotations")
	}
	return json.Marshal(object)
}

// rename gives the renamed field the name that it has in another version. A version that keeps unknown fields may have one with the name
// of the other version: the two change names, so that the conversion keeps both.
func (c *custom) rename(object map[string]any, to string) {
	spec, _ := object["spec"].(map[string]any)
	from, name := c.renamedIn(versionOf(object)), c.renamedIn(to)
	if from == name {
		return
	}
	own, isOwn := spec[from]
	other, isOther := spec[name]
	delete(spec, from)
	delete(spec, name)
	if isOwn {
		spec[name] = own
	}
	if isOther {
		spec[from] = other
	}
}

func (c *converter) close() { c.server.Close() }
