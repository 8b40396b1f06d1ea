//go:build integration

package aggregated

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/test/aggregated/server"
	"github.com/fieldperm/fieldperm/test/corpus"
)

// careless are servers that do not ask webhooks about a write of a granular user.
var careless = map[string]func(*server.Config){
	"the plugin for webhooks is off": func(c *server.Config) { c.WithoutWebhooks = true },
	"the storage forgets validation": func(c *server.Config) { c.WithoutValidation = true },
	"every user is authorized": func(c *server.Config) {
		c.Authorizer = func(authorizer.Authorizer) authorizer.Authorizer {
			return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionAllow, "", nil
			})
		}
	},
}

// withoutReasons is a server whose authorizer drops the reasons of decisions, by which the match condition of the webhook tells granular
// users from others. The webhook is asked all the same: kube-apiserver does not ask fieldperm about the checks of match conditions.
func withoutReasons(c *server.Config) {
	c.Authorizer = func(next authorizer.Authorizer) authorizer.Authorizer {
		return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			decision, _, err := next.Authorize(ctx, a)
			return decision, "", err
		})
	}
}

// carelessServers: enforcement is not proven on a server that does not ask webhooks, so a granular user is not let through. Each namespace and
// object is a new one: the proof of another one counts for some seconds after the server has changed.
func carelessServers(t *testing.T, p *plane) {
	brewer := p.grant(t, "careful", []string{"kegs"}, "granular", "granular:brewery.example.com/beer")
	updater := p.grant(t, "careless", []string{"kegs"}, "create", "update", "patch")
	good, n := p.config, 0
	try := func(t *testing.T, change func(*server.Config), code int, beer string) {
		t.Helper()
		p.end(t)
		p.config = good
		change(&p.config)
		p.launch(t)
		p.available(t)
		n++
		namespace := fmt.Sprintf("careless-%d", n)
		p.kubectl(t, "", "create", "namespace", namespace)
		at := "/apis/brewery.example.com/v1/namespaces/" + namespace + "/kegs"
		eventually(t, wait, func() *corpus.Answer {
			return send(t, updater, http.MethodPost, at, "application/json", keg("v1", "one", `{"beer":"ale"}`))
		}, http.StatusCreated)
		expect(t, patch(t, brewer, at+"/one", `{"spec":{"beer":"stout"}}`), code)
		p.holds(t, "kegs/"+namespace+"/one", fmt.Sprintf("%q", beer), "spec", "beer")
		expect(t, patch(t, brewer, at+"/one", `{"spec":{"note":"mine"}}`), http.StatusForbidden)
		for _, body := range []string{`{"note":"mine"}`, `{"beer":"ale","recalled":true}`} {
			expect(t, send(t, brewer, http.MethodPost, at, "application/json", keg("v1", "two", body)), http.StatusForbidden)
			expect(t, send(t, brewer, http.MethodPut, at+"/two", "application/json", keg("v1", "two", body)), http.StatusForbidden)
		}
		keys, _, err := p.store.Keys(t.Context(), server.Prefix+"/brewery.example.com/kegs/"+namespace)
		must(t, err)
		if len(keys) != 1 {
			t.Errorf("etcd holds %v", keys)
		}
	}
	for _, how := range slices.Sorted(maps.Keys(careless)) {
		t.Run(how, func(t *testing.T) { try(t, careless[how], http.StatusForbidden, "ale") })
	}
	t.Run("the authorizer drops reasons", func(t *testing.T) { try(t, withoutReasons, http.StatusOK, "stout") })
	t.Run("the server asks webhooks again", func(t *testing.T) { try(t, func(*server.Config) {}, http.StatusOK, "stout") })
}

// TestA2_AGroupThatIsNotNamed: without the flag no granular user is let through, and barriers hold for users with update.
func TestA2_AGroupThatIsNotNamed(t *testing.T) {
	p := start(t, false)
	brewer := p.grant(t, "brewer", []string{"kegs"}, "granular", "granular:*", "granular:brewery.example.com/beer")
	updater := p.grant(t, "updater", []string{"kegs"}, "create", "update", "patch")
	p.reset(t)
	// The barrier is in force when fieldperm has read the document of the server.
	eventually(t, 2*time.Minute, func() *corpus.Answer {
		return send(t, updater, http.MethodPatch, kegs+"/one", merge, `{"spec":{"recalled":true}}`, "dryRun=All")
	}, http.StatusForbidden)
	expect(t, patch(t, updater, kegs+"/one", `{"spec":{"beer":"porter"}}`), http.StatusOK)
	for _, at := range []string{kegs, beta} {
		expect(t, patch(t, brewer, at+"/one", `{"spec":{"beer":"stout"}}`), http.StatusForbidden, `User \"brewer\" cannot patch resource`)
	}
	p.holds(t, one, `"porter"`, "spec", "beer")
}
