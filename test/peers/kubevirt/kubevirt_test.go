// Package peer measures the webhook of kubevirt-rbac-webhook. Its checks go to a SubjectAccessReview API over TLS, as its program sends them,
// and once to a function in process, which shows what is left without them.
package peer

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	kubevirt "kubevirt.io/api/core/v1"
	webhook "kubevirt.io/kubevirt-rbac-webhook/internal/webhook/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fieldperm/fieldperm/test/peers/reviews"
)

// may is the grant of the operator: update of virtualmachines/lifecycle-admin.
func may(user, resource string) bool {
	return user == reviews.Operator && resource == "virtualmachines/lifecycle-admin"
}

// inProcess answers without a request.
type inProcess struct{}

func (inProcess) CheckPermission(_ context.Context, user authenticationv1.UserInfo, _, _, subresource string) (bool, error) {
	return may(user.Username, subresource), nil
}

func peers(tb testing.TB) []reviews.Peer {
	tb.Helper()
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := authorizationv1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	if err := kubevirt.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	cases := reviews.VirtualMachines(tb)
	const path = "/validate-kubevirt-io-v1-virtualmachine"
	handler := func(checks webhook.PermissionChecker) http.Handler {
		return admission.WithCustomValidator(scheme, &kubevirt.VirtualMachine{}, &webhook.VirtualMachineCustomValidator{
			// As in SetupVirtualMachineWebhookWithManager.
			FieldCheckers: []webhook.FieldPermissionChecker{
				&webhook.NetworkPermissionChecker{}, &webhook.ComputePermissionChecker{}, &webhook.DevicesPermissionChecker{},
				&webhook.LifecyclePermissionChecker{}, &webhook.CdromUserPermissionChecker{}, &webhook.StoragePermissionChecker{},
			},
			PermissionChecker: checks,
		})
	}
	return []reviews.Peer{
		reviews.Webhook("kubevirt-rbac-webhook", cases, path, handler(&webhook.SubjectAccessReviewPermissionChecker{Client: reviewer(tb, scheme)})),
		reviews.Webhook("kubevirt-rbac-webhook-free-checks", cases, path, handler(inProcess{})),
	}
}

// reviewer is a client of a SubjectAccessReview API, without a limit of its rate.
func reviewer(tb testing.TB, scheme *runtime.Scheme) client.Client {
	tb.Helper()
	server := httptest.NewUnstartedServer(api(scheme))
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	tb.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	out, err := client.New(&rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// api is the SubjectAccessReview API, which the client speaks in protobuf.
func api(scheme *runtime.Scheme) http.HandlerFunc {
	codecs := serializer.NewCodecFactory(scheme)
	return func(w http.ResponseWriter, r *http.Request) {
		media := r.Header.Get("Content-Type")
		info, known := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
		body, err := io.ReadAll(r.Body)
		review := &authorizationv1.SubjectAccessReview{}
		if err == nil {
			_, _, err = codecs.UniversalDeserializer().Decode(body, nil, review)
		}
		if !known || err != nil || review.Spec.ResourceAttributes == nil {
			http.Error(w, fmt.Sprintf("no review: %v", err), http.StatusBadRequest)
			return
		}
		review.Status.Allowed = may(review.Spec.User, review.Spec.ResourceAttributes.Resource)
		w.Header().Set("Content-Type", media)
		w.WriteHeader(http.StatusCreated)
		_ = codecs.EncoderForVersion(info.Serializer, authorizationv1.SchemeGroupVersion).Encode(review, w)
	}
}

func TestPeer(t *testing.T) {
	for _, p := range peers(t) {
		reviews.Test(t, p)
	}
}

// Objects are decoded into the types of the KubeVirt that the webhook was built with, and managedFields are left out of the comparison.
func TestLimits(t *testing.T) {
	for _, p := range peers(t) {
		reviews.TestLimits(t, p, reviews.VirtualMachineLimits(t), reviews.Ownership, reviews.NewField)
	}
}

func BenchmarkPeer(b *testing.B) {
	for _, p := range peers(b) {
		reviews.Benchmark(b, p)
	}
}
