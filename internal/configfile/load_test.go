package configfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
)

// allOfAWebhook has every field of the chain's configuration.
const allOfAWebhook = `apiVersion: apiserver.config.k8s.io/%s
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: all.of-it
  webhook:
    authorizedTTL: 1s
    cacheAuthorizedRequests: false
    unauthorizedTTL: 2s
    cacheUnauthorizedRequests: false
    timeout: 30s
    subjectAccessReviewVersion: v1beta1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo:
      type: KubeConfigFile
      kubeConfigFile: %s
    matchConditions:
    - expression: has(request.resourceAttributes)
`

var versions = []string{"v1", "v1beta1", "v1alpha1"}

func TestKEP3221_EveryFieldOfEveryVersion(t *testing.T) {
	file := filepath.Join(folder(t), "hook.yaml")
	duration := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	want := []apiserver.AuthorizerConfiguration{{Type: "Webhook", Name: "all.of-it", Webhook: &apiserver.WebhookConfiguration{
		AuthorizedTTL: duration(time.Second), UnauthorizedTTL: duration(2 * time.Second), Timeout: duration(30 * time.Second),
		SubjectAccessReviewVersion: "v1beta1", MatchConditionSubjectAccessReviewVersion: "v1", FailurePolicy: "NoOpinion",
		ConnectionInfo:  apiserver.WebhookConnectionInfo{Type: "KubeConfigFile", KubeConfigFile: &file},
		MatchConditions: []apiserver.WebhookMatchCondition{{Expression: "has(request.resourceAttributes)"}},
	}}}
	for _, version := range versions {
		data := fmt.Appendf(nil, allOfAWebhook, version, file)
		got, err := LoadAuthorization("f", data)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		theirs, err := load.LoadFromData(data)
		if err != nil || !reflect.DeepEqual(got.Configuration, theirs) || !reflect.DeepEqual(got.Configuration.Authorizers, want) || !slices.Equal(got.Files, []string{file}) {
			t.Errorf("%s: %+v of %q, k8s.io/apiserver loads %+v, %v", version, got.Configuration.Authorizers, got.Files, theirs, err)
		}
	}
}

func TestKEP3221_Defaults(t *testing.T) {
	for _, version := range versions {
		got, err := LoadAuthorization("f", []byte("apiVersion: apiserver.config.k8s.io/"+version+`
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: one
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}
`))
		if err != nil {
			t.Fatal(err)
		}
		w := got.Configuration.Authorizers[0].Webhook
		if w.AuthorizedTTL.Duration != 5*time.Minute || w.UnauthorizedTTL.Duration != 30*time.Second || !w.CacheAuthorizedRequests || !w.CacheUnauthorizedRequests {
			t.Errorf("%s: defaults are %+v", version, w)
		}
	}
}

func TestKEP3331_EveryFieldOfEveryVersion(t *testing.T) {
	ca, err := os.ReadFile(filepath.Join(folder(t), "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	prefix := "p:"
	want := apiserver.AuthenticationConfiguration{
		JWT: []apiserver.JWTAuthenticator{{
			Issuer: apiserver.Issuer{URL: "https://a.example/x", DiscoveryURL: "https://b.example/y", CertificateAuthority: string(ca), Audiences: []string{"a", "b"},
				AudienceMatchPolicy: "MatchAny", EgressSelectorType: "cluster"},
			ClaimValidationRules: []apiserver.ClaimValidationRule{{Claim: "c", RequiredValue: "v"}, {Expression: "claims.x == 'y'", Message: "m"}},
			ClaimMappings: apiserver.ClaimMappings{
				Username: apiserver.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix},
				Groups:   apiserver.PrefixedClaimOrExpression{Expression: "claims.groups"},
				UID:      apiserver.ClaimOrExpression{Claim: "uid"},
				Extra:    []apiserver.ExtraMapping{{Key: "example.com/k", ValueExpression: "claims.k"}},
			},
			UserValidationRules: []apiserver.UserValidationRule{{Expression: "user.uid != ''", Message: "m"}},
		}},
		Anonymous: &apiserver.AnonymousAuthConfig{Enabled: true, Conditions: []apiserver.AnonymousAuthCondition{{Path: "/livez"}}},
	}
	for _, version := range versions {
		got, _, err := LoadAuthentication("f", []byte("apiVersion: apiserver.config.k8s.io/"+version+`
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://a.example/x
    discoveryURL: https://b.example/y
    certificateAuthority: "`+strings.ReplaceAll(string(ca), "\n", `\n`)+`"
    audiences: [a, b]
    audienceMatchPolicy: MatchAny
    egressSelectorType: cluster
  claimValidationRules:
  - {claim: c, requiredValue: v}
  - {expression: claims.x == 'y', message: m}
  claimMappings:
    username: {claim: sub, prefix: "p:"}
    groups: {expression: claims.groups}
    uid: {claim: uid}
    extra: [{key: example.com/k, valueExpression: claims.k}]
  userValidationRules:
  - {expression: user.uid != '', message: m}
anonymous: {enabled: true, conditions: [{path: /livez}]}
`))
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if got.TypeMeta = (metav1.TypeMeta{}); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v", version, got)
		}
	}
}

