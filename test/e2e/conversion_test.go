//go:build integration

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// renames are the names of fields of the specification in v1, and in every other version. A field of v1 that becomes "" is lost.
type renames map[string]string

// convert renames the fields of a specification, to v1 or from v1.
func (names renames) convert(spec map[string]any, toFirst bool) {
	for first, other := range names {
		was, is := first, other
		if toFirst {
			was, is = other, first
		}
		value, has := spec[was]
		if !has {
			continue
		}
		delete(spec, was)
		if is != "" {
			spec[is] = value
		}
	}
}

// ServeHTTP is a conversion webhook.
func (names renames) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, from := range review.Request.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(from.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		if spec, ok := object.Object["spec"].(map[string]any); ok {
			names.convert(spec, strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1"))
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // The API server has gone away where that fails.
}

// serve serves the conversion webhook until the test ends. It returns the conversion of a definition, as YAML.
func (names renames) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(names)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: '" + server.URL + "', caBundle: " + base64.StdEncoding.EncodeToString(bundle) + "}}}"
}
