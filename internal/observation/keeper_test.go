package observation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/uncovered"
)

// plane is an API server with one observation, and replicas of fieldperm.
type plane struct {
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	configs *kubernetesfake.Clientset
	object  *v1alpha1.PermissionObservation
	// other is another observation, whose status is not kept. Nil for none.
	other *v1alpha1.PermissionObservation
	// refuse is the error for writes of the status, only for those of which refuses is true unless it is nil.
	refuse  error
	refuses func(*v1alpha1.PermissionObservationStatus) bool
	writes  int
	// owner is the error of Reach.
	owner error
	// anybody means that callers are not authenticated.
	anybody bool
}

func newPlane(t *testing.T) *plane {
	p := &plane{t: t, clock: clocktesting.NewFakePassiveClock(start), configs: kubernetesfake.NewClientset()}
	p.object = &v1alpha1.PermissionObservation{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "u", Generation: 1, ResourceVersion: "1"}, Spec: v1alpha1.PermissionObservationSpec{
		Subjects: []v1alpha1.Subject{{Kind: "User", Name: "alice"}}, Resources: []v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"pods"}}},
	}}
	return p
}

// replica returns a keeper that has just started.
func (p *plane) replica() *Keeper {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[runtimeschema.GroupVersionResource]string{})
	client.PrependReactor("patch", "permissionobservations", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(clienttesting.PatchAction)
		if p.other != nil && patch.GetName() == p.other.Name {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.other)
			return true, &unstructured.Unstructured{Object: content}, err
		}
		applied := &v1alpha1.PermissionObservation{}
		if err := json.Unmarshal(patch.GetPatch(), applied); err != nil {
			p.t.Fatal(err)
		}
		switch {
		case p.refuse != nil && (p.refuses == nil || p.refuses(&applied.Status)):
			return true, nil, p.refuse
		case applied.ResourceVersion != p.object.ResourceVersion:
			return true, nil, apierrors.NewConflict(runtimeschema.GroupResource{Resource: "permissionobservations"}, "o", fmt.Errorf("resource version %q", applied.ResourceVersion))
		}
		p.writes++
		p.object = p.object.DeepCopy()
		p.object.Status, p.object.ResourceVersion = applied.Status, fmt.Sprint(p.writes+1)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p.object)
		return true, &unstructured.Unstructured{Object: content}, err
	})
	k := NewKeeper(Config{
		Client: p.configs, Dynamic: client, Recorder: NewRecorder(p.clock, !p.anybody, nil), Clock: p.clock,
		List: func(ctx context.Context) ([]*unstructured.Unstructured, error) { return p.objects(), ctx.Err() }, Known: p.objects,
		Reach: func(_ context.Context, path string) (admissionregistrationv1.WebhookClientConfig, []metav1.OwnerReference, error) {
			url := "https://fieldperm.example" + path
			return admissionregistrationv1.WebhookClientConfig{URL: &url}, nil, p.owner
		},
		Tried: func() []v1alpha1.ResourceRule { return nil },
	})
	k.begun = p.clock.Now()
	return k
}

// observing returns a keeper whose configuration the API servers have.
func (p *plane) observing() *Keeper {
	p.t.Helper()
	k := p.replica()
	p.after(0, k)
	p.after(5*time.Second, k)
	return k
}

func (p *plane) objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range []*v1alpha1.PermissionObservation{p.object, p.other} {
		if o == nil {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			p.t.Fatal(err)
		}
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out
}

// after moves the clock and runs the keepers once.
func (p *plane) after(d time.Duration, keepers ...*Keeper) {
	p.t.Helper()
	p.clock.SetTime(p.clock.Now().Add(d))
	for _, k := range keepers {
		if err := k.keep(p.t.Context()); err != nil {
			p.t.Error(err)
		}
	}
}

func (p *plane) write(k *Keeper) {
	req := &admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: "alice"}, Resource: metav1.GroupVersionResource{Resource: "pods"}, Namespace: "shop", Name: "web"}
	k.config.Recorder.Watch(req).Record(&admission.Observation{Verbs: []string{"granular:labels"}})
}

