package authz

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

// probed returns the faults of the place's configuration by Probe.
func probed(t *testing.T, p place, cluster *rest.Config) []string {
	t.Helper()
	data, err := os.ReadFile(p.file())
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := configfile.LoadAuthorization(p.file(), data)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, err := range Probe(t.Context(), loaded, cluster) {
		out = append(out, strings.TrimPrefix(err.Error(), p.file()))
	}
	return out
}

func TestProbeAsksEveryWebhookOfAFile(t *testing.T) {
	p := newPlace(t)
	good, sick, api := newRemote(t, pass()), newRemote(t, code(http.StatusNotFound)), newRemote(t, pass())
	p.configure(nodeEntry, rbacEntry,
		hook{name: "good", kubeconfig: p.kubeconfig("g", good)}, hook{name: "sick", kubeconfig: p.kubeconfig("s", sick), conditions: []string{"false"}}, hook{name: "api"})
	const isSick = `:16: authorizers[3].webhook: authorizer "sick" does not answer: `
	for _, c := range []struct {
		cluster *rest.Config
		want    []string
	}{
		{api.Config(), []string{isSick}},
		{nil, []string{`:26: authorizers[4].webhook: authorizer "api": InClusterConfig: needs a cluster`, isSick}},
	} {
		got := probed(t, p, c.cluster)
		if len(got) != len(c.want) {
			t.Fatalf("got %v", got)
		}
		for i, text := range got {
			if !strings.HasPrefix(text, c.want[i]) {
				t.Errorf("got %v, want %s…", text, c.want[i])
			}
		}
	}
}

// TestK3_ProbeAsksTheConditionsEndpoint: a fault names file, line, key and cure. An endpoint that speaks another dialect is one.
func TestK3_ProbeAsksTheConditionsEndpoint(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	entry := l.entry(p, "Deny", "false")
	p.configure(entry, rbacEntry)
	if got := probed(t, p, nil); len(got) != 0 || l.asked() != "" {
		t.Errorf("an endpoint that answers: %v", got)
	}
	const key, cure = `:12: authorizers[0].webhook.conditionsEndpointKubeConfigContext: authorizer "labels" does not evaluate conditions in the dialect %s: `, "see that it is up, or correct the server of this context, or conditionsDialect"
	l.set(func() { l.fails["/conditions"] = true })
	if got := probed(t, p, nil); len(got) != 1 || !strings.Contains(got[0], `"away"`) || !strings.HasPrefix(got[0], fmt.Sprintf(key, "conditionSetChain")) || !strings.HasSuffix(got[0], cure) {
		t.Errorf("an endpoint that is down: %q", got)
	}
	l.set(func() { l.fails["/conditions"] = false })
	entry.more = strings.Replace(entry.more, "conditionSetChain", "conditionalDecision", 1)
	p.configure(entry, rbacEntry)
	if got := probed(t, p, nil); len(got) != 1 || !strings.HasPrefix(got[0], fmt.Sprintf(key, "conditionalDecision")) || !strings.HasSuffix(got[0], cure) {
		t.Errorf("an endpoint of another dialect: %q", got)
	}
}

// TestKEP3221_AReloadTriesTheConditionsEndpoint: a new configuration whose conditions cannot be evaluated is not put in force.
func TestKEP3221_AReloadTriesTheConditionsEndpoint(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(rbacEntry)
	c := p.chain(Settings{newRoles: mayAll(t)})
	l.set(func() { l.fails["/conditions"] = true })
	p.configure(l.entry(p, "NoOpinion"), rbacEntry)
	data, err := os.ReadFile(p.file())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.apply(t.Context(), data); err == nil || !strings.Contains(err.Error(), "does not evaluate conditions") || len(c.Conditional()) != 0 {
		t.Errorf("%v, with %v in force", err, c.Conditional())
	}
	l.set(func() { l.fails["/conditions"] = false })
	if _, err := c.apply(t.Context(), data); err != nil || len(c.Conditional()) != 1 {
		t.Errorf("%v, with %v in force", err, c.Conditional())
	}
}

// TestKEP3221_AConditionsEndpointThatIsDownBlocksNoRotation: unless it is this rotation that makes it fail. The endpoint of reviews does not
// excuse it.
func TestKEP3221_AConditionsEndpointThatIsDownBlocksNoRotation(t *testing.T) {
	for name, c := range map[string]struct {
		down []string
		// to is the path that the rotated kubeconfig has in place of /conditions.
		to   string
		want bool
	}{
		"conditions are down before and after":           {[]string{"/conditions"}, "/conditions", true},
		"both are down before and after":                 {[]string{"/conditions", "/authorize"}, "/conditions", true},
		"the new address does not answer":                {[]string{"/elsewhere"}, "/elsewhere", false},
		"reviews are down, and the new address is wrong": {[]string{"/authorize", "/elsewhere"}, "/elsewhere", false},
	} {
		l, p := newLabels(t, "red"), newPlace(t)
		p.configure(l.entry(p, "Deny"), rbacEntry)
		chain := p.chain(Settings{newRoles: mayAll(t)})
		l.set(func() {
			for _, path := range c.down {
				l.fails[path] = true
			}
		})
		kubeconfig, err := os.ReadFile(p.path("labels"))
		if err != nil {
			t.Fatal(err)
		}
		p.write("labels", strings.Replace(string(kubeconfig), "/conditions", c.to, 1)+"\n")
		data, err := os.ReadFile(p.file())
		if err != nil {
			t.Fatal(err)
		}
		before := chain.current.Load()
		if _, err := chain.apply(t.Context(), data); (err == nil) != c.want || (chain.current.Load() != before) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
