// Package policy measures a ValidatingAdmissionPolicy in the admission plugin of kube-apiserver. The plugin gets the decoded objects, as in a
// kube-apiserver, which has decoded the request before: no decoding is measured, and no answer.
package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/peers/reviews"
)

// holders are the users and their verbs, as Roles grant them.
var holders = map[string][]string{reviews.Scaler: {"update", "granular", "granular:scale"}, reviews.Deployer: {"update", "granular", "granular:specification"}}

// grants answers in process, as the RBAC authorizer of kube-apiserver.
var grants = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(holders[a.GetUser().GetName()], a.GetVerb()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
})

// plugin returns the admission plugin with the policy in force.
func plugin(tb testing.TB) *validating.Plugin {
	tb.Helper()
	text, err := os.ReadFile("policy.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	rule, binding, _ := bytes.Cut(text, []byte("\n---\n"))
	p, b := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	for document, into := range map[string]any{string(rule): p, string(binding): b} {
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			tb.Fatal(err)
		}
	}
	// The API server sets defaults.
	match := admissionregistrationv1.Equivalent
	p.Spec.MatchConstraints.MatchPolicy = &match
	p.Spec.MatchConstraints.NamespaceSelector, p.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
	scope := admissionregistrationv1.AllScopes
	for i := range p.Spec.MatchConstraints.ResourceRules {
		p.Spec.MatchConstraints.ResourceRules[i].Scope = &scope
	}
	client := fake.NewClientset(p, b, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: reviews.Namespace}})
	factory := informers.NewSharedInformerFactory(client, time.Hour)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	out, err := validating.NewPlugin(nil)
	if err != nil {
		tb.Fatal(err)
	}
	initializer.New(client, dynamicfake.NewSimpleDynamicClient(scheme.Scheme), factory, grants, utilfeature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), tb.Context().Done(), mapper).Initialize(out)
	if err := out.ValidateInitialization(); err != nil {
		tb.Fatal(err)
	}
	factory.Start(tb.Context().Done())
	factory.WaitForCacheSync(tb.Context().Done())
	return out
}

func peer(tb testing.TB) reviews.Peer {
	tb.Helper()
	admits, interfaces := plugin(tb), admission.NewObjectInterfacesFromScheme(scheme.Scheme)
	return reviews.Peer{Name: "ValidatingAdmissionPolicy", Cases: reviews.Deployments(tb), Decider: func(tb testing.TB, c reviews.Case) func() (bool, error) {
		var review admissionv1.AdmissionReview
		var object, old appsv1.Deployment
		if err := json.Unmarshal(c.Body, &review); err != nil {
			tb.Fatal(err)
		}
		request := review.Request
		for _, err := range []error{json.Unmarshal(request.Object.Raw, &object), json.Unmarshal(request.OldObject.Raw, &old)} {
			if err != nil {
				tb.Fatal(err)
			}
		}
		who := &user.DefaultInfo{Name: request.UserInfo.Username, Groups: slices.Clone(request.UserInfo.Groups)}
		return func() (bool, error) {
			attributes := admission.NewAttributesRecord(&object, &old, schema.GroupVersionKind(request.Kind), request.Namespace, request.Name,
				schema.GroupVersionResource(request.Resource), "", admission.Update, &metav1.UpdateOptions{}, false, who)
			err := admits.Validate(tb.Context(), attributes, interfaces)
			switch {
			case err == nil:
				return true, nil
			// An expression that fails denies too, with another message.
			case apierrors.IsInvalid(err) && bytes.Contains([]byte(err.Error()), []byte("may not change")):
				return false, nil
			}
			return false, fmt.Errorf("no decision: %w", err)
		}
	}}
}

func TestPeer(t *testing.T) { reviews.Test(t, peer(t)) }

// managedFields change with every write, so they cannot be compared as a whole. A kube-apiserver has no field that its types do not have.
func TestLimits(t *testing.T) {
	cases := slices.DeleteFunc(reviews.Limits(t), func(c reviews.Case) bool { return c.Name == reviews.NewField })
	reviews.TestLimits(t, peer(t), cases, reviews.Ownership)
}

func BenchmarkPeer(b *testing.B) { reviews.Benchmark(b, peer(b)) }
