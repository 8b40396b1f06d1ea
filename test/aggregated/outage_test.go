//go:build integration

package aggregated

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/kube-openapi/pkg/common"

	"github.com/fieldperm/fieldperm/test/aggregated/brewery/openapi"
	"github.com/fieldperm/fieldperm/test/corpus"
)

// beerBarred are the definitions of a later release of the server: the beer is behind a barrier as well.
func beerBarred(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	out := openapi.Definitions(ref)
	for name, definition := range out {
		if strings.HasPrefix(name, "com.example.brewery.") && strings.HasSuffix(name, ".KegSpec") {
			beer := definition.Schema.Properties["beer"]
			beer.AddExtension("x-kubernetes-permission-excluded", "true")
			definition.Schema.Properties["beer"] = beer
			out[name] = definition
		}
	}
	return out
}

// outage: the server ends and fieldperm restarts meanwhile. The barriers of the server hold as soon as it is back, for users with update too.
// What its next release bars holds when fieldperm has read its document.
func outage(t *testing.T, p *plane) {
	brewer := p.grant(t, "waiter", []string{"kegs"}, "granular", "granular:brewery.example.com/beer")
	updater := p.grant(t, "impatient", []string{"kegs"}, "update", "patch")
	p.end(t)
	if answer := patch(t, brewer, kegs+"/one", `{"spec":{"beer":"stout"}}`); answer.Code == http.StatusOK {
		t.Fatalf("a server that does not run answers: %s", answer.Body)
	}
	must(t, p.StopWebhook())
	must(t, p.StartWebhook(t.Context()))
	p.config.Definitions = beerBarred
	p.launch(t)
	barred := func(field string) func() *corpus.Answer {
		return func() *corpus.Answer { return patch(t, updater, kegs+"/one", `{"spec":{`+field+`}}`) }
	}
	// Until kube-apiserver reaches the server again it answers 503.
	eventually(t, wait, func() *corpus.Answer {
		answer := barred(`"recalled":true`)()
		if answer.Code == http.StatusOK {
			t.Fatalf("a barrier does not hold after an outage: %s", answer.Body)
		}
		return answer
	}, http.StatusForbidden)
	p.holds(t, one, "", "spec", "recalled")
	eventually(t, 3*time.Minute, barred(`"beer":"bock"`), http.StatusForbidden)
	p.reset(t)
	expect(t, patch(t, brewer, kegs+"/one", `{"spec":{"beer":"stout"}}`), http.StatusOK)
	expect(t, barred(`"beer":"bock"`)(), http.StatusForbidden)
	p.holds(t, one, `"stout"`, "spec", "beer")
}
