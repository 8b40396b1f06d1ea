package uncovered

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// What follows are cases that test/mutation showed to be missing elsewhere.

// Nobody knows the barriers of a kind whose PermissionSchema cannot be read.
func TestW2_KeeperKeepsTheRulesOfAKindThatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(owner())
		f := newFixture(t, client, set("example.com", "widgets"))
		unknown := map[runtimeschema.GroupKind]bool{{Group: "example.com", Kind: "Widget"}: true}
		f.config.Unknown = func() map[runtimeschema.GroupKind]bool { return unknown }
		must(t, f.keep(t.Context()))
		f.use(set("", "pods"))
		must(t, f.keep(t.Context()))
		time.Sleep(removeAfter)
		must(t, f.keep(t.Context()))
		want(t, "not known", names(rulesOf(live(t, client))), "/bindings", "/pods", "/pods/*", "example.com/widgets", "example.com/widgets/*")
		unknown = nil
		must(t, f.keep(t.Context()))
		want(t, "known again", names(rulesOf(live(t, client))), "/bindings", "/pods", "/pods/*")
	})
}

// Of two replicas that write at the same time one has to look again.
func TestW2_KeeperWritesOverWhatItHasReadOnly(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "pods"))
	must(t, f.keep(t.Context()))
	read := live(t, client)
	read.ResourceVersion = "7"
	_, err := f.configurations().Update(t.Context(), read, metav1.UpdateOptions{})
	must(t, err)
	var over []string
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(clienttesting.PatchAction)
		var sent metav1.PartialObjectMetadata
		must(t, json.Unmarshal(patch.GetPatch(), &sent))
		over = append(over, sent.ResourceVersion)
		return false, nil, nil
	})
	f.use(set("apps", "deployments"))
	must(t, f.keep(t.Context()))
	if len(over) != 1 || over[0] != "7" {
		t.Errorf("written over %q", over)
	}
}

func TestW2_RulesForAPartAreNone(t *testing.T) {
	namespaced := admissionregistrationv1.NamespacedScope
	for name, narrow := range map[string]func(*admissionregistrationv1.RuleWithOperations){
		"version": func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"v1"} },
		"scope":   func(r *admissionregistrationv1.RuleWithOperations) { r.Scope = &namespaced },
		"operation": func(r *admissionregistrationv1.RuleWithOperations) {
			r.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
		},
	} {
		client := fake.NewClientset(owner())
		f := newFixture(t, client, set("", "pods"))
		must(t, f.keep(t.Context()))
		c := live(t, client)
		narrow(&c.Webhooks[0].Rules[0])
		if got := rulesOf(c); len(got) != 0 {
			t.Errorf("for one %s: %q", name, names(got))
		}
	}
}
