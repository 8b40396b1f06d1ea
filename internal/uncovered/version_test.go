package uncovered

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// beside returns the clients of a fieldperm that maintains the configuration when granular is a static manifest.
func beside(f *fixture, version, address string) *fixture {
	f.config.Owner, f.config.Version = "", version
	f.config.Reach = func(path string) (admissionregistrationv1.WebhookClientConfig, error) {
		return webhooks.ClientConfigAt(address, path, []byte("ca")), nil
	}
	return f
}

// writes counts the requests to the API server that are not reads.
func writes(client *fake.Clientset) int {
	n := 0
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" && verb != "watch" {
			n++
		}
	}
	return n
}

// A8: with a static manifest, fieldperm creates the configuration itself, with the webhook schemas in it.
func TestA8_KeeperNeedsNoOwnerBesideAStaticManifest(t *testing.T) {
	client := fake.NewClientset()
	f := beside(newFixture(t, client, set("", "pods")), "v1.0.0", "https://127.0.0.1:1")
	must(t, f.keep(t.Context()))
	c := live(t, client)
	if c == nil || len(c.Webhooks) != 3 || len(c.OwnerReferences) != 0 || c.Annotations[webhooks.WriterAnnotation] != "v1.0.0" {
		t.Fatalf("configuration is %+v", c)
	}
	for i, path := range []string{"/admit/uncovered", "/admit/schemas"} {
		if w := c.Webhooks[i]; *w.ClientConfig.URL != "https://127.0.0.1:1"+path || string(w.ClientConfig.CABundle) != "ca" {
			t.Errorf("webhook %q calls %+v", w.Name, w.ClientConfig)
		}
	}
	want(t, "rules", names(rulesOf(c)), "/bindings", "/pods", "/pods/*")

	// A user removes the webhook schemas, or the webhook for barriers.
	for name := range map[string]bool{webhooks.SchemasWebhook: true, webhooks.UncoveredWebhookName: true} {
		c = live(t, client)
		for i := range c.Webhooks {
			if c.Webhooks[i].Name == name {
				c.Webhooks = append(c.Webhooks[:i:i], c.Webhooks[i+1:]...)
				break
			}
		}
		_, err := f.configurations().Update(t.Context(), c, metav1.UpdateOptions{})
		must(t, err)
		f.repairs = repairs{}
		must(t, f.keep(t.Context()))
		if c := live(t, client); len(c.Webhooks) != 3 {
			t.Errorf("%s: webhooks are %+v", name, c.Webhooks)
		}
	}
}

// D6: an older version does not change what a newer one wrote, although it would write it differently, and adds the rules that it
// needs. The newer version replaces what the older one wrote.
func TestD6_AnOlderVersionNeverNarrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		older := beside(newFixture(t, client, set("", "pods")), "v1.2.0-0.20261122050000-abc", "https://127.0.0.1:1")
		newer := beside(newFixture(t, client, set("", "pods"), set("apps", "deployments")), "v1.10.0", "https://127.0.0.1:1")
		must(t, older.keep(t.Context()))
		must(t, newer.keep(t.Context()))
		c := live(t, client)
		if c.Annotations[webhooks.WriterAnnotation] != "v1.10.0" {
			t.Fatalf("annotations are %v", c.Annotations)
		}

		// The newer version has a match condition that the older one does not know.
		c.Webhooks[0].MatchConditions = append(c.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{Name: "new", Expression: "request.name != 'x'"})
		*webhookNamed(c, webhooks.ProbeWebhook).ClientConfig.URL = "https://127.0.0.1:1" + webhooks.ProbePath + webhooks.NewState(c)
		_, err := newer.configurations().Update(t.Context(), c, metav1.UpdateOptions{})
		must(t, err)
		client.ClearActions()
		for range 3 {
			if err := older.keep(t.Context()); err == nil || !strings.Contains(err.Error(), `was written by fieldperm "v1.10.0"`) {
				t.Errorf("error is %v", err)
			}
			time.Sleep(2 * removeAfter)
		}
		if n := writes(client); n != 0 {
			t.Errorf("%d writes of an older version", n)
		}
		if older.Newer() != "v1.10.0" || newer.Newer() != "" {
			t.Errorf("newer than the older %q, than the newer %q", older.Newer(), newer.Newer())
		}

		// A barrier that only the older version knows so far is added, and nothing is removed.
		older.use(set("", "secrets"))
		must(t, older.keep(t.Context()))
		c = live(t, client)
		want(t, "widened", names(rulesOf(c)), "/bindings", "/pods", "/pods/*", "/secrets", "/secrets/*", "apps/deployments", "apps/deployments/*")
		if last := c.Webhooks[0].MatchConditions[len(c.Webhooks[0].MatchConditions)-1]; last.Name != "new" || c.Annotations[webhooks.WriterAnnotation] != "v1.10.0" {
			t.Errorf("the older version replaced %+v, %v", last, c.Annotations)
		}
		if n := len(older.applied); older.applied[n-1] {
			t.Error("the older version says that all is as it should be")
		}
	})
}

