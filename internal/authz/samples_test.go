package authz

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const samples = "../../testdata/configuration/authorization/mended"

// asked is one question to a sample, with the result that the sample's text promises.
type asked struct {
	user, group, namespace, resource, verb string
	// by is the authorizer that decides, "" for none. Its decision is Allow, except for webhooks before RBAC.
	by string
	// protector and opa say whether these webhooks are asked; by default they are not.
	protector, opa bool
}

func (a asked) request() *admissionv1.AdmissionRequest {
	req := by(a.user, "system:authenticated", a.group)
	req.Namespace = a.namespace
	if a.resource != "" {
		resource, group, _ := strings.Cut(a.resource, ".")
		req.Resource = metav1.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	return req
}

// TestKEP3221_PublishedSamplesDecideAsDocumented runs each sample of the KEP and of the blog, corrected as testdata/configuration
// describes. RBAC grants everything to alice, to trusted and to the groups of service accounts. The protecting webhook denies all
// users except trusted. It has no opinion on trusted. OPA and the kube-apiserver allow carol.
func TestKEP3221_PublishedSamplesDecideAsDocumented(t *testing.T) {
	const (
		kubeSystem = "system:serviceaccounts:kube-system"
		defaults   = "system:serviceaccounts:default"
		crds       = "customresourcedefinitions.apiextensions.k8s.io"
	)
	// In the sample's text, requests to kube-system go to the webhook, except those of its service accounts; then to Node, RBAC, and
	// the kube-apiserver.
	intercepting := func(protector, cluster string) []asked {
		return []asked{
			{user: "alice", namespace: "kube-system", verb: "update", by: protector, protector: true},
			{user: "alice", namespace: "kube-system", verb: "granular:scale", by: protector, protector: true},
			{user: "alice", namespace: "shop", verb: "update", by: "rbac"},
			{user: "trusted", namespace: "kube-system", verb: "update", by: "rbac", protector: true},
			{user: "robot", group: kubeSystem, namespace: "kube-system", verb: "update", by: "rbac"},
			{user: "carol", namespace: "shop", verb: "update", by: cluster},
			{user: "nobody", namespace: "shop", verb: "update"},
			{user: "root", group: "system:masters", namespace: "kube-system", verb: "update", by: privileged},
		}
	}
	// The text: only users that the webhook allows can modify them by "update, patch, delete, or deletecollection".
	protecting := []asked{
		{user: "alice", resource: crds, verb: "update", by: "system-crd-protector", protector: true},
		{user: "alice", resource: crds, verb: "patch", by: "system-crd-protector", protector: true},
		{user: "alice", resource: crds, verb: "deletecollection", by: "system-crd-protector", protector: true},
		{user: "alice", resource: crds, verb: "create", by: "rbac"},
		{user: "alice", resource: "customresourcedefinitions.example.com", verb: "update", by: "rbac"},
		{user: "alice", namespace: "shop", verb: "update", by: "rbac"},
		{user: "trusted", resource: crds, verb: "update", by: "rbac", protector: true},
	}
	for sample, questions := range map[string][]asked{
		"kep-3221-proposal":    intercepting("system-webhook", "internal"),
		"kep-3221-all-fields":  intercepting("webhook", "in-cluster-authorizer"),
		"blog-1.30-all-fields": intercepting("webhook", "in-cluster-authorizer"),
		"kep-3221-story-1": {
			{user: "alice", namespace: "kube-system", verb: "update", by: "system-crd-protector", protector: true},
			{user: "alice", namespace: "kube-system", verb: "delete", by: "system-crd-protector", protector: true},
			{user: "alice", namespace: "kube-system", verb: "create", by: "rbac"},
			{user: "alice", namespace: "shop", verb: "update", by: "rbac"},
			{user: "robot", group: kubeSystem, namespace: "kube-system", verb: "update", by: "rbac"},
			{user: "carol", namespace: "shop", verb: "update"},
		},
		"kep-3221-story-2": {
			{user: "alice", namespace: "kube-system", verb: "create", by: "system-crd-protector", protector: true},
			{user: "trusted", namespace: "kube-system", verb: "update", by: "rbac", protector: true},
			{user: "carol", namespace: "kube-system", verb: "update", by: "system-crd-protector", protector: true},
			{user: "carol", namespace: "shop", verb: "update"},
			{user: "trusted-carol", namespace: "kube-system", verb: "update", by: "opa", protector: true, opa: true},
		},
		"blog-1.30-protecting-crds": protecting,
		"blog-1.30-nested-webhooks": append([]asked{
			{user: "carol", namespace: "default", verb: "update", by: "opa", opa: true},
			{user: "nobody", namespace: "default", verb: "update", opa: true},
			{user: "carol", namespace: "shop", verb: "update"},
			{user: "carol", group: defaults, namespace: "default", verb: "update"},
			{user: "alice", namespace: "default", verb: "update", by: "rbac"},
		}, protecting...),
	} {
		t.Run(sample, func(t *testing.T) {
			p := newPlace(t)
			protector := newRemote(t, func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
				if strings.HasPrefix(review.Spec.User, "trusted") {
					pass()(w, r, review)
					return
				}
				deny("is protected")(w, r, review)
			})
			ofCarol := func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
				if strings.HasSuffix(review.Spec.User, "carol") {
					allow("is carol")(w, r, review)
					return
				}
				pass()(w, r, review)
			}
			opa, api := newRemote(t, ofCarol), newRemote(t, ofCarol)
			for name, r := range map[string]*remote{
				"kube-system-authz-webhook.yaml": protector, "files/kube-system-authz-webhook.yaml": protector,
				"opa-kube-system-authz-webhook.yaml": opa, "files/opa-default-authz-webhook.yaml": opa,
			} {
				p.kubeconfig(name, r)
			}
			data, err := os.ReadFile(filepath.Join(samples, sample+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			p.write("authorization.yaml", strings.ReplaceAll(string(data), "kubeConfigFile: /", "kubeConfigFile: "+p.dir+"/"))
			chain := p.chain(Settings{Cluster: api.Config(), newRoles: mayAll(t, "alice", "trusted", kubeSystem, defaults+":none")})
			for _, q := range questions {
				atProtector, atOPA := protector.questions(), opa.questions()
				answer, err := chain.For(q.request()).Authorize(t.Context(), q.verb, false)
				protects := q.by != "" && strings.HasPrefix(answer.Reason, "is protected")
				if err != nil || answer.By != q.by || answer.Allowed() != (q.by != "" && !protects) {
					t.Errorf("%+v: got %+v, %v", q, answer, err)
				}
				if (protector.questions() > atProtector) != q.protector || (opa.questions() > atOPA) != q.opa {
					t.Errorf("%+v: the protector was asked %d times, OPA %d times", q, protector.questions()-atProtector, opa.questions()-atOPA)
				}
			}
			// All have failurePolicy Deny for the requests that they protect, and do not affect others.
			protector.Close()
			q := questions[0]
			q.user = "another"
			if answer, err := chain.For(q.request()).Authorize(t.Context(), q.verb, false); err == nil == q.protector || answer.Allowed() {
				t.Errorf("the protector is down: %+v, %v", answer, err)
			}
		})
	}
	files, err := os.ReadDir(samples)
	if err != nil || len(files) != 7 {
		t.Errorf("%d samples are there, and 7 are played: %v", len(files), err)
	}
}
