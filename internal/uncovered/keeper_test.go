package uncovered

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
)

type configuration = admissionregistrationv1.ValidatingWebhookConfiguration

// fixture is a Keeper with the sources that it follows.
type fixture struct {
	*Keeper
	client kubernetes.Interface

	mu      sync.Mutex
	sets    []sets.Document
	ready   error
	applied []bool
	notices int
}

// set returns a barrier on the labels of a resource. Its rules match the resource and its subresources.
func set(group, resource string) sets.Document {
	return sets.Document{Set: v1alpha1.UncoveredPermissionSet{Spec: v1alpha1.UncoveredPermissionSetSpec{
		UncoveredPermissions: []string{"granular:*"}, Resources: []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}},
	}}}
}

func newFixture(t *testing.T, client kubernetes.Interface, inForce ...sets.Document) *fixture {
	t.Helper()
	empty, errs := compile.Compile(compile.Documents{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	f := &fixture{client: client, sets: inForce}
	if c, ok := client.(*fake.Clientset); ok {
		c.PrependReactor("*", "validatingwebhookconfigurations", generations(c.Tracker()))
	}
	locked := func(do func()) { f.mu.Lock(); defer f.mu.Unlock(); do() }
	f.Keeper = New(Config{
		Client: client, Name: webhooks.UncoveredName, Owner: webhooks.RESTName,
		Ready:    func() (err error) { locked(func() { err = f.ready }); return err },
		Schema:   func() *schema.Schema { return empty },
		Sets:     func() (out []sets.Document) { locked(func() { out = f.sets }); return out },
		Plurals:  func() map[runtimeschema.GroupKind]string { return nil },
		Applied:  func(ok bool) { locked(func() { f.applied = append(f.applied, ok) }) },
		Observed: func() { locked(func() { f.notices++ }) },
	})
	return f
}

// generations counts the generations of configurations, as an API server does.
func generations(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	gvr := admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		stored := func(name string) *configuration {
			out, _ := tracker.Get(gvr, "", name)
			c, _ := out.(*configuration)
			return c
		}
		var before *configuration
		switch a := action.(type) {
		case clienttesting.CreateAction: // It is an UpdateAction too.
			if o, ok := a.GetObject().(*configuration); ok {
				before = stored(o.Name)
			}
		case clienttesting.PatchAction:
			before = stored(a.GetName())
		}
		handled, object, err := clienttesting.ObjectReaction(tracker)(action)
		after, ok := object.(*configuration)
		if verb := action.GetVerb(); err != nil || !ok || verb != "create" && verb != "update" && verb != "patch" {
			return handled, object, err
		}
		after.Generation = 1
		if before != nil {
			after.Generation = before.Generation
			if !apiequality.Semantic.DeepEqual(before.Webhooks, after.Webhooks) {
				after.Generation++
			}
		}
		return handled, after, tracker.Update(gvr, after, "")
	}
}

func (f *fixture) use(inForce ...sets.Document) {
	f.mu.Lock()
	f.sets = inForce
	f.mu.Unlock()
	f.Changed()
}

func (f *fixture) configurations() admissionregistrationclient.ValidatingWebhookConfigurationInterface {
	return f.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
}

// live returns the maintained configuration, nil if there is none.
func live(t *testing.T, client kubernetes.Interface) *configuration {
	t.Helper()
	out, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), webhooks.UncoveredName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// owner returns the configuration that the administrator installs.
func owner() *configuration {
	out := webhooks.GranularConfiguration(webhooks.Options{ServiceURL: "https://127.0.0.1:1", CABundle: []byte("ca")})
	out.UID = "owner"
	return out
}

func TestW2_KeeperWritesTheRulesOfTheSchemas(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "pods"))
	must(t, f.keep(t.Context()))
	c := live(t, client)
	if c == nil || len(c.Webhooks) != 2 {
		t.Fatalf("configuration is %+v", c)
	}
	w := c.Webhooks[0]
	if w.Name != webhooks.UncoveredWebhookName || *w.ClientConfig.URL != "https://127.0.0.1:1/admit/uncovered" || string(w.ClientConfig.CABundle) != "ca" || *w.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("webhook is %+v", w)
	}
	if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != "owner" || c.Labels[webhooks.NameLabel] != webhooks.RESTName {
		t.Errorf("metadata is %+v", c.ObjectMeta)
	}
	want(t, "first", names(rulesOf(c)), "/bindings", "/pods", "/pods/*")

	f.use(set("", "pods"), set("apps", "deployments"))
	must(t, f.keep(t.Context()))
	want(t, "second", names(rulesOf(live(t, client))), "/bindings", "/pods", "/pods/*", "apps/deployments", "apps/deployments/*")
	if len(f.applied) != 2 || !f.applied[0] || !f.applied[1] {
		t.Errorf("applied: %v", f.applied)
	}
}

