//go:build integration

package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/issuer"
)

const (
	audience = "fieldperm-tests"
	// teamKey is the extra key of a user whose token names a team.
	teamKey = "example.com/team"
	// apiServer is the user name with which kube-apiserver calls /authorize.
	apiServer = "jwt:kube-apiserver"
	// scalers is a claim. Its group jwt:scalers may scale Deployments everywhere.
	scalers = "scalers"
	// owners is a claim. Its group may change every field by granular verbs.
	owners = "owners"
)

// issuers is the AuthenticationConfiguration: a user name by an expression, groups by a claim, uid and extra.
func (s *scene) issuers() string {
	return fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [%s]
    certificateAuthority: |
      %s
  claimValidationRules:
  - expression: claims.exp - claims.iat <= 86400
    message: tokens live for a day at most
  claimMappings:
    username: {expression: "'jwt:' + claims.preferred_username"}
    groups: {claim: groups, prefix: "jwt:"}
    uid: {claim: sub}
    extra:
    - key: %s
      valueExpression: "has(claims.team) ? claims.team : ''"
  userValidationRules:
  - expression: "user.groups.all(group, !group.startsWith('system:'))"
    message: groups of Kubernetes' own are not for the issuer to give
`, s.issuer.URL(), audience, strings.ReplaceAll(strings.TrimSpace(string(s.issuer.CA())), "\n", "\n      "), teamKey)
}

// person is a user with a token. The name is the one in the claim.
type person struct {
	name   string
	groups []string
	team   string
}

func (s *scene) token(p person) (string, error) {
	return s.issuer.Sign(p.claims(), issuer.Token{})
}

func (p person) claims() map[string]any {
	claims := map[string]any{"aud": audience, "sub": "uid-of-" + p.name, "preferred_username": p.name}
	if len(p.groups) > 0 {
		claims["groups"] = p.groups
	}
	if p.team != "" {
		claims["team"] = p.team
	}
	return claims
}

// config is a person's client configuration for kube-apiserver: a token and nothing else.
func (s *scene) config(t *testing.T, p person) *rest.Config {
	t.Helper()
	token, err := s.token(p)
	must(t, err)
	config := rest.AnonymousClientConfig(s.Admin())
	config.BearerToken = token
	return config
}

func (s *scene) wire(t *testing.T, p person) *corpus.Wire {
	t.Helper()
	w, err := corpus.NewWire(s.config(t, p))
	must(t, err)
	return w
}

// kubectl is the real kubectl with a person's token.
func (s *scene) kubectl(t *testing.T, p person) *cluster.Kubectl {
	t.Helper()
	config := s.config(t, p)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	file := t.TempDir() + "/kubeconfig"
	must(t, clientcmd.WriteToFile(*kubeconfig, file))
	return s.Kubectl(&cluster.User{Kubeconfig: file})
}

func (s *scene) clients() (kubernetes.Interface, error) { return kubernetes.NewForConfig(s.Admin()) }

// The namespaces, each with a Deployment "web". fieldperm's chain depends on the namespace.
const (
	plain     = "plain"
	protected = "protected"
	granted   = "granted"
)

// down are the ways in which a webhook can be down, and policies are the failure policies. There is a namespace for each pair.
var (
	down     = []string{"closed", "failing", "hanging"}
	policies = []string{"NoOpinion", "Deny"}
)

// atTheDoor is the namespace in which a webhook that is down is asked about the marker, so that /authorize fails. In stuck a webhook hangs
// for longer than a request may take.
const (
	atTheDoor = "at-the-door"
	stuck     = "stuck"
)

func downIn(mode, policy string) string { return mode + "-" + strings.ToLower(policy) }

func namespaces() []string {
	out := []string{plain, protected, granted, atTheDoor, stuck, erring}
	for _, mode := range down {
		for _, policy := range policies {
			out = append(out, downIn(mode, policy))
		}
	}
	return out
}

// furnish creates the objects that the tests write, and the grants of the users.
func (s *scene) furnish(ctx context.Context) error {
	admin, err := s.clients()
	if err != nil {
		return err
	}
	create := metav1.CreateOptions{}
	for _, name := range namespaces() {
		_, err1 := admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, create)
		_, err2 := admin.AppsV1().Deployments(name).Create(ctx, deployment(), create)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
	}
	team := func(name string, verbs ...string) error {
		return s.grant(ctx, name, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "jwt:" + name},
			rule("apps", "deployments", append(verbs, "get", "granular")...))
	}
	return errors.Join(
		team(scalers, "granular:scale"), team(owners, "granular:*"), team("markers"),
		s.AwaitGrants(ctx))
}

func deployment() *appsv1.Deployment {
	replicas, labels := int32(1), map[string]string{"app": "web"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		},
	}}
}

// rule returns a rule of RBAC. With the marker it has get too, without which nobody is let in to update or patch (A7).
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	if slices.Contains(verbs, "granular") {
		verbs = append(slices.Clone(verbs), "get")
	}
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// grant creates a ClusterRole and its binding with the same name.
func (s *scene) grant(ctx context.Context, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) error {
	admin, err := s.clients()
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: name}
	_, err1 := admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	_, err2 := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	return errors.Join(err1, err2)
}

// revoke removes a grant.
func (s *scene) revoke(ctx context.Context, name string) error {
	admin, err := s.clients()
	if err != nil {
		return err
	}
	return errors.Join(
		admin.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}),
		admin.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
}

// patch changes the Deployment of a namespace. Each call makes a change, because it counts the replicas up.
func (s *scene) patch(t *testing.T, w *corpus.Wire, namespace, patch string) *corpus.Answer {
	t.Helper()
	answer, err := w.Do(t.Context(), "PATCH", "/apis/apps/v1/namespaces/"+namespace+"/deployments/web", nil,
		"application/merge-patch+json", []byte(patch))
	must(t, err)
	return answer
}

func replicas(n int) string { return fmt.Sprintf(`{"spec":{"replicas":%d}}`, n) }

func expect(t *testing.T, answer *corpus.Answer, code int, parts ...string) {
	t.Helper()
	if answer.Code != code {
		t.Fatalf("got %d, want %d: %s", answer.Code, code, answer.Body)
	}
	for _, part := range parts {
		if !strings.Contains(answer.Status.Message, part) {
			t.Errorf("message %q lacks %q", answer.Status.Message, part)
		}
	}
}

// annotations are the audit annotations of fieldperm's webhook for a request, without the name of the webhook.
func (s *scene) annotations(t *testing.T, answer *corpus.Answer) map[string]string {
	t.Helper()
	var found map[string]string
	eventually(t, func() error {
		raw, err := os.ReadFile(s.AuditLog())
		must(t, err)
		for line := range strings.Lines(string(raw)) {
			if !strings.Contains(line, answer.AuditID) {
				continue
			}
			var event struct {
				Annotations map[string]string `json:"annotations"`
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				return err // The last line may be incomplete.
			}
			found = event.Annotations
			return nil
		}
		return errors.New("the audit log has no event of the request")
	})
	out := map[string]string{}
	for key, value := range found {
		if name, ours := strings.CutPrefix(key, "granular.fieldperm.dev/"); ours {
			out[name] = value
		}
	}
	return out
}

// of returns the questions about a user.
func of(questions []spec, user string) []spec {
	return slices.DeleteFunc(questions, func(q spec) bool { return q.User != user })
}