// D6: an unknown version, and a configuration without the annotation, are older than any version.
func TestD6_WhichVersionIsNewer(t *testing.T) {
	for _, c := range []struct {
		writer, own string
		want        bool
	}{
		{"v1.1.0", "v1.0.9", true},
		{"v1.0.9", "v1.1.0", false},
		{"v1.0.0", "v1.0.0", false},
		{"v0.0.0-20261122000002-aaaaaaaaaaaa", "v0.0.0-20261122000001-bbbbbbbbbbbb", true},
		{"v0.0.0-20261122000001-bbbbbbbbbbbb", "v0.0.0-20261122000002-aaaaaaaaaaaa+dirty", false},
		{"v1.0.0", "v1.0.0-rc.1", true},
		{"v1.0.0", "", true},
		{"", "v1.0.0", false},
		{"whatever", "v1.0.0", false},
		{"", "", false},
	} {
		live := &configuration{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{webhooks.WriterAnnotation: c.writer}}}
		if got := newerWriter(live, c.own) != ""; got != c.want {
			t.Errorf("written by %q, this is %q: newer is %t", c.writer, c.own, got)
		}
	}
}

// D6: after their first attempts, two writers that disagree (here about the address) each write at most six times a minute. A new
// barrier is written without this delay.
func TestD6_WritersThatDisagreeDoSoSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a := beside(newFixture(t, client, set("", "pods")), "v1.0.0", "https://127.0.0.1:1")
		b := beside(newFixture(t, client, set("", "pods")), "v1.0.0", "https://127.0.0.1:2")
		fight := func(d time.Duration) int {
			client.ClearActions()
			for end := time.Now().Add(d); time.Now().Before(end) && writes(client) < 100; time.Sleep(50 * time.Millisecond) {
				_ = a.keep(t.Context())
				_ = b.keep(t.Context())
			}
			return writes(client)
		}
		fight(time.Minute)
		// A write is a patch, plus an update if the patch leaves something.
		if n := fight(time.Minute); n > 2*2*6 {
			t.Errorf("%d writes a minute", n)
		}
		a.use(set("", "pods"), set("apps", "deployments"))
		must(t, a.keep(t.Context()))
		if got := names(rulesOf(live(t, client))); len(got) != 5 {
			t.Errorf("a new barrier waits: %v", got)
		}
		// With one writer left and after the pause calm, the next repair has no delay.
		time.Sleep(calm)
		must(t, a.keep(t.Context()))
		c := live(t, client)
		c.Webhooks = nil
		_, err := a.configurations().Update(t.Context(), c, metav1.UpdateOptions{})
		must(t, err)
		must(t, a.keep(t.Context()))
		if len(live(t, client).Webhooks) != 3 {
			t.Error("a removed rule was not restored")
		}
	})
}
