package observation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

// P9: a status counts each update once, whichever replica saw it, and in any order of the replicas.
func TestP9_ReplicasAddToOneStatus(t *testing.T) {
	one, other := &counts{}, &counts{}
	a, b := update{"alice", "apps", "deployments", "shop", "web"}, update{"alice", "apps", "deployments", "blog", "api"}
	one.add(&a, []string{"granular:image(web)", "granular:scale"}, true, start)
	one.add(&a, nil, false, start.Add(time.Second))
	other.add(&b, []string{"granular:scale"}, false, start.Add(2*time.Second))
	other.failed++
	var texts []string
	for _, order := range [][]*counts{{one, other}, {other, one}} {
		status := &v1alpha1.PermissionObservationStatus{}
		for _, c := range order {
			status = merge(status, c)
		}
		text, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	want := `{"writes":3,"refused":1,"failed":1,"resources":[{"user":"alice","group":"apps","resource":"deployments","writes":3,"verbs":[` +
		`{"verb":"granular:image(web)","count":1,"firstTime":"2026-11-01T12:00:00Z","lastTime":"2026-11-01T12:00:00Z","example":{"namespace":"shop","name":"web"},"namespaces":["shop"]},` +
		`{"verb":"granular:scale","count":2,"firstTime":"2026-11-01T12:00:00Z","lastTime":"2026-11-01T12:00:02Z","example":{"namespace":"blog","name":"api"},"namespaces":["blog","shop"]}]}]}`
	for _, text := range texts {
		if text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
}

// P9: 10,000 verbs, users and namespaces do not make a status larger than an API server stores. What is left out is counted.
func TestP9_AStatusIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, add := range map[string]func(c *counts, i int){
		"verbs": func(c *counts, i int) {
			c.add(&update{"u", "", "r", "n", "o"}, []string{fmt.Sprintf("granular:label(%d)", i)}, false, start)
		},
		"long verbs": func(c *counts, i int) {
			c.add(&update{"u", "", "r", "n", "o"}, []string{fmt.Sprintf("granular:label(%s%d)", long, i)}, false, start)
		},
		"users": func(c *counts, i int) {
			c.add(&update{fmt.Sprint(i), "", "r", "n", "o"}, []string{"granular:scale"}, false, start)
		},
		"namespaces": func(c *counts, i int) {
			c.add(&update{"u", "", "r", fmt.Sprintf("%063d", i), "o"}, []string{fmt.Sprintf("granular:label(%d)", i%1000)}, false, start)
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.PermissionObservationStatus{}
			for range 2 {
				c := &counts{}
				for i := range 10_000 {
					add(c, i)
				}
				status = merge(status, c)
			}
			text, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			uses := status.Omitted
			for _, r := range status.Resources {
				for _, v := range r.Verbs {
					uses += v.Count
				}
			}
			if len(text) > 1<<20 || uses != 20_000 || status.Writes != 20_000 {
				t.Errorf("%d bytes, %d uses, %d writes", len(text), uses, status.Writes)
			}
		})
	}
}

// P9: gaps of one reason that are near each other are one, and no gap is lost.
func TestP9_GapsAreBounded(t *testing.T) {
	var gaps []v1alpha1.ObservationGap
	for i := range 100 {
		gaps = withGap(gaps, v1alpha1.ObservationGap{From: at(i * 1000), To: at(i*1000 + 1), Reason: fmt.Sprint(i % 2)})
		gaps = withGap(gaps, v1alpha1.ObservationGap{From: at(i*1000 + 2), To: at(i*1000 + 3), Reason: fmt.Sprint(i % 2)})
	}
	first, last := gaps[0], gaps[len(gaps)-1]
	if len(gaps) != v1alpha1.MaxObservationGaps || first.From != at(0) || last.From != at(99_000) || last.To != at(99_003) {
		t.Errorf("%d gaps from %v to %v", len(gaps), first, last)
	}
}

// P9: an observation is about its subjects and its resources, with their subresources.
func TestP9_WhichUpdatesAreObserved(t *testing.T) {
	r := NewRecorder(clocktesting.NewFakePassiveClock(start), true, nil)
	observe := func(name string, resources string, subjects ...v1alpha1.Subject) *v1alpha1.PermissionObservation {
		group, resource, _ := strings.Cut(resources, "/")
		return &v1alpha1.PermissionObservation{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", Generation: 1}, Spec: v1alpha1.PermissionObservationSpec{
			Subjects: subjects, Resources: []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}},
		}}
	}
	alice, robots := v1alpha1.Subject{Kind: "User", Name: "alice"}, v1alpha1.Subject{Kind: "Group", Name: "robots"}
	bot := v1alpha1.Subject{Kind: "ServiceAccount", Name: "bot", Namespace: "ops"}
	for name, c := range map[string]struct {
		observation *v1alpha1.PermissionObservation
		user        string
		groups      []string
		group       string
		resource    string
		subresource string
		want        bool
	}{
		"a user":                        {observe("a", "apps/deployments", alice), "alice", nil, "apps", "deployments", "", true},
		"another user":                  {observe("a", "apps/deployments", alice), "bob", nil, "apps", "deployments", "", false},
		"another letter case":           {observe("a", "apps/deployments", alice), "Alice", nil, "apps", "deployments", "", false},
		"a group is no user":            {observe("a", "apps/deployments", robots), "robots", nil, "apps", "deployments", "", false},
		"a member":                      {observe("a", "apps/deployments", robots), "r2", []string{"x", "robots"}, "apps", "deployments", "", true},
		"a service account":             {observe("a", "*/*", bot), "system:serviceaccount:ops:bot", nil, "", "pods", "status", true},
		"of another namespace":          {observe("a", "*/*", bot), "system:serviceaccount:dev:bot", nil, "", "pods", "status", false},
		"a subresource":                 {observe("a", "apps/deployments", alice), "alice", nil, "apps", "deployments", "scale", true},
		"another group":                 {observe("a", "apps/deployments", alice), "alice", nil, "extensions", "deployments", "", false},
		"another resource":              {observe("a", "apps/deployments", alice), "alice", nil, "apps", "statefulsets", "", false},
		"one subresource":               {observe("a", "apps/deployments/scale", alice), "alice", nil, "apps", "deployments", "scale", true},
		"the object of one":             {observe("a", "apps/deployments/scale", alice), "alice", nil, "apps", "deployments", "", false},
		"one subresource of everything": {observe("a", "*/*/scale", alice), "alice", nil, "apps", "deployments", "scale", true},
	} {
		t.Run(name, func(t *testing.T) {
			r.follow(nil)
			r.follow([]*v1alpha1.PermissionObservation{c.observation})
			req := &admissionv1.AdmissionRequest{
				UserInfo: authenticationv1.UserInfo{Username: c.user, Groups: c.groups}, SubResource: c.subresource,
				Resource: metav1.GroupVersionResource{Group: c.group, Version: "v1", Resource: c.resource},
			}
			if got := r.Watch(req); (got != nil) != c.want {
				t.Errorf("observed is %t", got != nil)
			}
		})
	}
}