// Limits: a file at a limit is valid. One item more is a fault, and other faults are still reported.
func TestKEP3221_Bounds(t *testing.T) {
	chain := func(n int, timeout string) string {
		text := strings.NewReplacer("type: KubeConfigFile\n      kubeConfigFile: x", "type: InClusterConfig", "Version: v1beta1", "Version: v1", "30s", timeout).Replace(fmt.Sprintf(allOfAWebhook, "v1", "x"))
		for i := 1; i < n; i++ {
			text += fmt.Sprintf("    - expression: request.user != 'u%d'\n", i)
		}
		return text
	}
	if got := authorizationSaid("f", chain(64, "3s")); got != "" {
		t.Errorf("64 conditions: %s", got)
	}
	got := authorizationSaid("f", chain(65, "31s"))
	if want := "f:11: authorizers[0].webhook.timeout: Invalid value: \"31s\": must be > 0s and <= 30s: write a duration above 0s and of at most 30s, for example timeout: 3s\n" +
		"f:17: authorizers[0].webhook.matchConditions: Too many: 65: must have at most 64 items: join some with &&\n"; got != want {
		t.Errorf("65 conditions:\n%swant\n%s", got, want)
	}
}

func TestKEP3331_Bounds(t *testing.T) {
	issuers := func(n int) string {
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
		for i := range n {
			text += fmt.Sprintf("- {issuer: {url: 'https://i%d', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: 'a:'}}}\n", i)
		}
		return text
	}
	if got := authenticationSaid("f", issuers(64)); got != "" {
		t.Errorf("64 issuers: %s", got)
	}
	if got := authenticationSaid("f", issuers(65)); got != "f:3: jwt: Too many: 65: must have at most 64 items: drop some, or let one issuer vouch for the others\n" {
		t.Errorf("65 issuers:\n%s", got)
	}
}

// However many faults there are, the message fits on a screen.
func TestErrorsFitAScreen(t *testing.T) {
	head := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
	for name, text := range map[string]string{
		"authorizers":    head + "authorizers:\n" + strings.Repeat("- {type: X, name: y}\n", 20_000),
		"no kubeconfig":  head + "authorizers:\n" + strings.Repeat("- {type: Webhook, webhook: {connectionInfo: {type: KubeConfigFile}}}\n", 100),
		"no fields":      head + "authorizers:\n- {" + strings.Repeat("a", 100_000) + ": 1}\n",
		"unknown fields": head + "authorizers:\n" + strings.Repeat("- {type: RBAC, title: rbac}\n", 100),
		"long values":    head + "authorizers:\n- {type: " + strings.Repeat("a", 100_000) + ", name: x}\n",
		"syntax":         head + strings.Repeat("a: b: c\n", 100),
		"twice":          head + strings.Repeat("a: b\n", 100),
		"tags":           head + "authorizers:\n" + strings.Repeat("- !x y\n", 100),
		"nesting":        head + "authorizers: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "\n",
		"lines":          strings.Repeat("x\n\n", 100_000),
		"size":           strings.Repeat("x", largestFile+1),
		"one line":       "{" + strings.Repeat("\"a\":\"!\",", 200_000) + "\"b\":1}",
		"no text":        "\x00\x01\x02",
		"aliases": head + "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nauthorizers: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
	} {
		_, err := LoadAuthorization("f", []byte(text))
		var problems Problems
		if !errors.As(err, &problems) || len(problems) > most || len(err.Error()) > most*3*longestText {
			t.Errorf("%s: %d problems in %d bytes", name, len(problems), len(fmt.Sprint(err)))
		}
		for _, p := range problems {
			if p.Line < 1 || strings.Contains(p.Error(), "\n") {
				t.Errorf("%s: %q", name, p.Error())
			}
		}
	}
}