func (p *plane) want(what string, writes int, counted int64, gaps ...string) {
	p.t.Helper()
	var reasons []string
	for _, gap := range p.object.Status.Gaps {
		reasons = append(reasons, fmt.Sprintf("%s %s", gap.To.Sub(gap.From.Time), gap.Reason))
	}
	if p.writes != writes || p.object.Status.Writes != counted || strings.Join(reasons, "|") != strings.Join(gaps, "|") {
		p.t.Errorf("%s: the status was written %d times and has %d updates and gaps %q; want %d, %d, %q", what, p.writes, p.object.Status.Writes, reasons, writes, counted, gaps)
	}
}

func (p *plane) condition() string {
	for _, c := range p.object.Status.Conditions {
		if c.Type == v1alpha1.ConditionObserving {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// P9: two replicas add to one status, which is written every 30 s at most.
func TestP9_TheStatusIsWrittenEvery30Seconds(t *testing.T) {
	p := newPlane(t)
	a, b := p.replica(), p.replica()
	p.after(0, a, b)
	p.want("before API servers have the rules", 0, 0)
	p.after(5*time.Second, a, b)
	p.want("with the rules", 1, 0)
	if p.condition() != "True Observing" || p.object.Status.Since == nil {
		t.Errorf("%+v", p.object.Status)
	}
	p.write(a)
	p.write(b)
	p.after(5*time.Second, a, b)
	p.want("soon", 1, 0)
	p.after(30*time.Second, a, b)
	p.want("after 30 s by one replica", 2, 1)
	p.after(30*time.Second, a, b)
	p.want("after 30 s by the other", 3, 2)
	p.after(30*time.Second, a, b)
	p.want("without news", 3, 2)
	p.after(30*time.Second, a, b)
	p.want("without news for 60 s", 4, 2)
}

// P9: counts that could not be written are not lost, and not counted twice.
func TestP9_CountsOutliveErrors(t *testing.T) {
	p := newPlane(t)
	k := p.observing()
	p.write(k)
	p.refuse = apierrors.NewInternalError(fmt.Errorf("no"))
	p.clock.SetTime(p.clock.Now().Add(time.Minute))
	if err := k.keep(t.Context()); err == nil {
		t.Error("no error")
	}
	p.refuse = nil
	p.write(k)
	p.after(5*time.Second, k)
	p.want("after an error", 2, 2)
}

// P9: a status says when no replica was running, unless another one was.
func TestP9_ARestartIsAGap(t *testing.T) {
	p := newPlane(t)
	before := p.replica()
	p.after(0, before)
	p.after(5*time.Second, before)
	p.write(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.clock.SetTime(p.clock.Now().Add(10 * time.Second))
	before.Run(ctx)
	p.want("at the end", 2, 1)

	p.clock.SetTime(p.clock.Now().Add(2 * time.Minute))
	after := p.replica()
	p.after(0, after)
	p.write(after)
	p.after(time.Minute, after)
	p.want("another replica may be running", 2, 1)
	p.after(20*time.Second, after)
	p.want("no other was", 3, 2, "2m0s no fieldperm was running")
	if p.condition() != "True Incomplete" {
		t.Error(p.condition())
	}

	second := p.replica()
	p.after(time.Minute, after, second)
	p.after(time.Minute, after, second)
	p.want("another one was running", 5, 2, "2m0s no fieldperm was running")
}

// P9: a status says when the webhook configuration was not as it should be.
func TestP9_AChangedConfigurationIsAGap(t *testing.T) {
	p := newPlane(t)
	k := p.observing()
	configurations := p.configs.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	live, err := configurations.Get(t.Context(), webhooks.ObservedName, metav1.GetOptions{})
	if err != nil || len(live.Webhooks) != 1 || *live.Webhooks[0].FailurePolicy != admissionregistrationv1.Ignore {
		t.Fatalf("%+v, %v", live, err)
	}
	live.Webhooks[0].MatchConditions[0].Expression = "false"
	if _, err := configurations.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.after(5*time.Second, k)
	p.after(30*time.Second, k)
	p.want("changed", 2, 0, "5s the webhook configuration fieldperm-observed was changed")
	if live, err = configurations.Get(t.Context(), webhooks.ObservedName, metav1.GetOptions{}); err != nil || live.Webhooks[0].MatchConditions[0].Expression != `request.userInfo.username in ["alice"]` {
		t.Errorf("%+v, %v", live, err)
	}
	if err := configurations.Delete(t.Context(), webhooks.ObservedName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.after(5*time.Second, k)
	p.after(30*time.Second, k)
	p.want("deleted", 3, 0, "5s the webhook configuration fieldperm-observed was changed", "5s the webhook configuration fieldperm-observed was deleted")
}

// P9: without the configuration that is enforced, no other is written, and the status says so.
func TestP9_WithoutAnOwnerNothingIsObserved(t *testing.T) {
	p := newPlane(t)
	p.owner = fmt.Errorf("webhook configuration %q %w", "fieldperm", uncovered.ErrNoOwner)
	k := p.replica()
	p.after(0, k)
	p.want("without an owner", 1, 0)
	if p.condition() != "False NotApplied" || p.object.Status.Since != nil {
		t.Errorf("%+v", p.object.Status)
	}
	// A new specification begins anew.
	p.owner = nil
	p.after(30*time.Second, k)
	p.after(5*time.Second, k)
	p.write(k)
	p.object = p.object.DeepCopy()
	p.object.Generation = 2
	p.after(30*time.Second, k)
	if p.object.Status.ObservedGeneration != 2 || p.object.Status.Writes != 0 {
		t.Errorf("%+v", p.object.Status)
	}
}

// P9: a status that the API server rejects is not kept as it was: the next one says that its counts are omitted.
func TestP9_ARejectedStatusIsSaid(t *testing.T) {
	invalid := apierrors.NewInvalid(runtimeschema.GroupKind{Kind: "PermissionObservation"}, "o", field.ErrorList{field.TooLong(field.NewPath("status"), strings.Repeat("x", 40_000), 1)})
	for name, c := range map[string]struct {
		err error
		// refuses says which statuses are not written, rows is how many the last one has.
		refuses func(*v1alpha1.PermissionObservationStatus) bool
		rows    int
		omitted int64
		tries   int
	}{
		"the new rows":             {invalid, func(s *v1alpha1.PermissionObservationStatus) bool { return len(s.Resources) > 1 }, 1, 2, 1},
		"all rows":                 {invalid, func(s *v1alpha1.PermissionObservationStatus) bool { return len(s.Resources) > 0 }, 0, 3, 1},
		"too large":                {apierrors.NewRequestEntityTooLargeError("limit"), func(s *v1alpha1.PermissionObservationStatus) bool { return len(s.Resources) > 1 }, 1, 2, 1},
		"an error of the storage":  {apierrors.NewInternalError(errors.New("too large")), func(s *v1alpha1.PermissionObservationStatus) bool { return len(s.Resources) > 1 }, 1, 2, 3},
		"forbidden by some policy": {apierrors.NewForbidden(runtimeschema.GroupResource{}, "o", errors.New("no")), func(s *v1alpha1.PermissionObservationStatus) bool { return len(s.Resources) > 1 }, 1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.object.Spec.Resources[0].Resources = []string{"*"}
			k := p.observing()
			p.write(k)
			p.after(30*time.Second, k)
			p.want("before", 2, 1)
			for range 2 {
				req := &admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: "alice"}, Resource: metav1.GroupVersionResource{Resource: "roles"}, Name: "r"}
				k.config.Recorder.Watch(req).Record(&admission.Observation{Verbs: []string{"granular:labels"}, Refused: "no"})
			}
			p.refuse, p.refuses = c.err, c.refuses
			p.clock.SetTime(p.clock.Now().Add(30 * time.Second))
			for try := range c.tries {
				if p.writes != 2 {
					t.Errorf("written after %d attempts", try)
				}
				if err := k.keep(t.Context()); !errors.Is(err, c.err) {
					t.Errorf("the log has not the cause: %v", err)
				}
			}
			p.want("rejected", 3, 3)
			s := &p.object.Status
			if p.condition() != "False NotWritten" || len(s.Conditions[0].Message) > 1024 || !strings.Contains(s.Conditions[0].Message, "cannot be written: ") {
				t.Errorf("%+v", s.Conditions)
			}
			if len(s.Resources) != c.rows || s.Omitted != c.omitted {
				t.Errorf("%d rows, %d omitted: %+v", len(s.Resources), s.Omitted, s)
			}
			p.refuse = nil
			p.write(k)
			p.after(30*time.Second, k)
			p.want("after that", 4, 4)
			if p.condition() != "True Incomplete" || len(p.object.Status.Resources) != 1 {
				t.Errorf("%+v", p.object.Status)
			}
		})
	}
}

// P9: a fault with a long text is said in the condition.
func TestP9_FaultsAreBounded(t *testing.T) {
	p := newPlane(t)
	p.owner = fmt.Errorf("webhook configuration %q %w", strings.Repeat("x", 40_000), uncovered.ErrNoOwner)
	p.after(0, p.replica())
	if message := p.object.Status.Conditions[0].Message; p.condition() != "False NotApplied" || len(message) > 1024 || !strings.HasSuffix(message, "…") {
		t.Errorf("%s: %d bytes", p.condition(), len(message))
	}
}

// P9: rules that the API server rejects do not stop observations: kube-apiserver is to ask about all updates.
func TestP9_RejectedRulesStopNothing(t *testing.T) {
	p := newPlane(t)
	rejected := 0
	p.configs.PrependReactor("patch", "validatingwebhookconfigurations", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch, _ := action.(clienttesting.PatchAction)
		if !strings.Contains(string(patch.GetPatch()), "alice") {
			return false, nil, nil
		}
		rejected++
		return true, nil, apierrors.NewInvalid(runtimeschema.GroupKind{}, webhooks.ObservedName, nil)
	})
	k := p.observing()
	p.write(k)
	p.after(30*time.Second, k)
	p.want("all users", 2, 1)
	live, err := p.configs.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), webhooks.ObservedName, metav1.GetOptions{})
	if err != nil || rejected == 0 || p.condition() != "True Observing" || len(live.Webhooks) != 1 || len(live.Webhooks[0].MatchConditions) > 0 || fmt.Sprint(live.Webhooks[0].Rules[0].Resources) != "[*/*]" {
		t.Errorf("%d rejected, %s, %+v, %v", rejected, p.condition(), live, err)
	}
}