// P9: two observations of one user count the same updates, and the stronger actions hold.
func TestP9_TwoObservationsOfOneUser(t *testing.T) {
	refused := 0
	r := NewRecorder(clocktesting.NewFakePassiveClock(start), true, func() { refused++ })
	subject := []v1alpha1.Subject{{Kind: "User", Name: "alice"}}
	all := []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*"}}}
	audits := &v1alpha1.PermissionObservation{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}, Spec: v1alpha1.PermissionObservationSpec{Subjects: subject, Resources: all, Actions: []v1alpha1.ObservationAction{"Audit"}}}
	warns := &v1alpha1.PermissionObservation{ObjectMeta: metav1.ObjectMeta{UID: "2", Generation: 1}, Spec: v1alpha1.PermissionObservationSpec{Subjects: subject, Resources: all, Actions: []v1alpha1.ObservationAction{"Warn"}}}
	r.follow([]*v1alpha1.PermissionObservation{audits, warns})
	req := &admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: "alice"}, Resource: metav1.GroupVersionResource{Resource: "pods"}}
	w := r.Watch(req)
	if !w.Warns() || !w.Audits() {
		t.Errorf("warns %t, audits %t", w.Warns(), w.Audits())
	}
	w.Record(&admission.Observation{Verbs: []string{"granular:image"}, Refused: "no"})
	r.Watch(req).Record(&admission.Observation{Verbs: []string{"granular:securityContext"}, Denied: true})
	r.Watch(req).Fail()
	r.Refused(http.StatusServiceUnavailable)
	for o, want := range map[*v1alpha1.PermissionObservation]counts{audits: {writes: 1, denied: 1, failed: 1}, warns: {writes: 1, denied: 1, failed: 1, refused: 1}} {
		got := r.of(o).take()
		if got.writes != want.writes || got.failed != want.failed || got.refused != want.refused || got.denied != want.denied || len(got.gaps) != 1 {
			t.Errorf("%s: %+v", o.UID, got)
		}
		if status := merge(&v1alpha1.PermissionObservationStatus{Denied: 2}, &got); status.Denied != 3 || strings.Contains(fmt.Sprint(status.Resources), "securityContext") {
			t.Errorf("%s: a denied update is in the status: %+v", o.UID, status)
		}
		if again := r.of(o).take(); !again.isEmpty() {
			t.Errorf("%s: counted again: %+v", o.UID, again)
		}
		r.of(o).giveBack(&got)
		if back := r.of(o).take(); back.writes != 1 {
			t.Errorf("%s: given back: %+v", o.UID, back)
		}
	}
	if refused != 1 {
		t.Errorf("%d refusals", refused)
	}
	// A new specification begins with no counts.
	warns = warns.DeepCopy()
	warns.Generation = 2
	r.Watch(req).Fail()
	r.follow([]*v1alpha1.PermissionObservation{audits, warns})
	if a, b := r.of(audits).take(), r.of(warns).take(); a.failed != 1 || !b.isEmpty() {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestP9_AQuestionThatIsNotReadIsAGap: kube-apiserver stores the update all the same, because the webhook's failurePolicy is Ignore.
func TestP9_AQuestionThatIsNotReadIsAGap(t *testing.T) {
	for code, want := range map[int]string{
		http.StatusServiceUnavailable:    "fieldperm was too busy",
		http.StatusTooManyRequests:       "fieldperm was too busy",
		http.StatusBadRequest:            "fieldperm did not read the question about an update (HTTP 400, Bad Request): see its log",
		http.StatusRequestEntityTooLarge: "fieldperm did not read the question about an update (HTTP 413, Request Entity Too Large): see its log",
	} {
		r := NewRecorder(clocktesting.NewFakePassiveClock(start), true, nil)
		o := &v1alpha1.PermissionObservation{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
		r.follow([]*v1alpha1.PermissionObservation{o})
		r.Refused(code)
		if got := r.of(o).take(); len(got.gaps) != 1 || got.gaps[0].Reason != want {
			t.Errorf("HTTP %d: gaps %+v", code, got.gaps)
		}
	}
}
