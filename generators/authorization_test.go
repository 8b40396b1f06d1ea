package generators

import (
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/fieldperm/fieldperm/admission"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// checkAuthorization loads and validates the file as kube-apiserver does.
func checkAuthorization(t *testing.T, path string) {
	t.Helper()
	config, err := load.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := sets.New("Node", "RBAC", "ABAC", "AlwaysAllow", "AlwaysDeny", string(apiserver.TypeWebhook))
	if errs := validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, config, known, sets.New(string(apiserver.TypeWebhook))); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

func authorizers(t *testing.T, o Options) []apiserver.AuthorizerConfiguration {
	t.Helper()
	config, err := load.LoadFromData(file(t, manifests(t, o), fileAuthorization))
	if err != nil {
		t.Fatal(err)
	}
	return config.Authorizers
}

func TestAuthorizationConfigurationChain(t *testing.T) {
	chain := authorizers(t, options(t))
	var names []string
	for _, a := range chain {
		names = append(names, string(a.Type)+" "+a.Name)
	}
	if want := []string{"Node node", "RBAC rbac", "Webhook fieldperm"}; !slices.Equal(names, want) {
		t.Fatalf("chain is %v, want %v", names, want)
	}
	webhook := chain[2].Webhook
	if webhook.FailurePolicy != apiserver.FailurePolicyNoOpinion {
		t.Errorf("failure policy is %s: the loss of fieldperm must not deny others", webhook.FailurePolicy)
	}
	if webhook.AuthorizedTTL.Duration > 10*time.Second || webhook.UnauthorizedTTL.Duration > 10*time.Second {
		t.Errorf("answers are kept for %v and %v: too long", webhook.AuthorizedTTL, webhook.UnauthorizedTTL)
	}
}

func TestA4_AuthorizationMatchConditions(t *testing.T) {
	write := func(verb string) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{User: "alice", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: "apps", Version: "v1", Resource: "deployments", Name: "web"}}
	}
	own, generic, extra := write("update"), write("update"), write("update")
	own.User = webhooks.DefaultUser
	generic.Extra = map[string]authorizationv1.ExtraValue{admission.GenericOnlyKey: {"true"}}
	extra.Extra = map[string]authorizationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"X"}}
	empty := write("patch")
	empty.Extra = map[string]authorizationv1.ExtraValue{}
	generic.Extra["other"] = nil
	for name, c := range map[string]struct {
		spec authorizationv1.SubjectAccessReviewSpec
		want bool
	}{
		"create": {write("create"), true}, "update": {write("update"), true}, "patch": {write("patch"), true},
		"another extra key": {extra, true}, "no extra keys": {empty, true},
		"delete": {write("delete"), true}, "deletecollection": {write("deletecollection"), true},
		"get": {write("get"), false}, "connect": {write("proxy"), false}, "marker": {write("granular"), false}, "wildcard": {write("*"), false},
		"own user": {own, false}, "A4: generic only": {generic, false},
		"no resource": {authorizationv1.SubjectAccessReviewSpec{User: "alice", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/healthz", Verb: "create"}}, false},
		"nothing":     {authorizationv1.SubjectAccessReviewSpec{User: "alice"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			matcher, errs := validation.ValidateAndCompileMatchConditions(authorizationcel.NewDefaultCompiler(), authorizers(t, options(t))[2].Webhook.MatchConditions)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			got, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: c.spec})
			if err != nil || got != c.want {
				t.Errorf("fieldperm is asked: %t, %v; want %t", got, err, c.want)
			}
		})
	}
}

// A user name is data in an expression and cannot change its meaning.
func TestAuthorizationMatchConditionsQuoteUser(t *testing.T) {
	for _, user := range []string{`a"b`, `a\b`, `a' || true || '`, "ü\u202e"} {
		o := options(t)
		o.User = user
		matcher, errs := validation.ValidateAndCompileMatchConditions(authorizationcel.NewDefaultCompiler(), authorizers(t, o)[2].Webhook.MatchConditions)
		if len(errs) > 0 {
			t.Fatalf("user %q: %v", user, errs.ToAggregate())
		}
		for _, name := range []string{user, "alice"} {
			got, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "update"}}})
			if err != nil || got != (name != user) {
				t.Errorf("own user %q, request by %q: %t, %v", user, name, got, err)
			}
		}
	}
}