// The address and the CA come from the owner, also after they change.
func TestW2_KeeperFollowsTheOwnersClientConfig(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "pods"))
	must(t, f.keep(t.Context()))
	moved := webhooks.GranularConfiguration(webhooks.Options{Service: &webhooks.ServiceReference{Namespace: "a", Name: "b"}, CABundle: []byte("new")})
	_, err := f.configurations().Update(t.Context(), moved, metav1.UpdateOptions{})
	must(t, err)
	must(t, f.keep(t.Context()))
	w := live(t, client).Webhooks[0]
	if w.ClientConfig.URL != nil || w.ClientConfig.Service == nil || *w.ClientConfig.Service.Path != "/admit/uncovered" || string(w.ClientConfig.CABundle) != "new" || w.MatchConditions[len(w.MatchConditions)-1].Name != "not-own-namespace" {
		t.Errorf("webhook is %+v", w)
	}
	moved.Webhooks = moved.Webhooks[1:]
	_, err = f.configurations().Update(t.Context(), moved, metav1.UpdateOptions{})
	must(t, err)
	if err := f.keep(t.Context()); err == nil || !strings.Contains(err.Error(), "has no webhook") {
		t.Errorf("error is %v", err)
	}
}

// The Keeper does not undo an uninstallation.
func TestW2_KeeperWritesNothingWithoutItsOwner(t *testing.T) {
	for name, prepare := range map[string]func() *fake.Clientset{
		"absent": func() *fake.Clientset { return fake.NewClientset() },
		"terminating": func() *fake.Clientset {
			o := owner()
			o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			return fake.NewClientset(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := prepare()
			f := newFixture(t, client, set("", "pods"))
			must(t, f.keep(t.Context()))
			if live(t, client) != nil || len(f.applied) != 0 {
				t.Error("a configuration was written")
			}
			if ok, reason := f.Enforced(rules("/pods")); ok || !strings.Contains(reason, webhooks.RESTName) {
				t.Errorf("enforced: %t, %s", ok, reason)
			}
		})
	}
}

func TestW2_KeeperWaitsForTheSchemas(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "pods"))
	f.ready = errors.New("not yet")
	must(t, f.keep(t.Context()))
	if live(t, client) != nil {
		t.Error("a configuration was written")
	}
}