// P9: where callers are not authenticated nothing is counted, what was counted before is removed, and the condition says so.
func TestP9_UnauthenticatedCallersAddNothing(t *testing.T) {
	p := newPlane(t)
	before := p.replica()
	p.after(0, before)
	p.after(5*time.Second, before)
	p.write(before)
	p.after(30*time.Second, before)
	p.want("before", 2, 1)
	p.anybody = true
	p.after(30 * time.Second)
	k := p.replica()
	p.after(0, k)
	p.want("callers are not authenticated", 3, 0)
	p.write(k)
	req := &admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: "alice"}, Resource: metav1.GroupVersionResource{Resource: "pods"}}
	k.config.Recorder.Watch(req).Fail()
	p.after(time.Minute, k)
	p.want("after a minute", 4, 0)
	if s := &p.object.Status; p.condition() != "False NotAuthenticated" || s.Since != nil || s.Failed > 0 || len(s.Resources) > 0 || !strings.Contains(s.Conditions[0].Message, "--admission-callers=any") {
		t.Errorf("%+v", s)
	}
	p.anybody = false
	after := p.replica()
	p.after(0, after)
	p.after(30*time.Second, after)
	p.write(after)
	p.after(30*time.Second, after)
	if p.object.Status.Writes != 1 || p.condition() != "True Observing" || !p.object.Status.Since.After(start.Add(time.Minute)) {
		t.Errorf("%+v", p.object.Status)
	}
}