// Each fault can be found by its type, and the text is that of errors.Join.
func TestProblemsAreErrors(t *testing.T) {
	_, err := LoadAuthorization("f", []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC}, {type: X}]\n"))
	var all Problems
	var one Problem
	if !errors.As(err, &all) || len(all) != 2 || !errors.As(err, &one) || one.Key != "authorizers[0].name" || one.Line != 3 || !strings.HasPrefix(one.Cure, "write rbac for type RBAC") || err.Error() != errors.Join(all[0], all[1]).Error() {
		t.Errorf("%#v", err)
	}
}

func TestLineOfAKey(t *testing.T) {
	const text = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: &first
    audiences: [a]
    url: https://one
- issuer: *first
- issuer:
    <<: *first
    <<: [{discoveryURL: x}]
anonymous:
  enabled: false
`
	for key, want := range map[string]int{
		"jwt[0].issuer.url": 6, "jwt[0].issuer.discoveryURL": 4, "jwt[1].issuer.url": 6, "jwt[2].issuer.url": 6, "jwt[2].issuer.discoveryURL": 10, "jwt[9].issuer.url": 3,
		"jwt[1].issuer[0]": 7, "anonymous": 11, "": 1, "nothing": 1, "jwt[0].issuer.audiences[0].": 5, "jwt[0].issuer.urls": 4,
	} {
		if got := NewProblem("f", []byte(text), key, "", "").Line; got != want {
			t.Errorf("line of %q is %d, want %d", key, got, want)
		}
	}
	if got := NewProblem("f", []byte("\t:"), "jwt", "", "").Line; got != 1 {
		t.Errorf("line in a text that is no YAML is %d, want 1", got)
	}
	if got := NewProblem("f", []byte("{\"kind\": \"x\",\n\"jwt\": [{\"issuer\":\n{\"url\": \"y\"}}]}"), "jwt[0].issuer.url", "", "").Line; got != 3 {
		t.Errorf("line in JSON is %d, want 3", got)
	}
}

// A change of any of the files is a change of the chain, so every file must be listed, once. So is a warning about a file.
func TestFilesThatCount(t *testing.T) {
	dir := folder(t)
	kubeconfig := write(t, dir, "k", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://127.0.0.1:1, certificate-authority: ca.crt}}]
users: [{name: u, user: {client-certificate: client.crt, client-key: client.key, tokenFile: token}}, {name: other, user: {tokenFile: none}}]
contexts: [{name: x, context: {cluster: c, user: u}}, {name: more, context: {cluster: c}}]
current-context: x
flavour: none
`)
	text := strings.Replace(fmt.Sprintf(allOfAWebhook, "v1", kubeconfig), "v1beta1", "v1", 1)
	_, entry, _ := strings.Cut(text, "authorizers:\n")
	text = strings.Replace(text, "webhook:\n", "webhook:\n    conditionsEndpointKubeConfigContext: more\n    authorizationConditionsReviewVersion: v1alpha1\n    conditionsDialect: conditionsChain\n", 1)
	got, err := LoadAuthorization("f", []byte(text+strings.Replace(entry, "all.of-it", "again", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"ca.crt", "client.crt", "client.key", "k", "token"} {
		want = append(want, filepath.Join(dir, name))
	}
	if !slices.Equal(got.Files, want) || len(got.Conditions) != 1 || got.Conditions[0].Context != "more" || got.ConditionsOf(1) != nil {
		t.Errorf("files are %q, want %q, conditions %v", got.Files, want, got.Conditions)
	}
	if text := strings.Join(got.Warnings, "\n"); strings.Count(text, kubeconfig+":7: flavour: is not a field of a kubeconfig, and is ignored: ") != 1 {
		t.Errorf("warnings are %s", text)
	}
}

func TestSummaries(t *testing.T) {
	file := filepath.Join(folder(t), "hook.yaml")
	got, err := LoadAuthorization("f", []byte(fmt.Sprintf(allOfAWebhook, "v1", file)+"- {type: RBAC, name: rbac}\n- {type: Node, name: node}\n"+`- type: Webhook
  name: cluster
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"all.of-it (Webhook), asks by " + file + " in v1beta1, failurePolicy NoOpinion, timeout 30s, allowed not kept, not allowed not kept, 1 condition",
		"rbac (RBAC), decides in process, from the cluster's roles and bindings",
		"node (Node), has no opinion here",
		"cluster (Webhook), asks the SubjectAccessReview API of kube-apiserver in v1, failurePolicy Deny, timeout 3s, allowed kept 5m0s, not allowed kept 30s, no conditions",
	}
	if lines := SummaryOfChain(got); !slices.Equal(lines, want) {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