func TestW2_KeeperRevertsChangesOfOthers(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "pods"))
	must(t, f.keep(t.Context()))
	ignore := admissionregistrationv1.Ignore
	for name, tamper := range map[string]func(*configuration){
		"failurePolicy": func(c *configuration) { c.Webhooks[0].FailurePolicy = &ignore },
		"rules":         func(c *configuration) { c.Webhooks[0].Rules = nil },
		"conditions": func(c *configuration) {
			c.Webhooks[0].MatchConditions = append(c.Webhooks[0].MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"selector": func(c *configuration) {
			c.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
		"CA":         func(c *configuration) { c.Webhooks[0].ClientConfig.CABundle = nil },
		"no webhook": func(c *configuration) { c.Webhooks = nil },
		"owner":      func(c *configuration) { c.OwnerReferences = nil },
		"label":      func(c *configuration) { c.Labels = nil },
	} {
		t.Run(name, func(t *testing.T) {
			good := live(t, client)
			bad := good.DeepCopy()
			tamper(bad)
			_, err := f.configurations().Update(t.Context(), bad, metav1.UpdateOptions{FieldManager: "someone"})
			must(t, err)
			f.repairs = repairs{} // no repair happened before
			must(t, f.keep(t.Context()))
			now := live(t, client)
			if !Same(stateless(now), stateless(good)) || len(now.Webhooks) != 2 {
				t.Errorf("configuration is %+v", now)
			}
			if f.State() == "" || f.State() == webhooks.State(good) && now.Generation != good.Generation {
				t.Errorf("state is %q, was %q", f.State(), webhooks.State(good))
			}
		})
	}
	// Additions of others are not changed.
	beside := live(t, client)
	other := *beside.Webhooks[0].DeepCopy()
	other.Name = "other.example.com"
	beside.Webhooks = append(beside.Webhooks, other)
	_, err := f.configurations().Update(t.Context(), beside, metav1.UpdateOptions{FieldManager: "someone"})
	must(t, err)
	must(t, f.keep(t.Context()))
	if now := live(t, client); len(now.Webhooks) != 3 || webhooks.State(now) == "" {
		t.Errorf("configuration is %+v", now)
	}
	client.ClearActions()
	must(t, f.keep(t.Context()))
	for _, action := range client.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("%s of a configuration without a difference", action.GetVerb())
		}
	}
}

// stateless returns a configuration without the webhook for probes.
func stateless(c *configuration) *configuration {
	out := c.DeepCopy()
	out.Webhooks = slices.DeleteFunc(out.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == webhooks.ProbeWebhook })
	return out
}

// The barriers of a kind are unknown if its PermissionSchema cannot be read.
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

// If two replicas write at the same time, one must read again.
func TestW2_KeeperOverwritesTheReadVersionOnly(t *testing.T) {
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

func TestW2_Enforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(owner())
		f := newFixture(t, client, set("", "pods"))
		expect := func(when string, want bool, reason string, names ...string) {
			t.Helper()
			if ok, got := f.Enforced(rules(names...)); ok != want || !strings.Contains(got, reason) {
				t.Errorf("%s: enforced is %t, %q; want %t, %q", when, ok, got, want, reason)
			}
		}
		expect("zero value", false, "not been read yet", "/pods")
		expect("no barrier", true, "no barrier")
		must(t, f.keep(t.Context()))
		expect("written", true, "are in", "/pods", "/pods/status")
		expect("another", false, `no rule for "deployments.apps"`, "/pods", "apps/deployments")

		f.use(set("", "pods"), set("apps", "deployments"))
		before := f.State()
		must(t, f.keep(t.Context()))
		expect("added", true, "are in", "/pods", "apps/deployments")
		if f.State() == before || f.State() == "" {
			t.Errorf("state is %q before and %q after", before, f.State())
		}

		// A user narrowed the rules and the Keeper repaired them: an API server may still use either.
		narrow := live(t, client)
		narrow.Webhooks[0].Rules = narrow.Webhooks[0].Rules[1:]
		_, err := f.configurations().Update(t.Context(), narrow, metav1.UpdateOptions{})
		must(t, err)
		before = f.State()
		must(t, f.keep(t.Context()))
		expect("put right", true, "are in", "/pods")
		if f.State() == before {
			t.Error("API servers that have the narrow rules answer as those that have not")
		}

		time.Sleep(fresh + 1)
		expect("not read for long", false, "could not be read since", "/pods")
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.notices < 4 {
			t.Errorf("%d notices", f.notices)
		}
	})
}

func TestKeeperReportsFailures(t *testing.T) {
	client := fake.NewClientset(owner())
	f := newFixture(t, client, set("", "pods"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broken := owner()
	broken.Webhooks[0].ClientConfig.URL = nil
	_, err := f.configurations().Update(t.Context(), broken, metav1.UpdateOptions{})
	must(t, err)
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	for {
		f.mu.Lock()
		failed := len(f.applied) > 0 && !f.applied[0]
		f.mu.Unlock()
		if failed {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-done
}
