//go:build integration

package aggregated

import (
	"fmt"
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
	good := p.config
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
	// kube-apiserver answers 503 until it reaches the server again, and the server knows no user until it has read the CA of kube-apiserver.
	denied(t, 3*time.Minute, func() *corpus.Answer {
		answer := barred(`"recalled":true`)()
		if answer.Code == http.StatusOK {
			t.Fatalf("a barrier does not hold after an outage: %s", answer.Body)
		}
		return answer
	}, "may not change .spec.recalled")
	p.holds(t, one, "", "spec", "recalled")
	tries := 0
	denied(t, 3*time.Minute, func() *corpus.Answer {
		tries++
		return barred(fmt.Sprintf(`"beer":"bock %d"`, tries))()
	}, "may not change .spec.beer")
	p.reset(t)
	expect(t, barred(`"beer":"pils"`)(), http.StatusForbidden, "granular:brewery.example.com/beer")
	eventually(t, wait, func() *corpus.Answer { return patch(t, brewer, kegs+"/one", `{"spec":{"beer":"stout"}}`) }, http.StatusOK)
	p.reset(t)
	p.holds(t, one, `"ale"`, "spec", "beer")
	p.end(t)
	p.config = good
	p.launch(t)
}

// denied repeats a request until it is refused with a message.
func denied(t *testing.T, timeout time.Duration, request func() *corpus.Answer, message string) {
	t.Helper()
	eventually(t, timeout, func() *corpus.Answer {
		answer := request()
		if !strings.Contains(answer.Status.Message, message) {
			answer.Code = 0
		}
		return answer
	}, http.StatusForbidden)
}
