package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

const operator = "system:serviceaccount:ops:operator"

// objects: a role of the subject alone that is one of Kubernetes' defaults, and one that it shares, in a namespace.
const objects = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: operator, annotations: {rbac.authorization.kubernetes.io/autoupdate: "true"}}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, update, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shared, namespace: team}, rules: [{apiGroups: [''], resources: [configmaps], verbs: ["*"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: shared, namespace: team, labels: {app: x}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: shared},
  subjects: [{kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, namespace: ops, name: operator}, {kind: User, name: joe, apiGroup: rbac.authorization.k8s.io}]}
`

// scene is a fake API server.
type scene struct {
	t       *testing.T
	rbac    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	client  *Client
	said    []string
	fields  string
	// access is the answer to every SubjectAccessReview.
	access authorizationv1.SubjectAccessReviewStatus
}

func newScene(t *testing.T) *scene {
	t.Helper()
	g, err := rbac.Decode("test", []byte(objects))
	must(t, err)
	resource := v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource)
	s := &scene{
		t: t, fields: "granular:scale", access: authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "granular: the user holds it"},
		rbac:    fake.NewClientset(&g.ClusterRoles[0], &g.ClusterRoleBindings[0], &g.Roles[0], &g.RoleBindings[0]),
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[runtimeschema.GroupVersionResource]string{resource: "PermissionObservationList"}),
	}
	s.rbac.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review, _ := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		if review.Spec.User != operator || review.Spec.ResourceAttributes.Verb != "update" || len(review.Spec.Groups) != 3 {
			t.Errorf("asked about %+v", review.Spec)
		}
		review.Status = s.access
		return true, review, nil
	})
	s.client = &Client{LetIn: 700 * time.Millisecond, RBAC: s.rbac, Observations: s.observations(), Say: func(format string, args ...any) { s.said = append(s.said, fmt.Sprintf(format, args...)) }}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *scene) observations() dynamic.ResourceInterface {
	return s.dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource))
}

func (s *scene) subject() tighten.Subject {
	subject, err := tighten.ParseSubject(operator)
	must(s.t, err)
	return subject
}

// read returns the RBAC objects.
func (s *scene) read() rbac.Grants {
	ctx, api := s.t.Context(), s.rbac.RbacV1()
	clusterRoles, err := api.ClusterRoles().List(ctx, metav1.ListOptions{})
	must(s.t, err)
	roles, err := api.Roles("").List(ctx, metav1.ListOptions{})
	must(s.t, err)
	clusterBindings, err := api.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	must(s.t, err)
	bindings, err := api.RoleBindings("").List(ctx, metav1.ListOptions{})
	must(s.t, err)
	return rbac.Grants{Roles: roles.Items, ClusterRoles: clusterRoles.Items, RoleBindings: bindings.Items, ClusterRoleBindings: clusterBindings.Items}
}

// text returns all objects as JSON, to compare them.
func (s *scene) text() string {
	all := s.read()
	for i := range all.Roles {
		all.Roles[i].TypeMeta, all.Roles[i].ManagedFields = metav1.TypeMeta{}, nil
	}
	for i := range all.ClusterRoles {
		all.ClusterRoles[i].TypeMeta, all.ClusterRoles[i].ManagedFields = metav1.TypeMeta{}, nil
	}
	for i := range all.RoleBindings {
		all.RoleBindings[i].TypeMeta, all.RoleBindings[i].ManagedFields = metav1.TypeMeta{}, nil
	}
	for i := range all.ClusterRoleBindings {
		all.ClusterRoleBindings[i].TypeMeta, all.ClusterRoleBindings[i].ManagedFields = metav1.TypeMeta{}, nil
	}
	text, err := json.MarshalIndent(all, "", " ")
	must(s.t, err)
	return string(text)
}

func (s *scene) propose() *tighten.Proposal {
	s.t.Helper()
	log := ""
	for _, resource := range []string{`"resource":"deployments","apiGroup":"apps"`, `"resource":"configmaps","apiGroup":""`} {
		log += `{"kind":"Event","stage":"ResponseComplete","verb":"update","user":{"username":"` + operator + `"},"objectRef":{` + resource +
			`,"namespace":"team","name":"web"},"responseStatus":{"code":200},"annotations":{"granular.fieldperm.dev/fields":"` + s.fields + `"}}` + "\n"
	}
	e := &tighten.Evidence{}
	l := tighten.Log{Subject: s.subject(), Visit: e.Collect}
	must(s.t, l.Read(s.t.Context(), strings.NewReader(log)))
	all := s.read()
	p, err := tighten.Propose(s.subject(), &all, e, tighten.Options{Namespaces: tighten.HeldReach, Names: tighten.HeldReach, Barriers: &tighten.Barriers{Unknown: true}, Decides: func(tighten.Resource) tighten.Decides { return tighten.DecidesYes }})
	must(s.t, err)
	if more := tighten.Prove(p, &all, nil, &tighten.Barriers{Unknown: true}).New; len(more) > 0 {
		s.t.Fatalf("new access: %q", more)
	}
	return p
}

func (s *scene) apply(options Options) (Step, error) {
	s.t.Helper()
	return s.client.Apply(s.t.Context(), s.propose(), nil, options)
}

// observe writes the status of the observation.
func (s *scene) observe(status v1alpha1.PermissionObservationStatus) {
	s.t.Helper()
	o, err := s.observations().Get(s.t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
	must(s.t, err)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	must(s.t, err)
	o.Object["status"] = content
	_, err = s.observations().Update(s.t.Context(), o, metav1.UpdateOptions{})
	must(s.t, err)
}

func good() v1alpha1.PermissionObservationStatus {
	return v1alpha1.PermissionObservationStatus{Writes: 5, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionObserving, Status: metav1.ConditionTrue}}}
}

// TestApply_InTwoStepsAndBack: after --undo every object is as it was.
func TestApply_InTwoStepsAndBack(t *testing.T) {
	s := newScene(t)
	before := s.text()
	step, err := s.apply(Options{})
	if step != Added || err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	o, err := s.observations().Get(t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
	must(t, err)
	if actions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "actions"); fmt.Sprint(actions) != "[Audit Warn]" {
		t.Errorf("actions are %q", actions)
	}
	// The observation has no status yet.
	var blocked *BlockedError
	if _, err := s.apply(Options{}); !errors.As(err, &blocked) {
		t.Fatalf("the second step is not blocked: %v", err)
	}
	s.observe(good())
	if step, err := s.apply(Options{}); step != Removed || err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	all := s.read()
	for _, g := range tighten.Held(&all, s.subject(), nil) {
		for _, r := range g.Rules {
			if text := fmt.Sprint(r.Verbs); strings.Contains(text, "update") || strings.Contains(text, "*") || strings.Contains(text, "patch") {
				t.Errorf("%s has %s", g.Role, text)
			}
		}
	}
	role, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), "operator", metav1.GetOptions{})
	must(t, err)
	if role.Annotations[tighten.AutoupdateAnnotation] != "false" {
		t.Error("kube-apiserver will write the role again")
	}
	if step, err := s.apply(Options{}); step != Nothing || err != nil {
		t.Errorf("again: step %d: %v", step, err)
	}
	for i := range 2 {
		done, err := s.client.Undo(t.Context(), s.subject(), false)
		must(t, err)
		if (done > 0) != (i == 0) {
			t.Errorf("call %d of Undo did %d", i, done)
		}
		if after := s.text(); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
	}
	if list, err := s.observations().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Error("the observation is still there")
	}
}

// TestUndo_GivesUpdateBackFirst: while what was added is deleted, the subject holds update.
func TestUndo_GivesUpdateBackFirst(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	_, err = s.apply(Options{})
	must(t, err)
	s.rbac.ClearActions()
	_, err = s.client.Undo(t.Context(), s.subject(), false)
	must(t, err)
	deleted := false
	for _, action := range s.rbac.Actions() {
		deleted = deleted || action.GetVerb() == "delete"
		if deleted && action.GetVerb() == "update" {
			t.Errorf("%s is updated after a deletion", action.GetResource())
		}
	}
	if !deleted {
		t.Error("nothing is deleted")
	}
}

func TestApply_IsBlockedByWhatTheObservationSays(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.PermissionObservationStatus){
		"has seen no write":                  func(o *v1alpha1.PermissionObservationStatus) { o.Writes = 0 },
		"has seen 2 writes that need more":   func(o *v1alpha1.PermissionObservationStatus) { o.Refused = 2 },
		"could not determine the verbs of 3": func(o *v1alpha1.PermissionObservationStatus) { o.Failed = 3 },
		"omits 4 uses":                       func(o *v1alpha1.PermissionObservationStatus) { o.Omitted = 4 },
		"is not observing":                   func(o *v1alpha1.PermissionObservationStatus) { o.Conditions = nil },
		"has no status of its specification": func(o *v1alpha1.PermissionObservationStatus) { o.ObservedGeneration = 7 },
		"may have missed writes in 1 periods": func(o *v1alpha1.PermissionObservationStatus) {
			o.Gaps = []v1alpha1.ObservationGap{{Reason: "down"}}
		},
	} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		status := good()
		change(&status)
		s.observe(status)
		var blocked *BlockedError
		if _, err := s.apply(Options{}); !errors.As(err, &blocked) || len(blocked.Reasons) != 1 || !strings.Contains(blocked.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if step, err := s.apply(Options{Unproven: true}); step != Removed || err != nil {
			t.Errorf("%s, forced: step %d, %v", want, step, err)
		}
	}
}

// TestApply_AddsLaterVerbsAndObservesAgain: evidence that came later starts the observation anew.
func TestApply_AddsLaterVerbsAndObservesAgain(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	s.fields = "granular:label(a)"
	if step, err := s.apply(Options{}); step != Added || err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	role, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), s.propose().Add.ClusterRoles[0].Name, metav1.GetOptions{})
	must(t, err)
	if got := fmt.Sprint(role.Rules[0].Verbs); got != "[granular granular:label(a) granular:scale]" {
		t.Errorf("verbs are %s", got)
	}
	var blocked *BlockedError
	if _, err := s.apply(Options{}); !errors.As(err, &blocked) {
		t.Errorf("the new observation has no status, and does not block: %v", err)
	}
}

func TestApply_RefusesWhatChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, s *scene) error{
		"a role of the subject": func(ctx context.Context, s *scene) error {
			r, err := s.rbac.RbacV1().ClusterRoles().Get(ctx, "operator", metav1.GetOptions{})
			must(s.t, err)
			r.Rules[0].Resources = append(r.Rules[0].Resources, "daemonsets")
			_, err = s.rbac.RbacV1().ClusterRoles().Update(ctx, r, metav1.UpdateOptions{})
			return err
		},
		"a shared role": func(ctx context.Context, s *scene) error {
			r, err := s.rbac.RbacV1().Roles("team").Get(ctx, "shared", metav1.GetOptions{})
			must(s.t, err)
			r.Rules[0].Resources = append(r.Rules[0].Resources, "secrets")
			_, err = s.rbac.RbacV1().Roles("team").Update(ctx, r, metav1.UpdateOptions{})
			return err
		},
		"a new binding": func(ctx context.Context, s *scene) error {
			b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "new"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "operator"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}}}
			_, err := s.rbac.RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
			return err
		},
	} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		s.observe(good())
		must(t, change(t.Context(), s))
		if step, err := s.apply(Options{Unproven: true}); step != Nothing || err == nil || !strings.Contains(err.Error(), "run with --undo and with --apply again") {
			t.Errorf("%s: step %d, %v", name, step, err)
		}
	}
}

// TestApply_GivesUpdateBackIfTheSubjectIsNotLetIn: without fieldperm as an authorizer the subject could write nothing.
func TestApply_GivesUpdateBackIfTheSubjectIsNotLetIn(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		s.observe(good())
		before := s.text()
		s.access = authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: "RBAC: allowed by a group"}
		step, err := s.apply(Options{})
		if allowed {
			if step != Removed || err != nil {
				t.Errorf("allowed otherwise: step %d, %v", step, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "update and patch were given back: kube-apiserver does not let") || s.text() != before {
			t.Errorf("%v", err)
		}
	}
}

func TestApply_FailsOnAConflict(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	s.rbac.PrependReactor("update", "clusterroles", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(rbacv1.Resource("clusterroles"), "operator", errors.New("changed"))
	})
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("%v", err)
	}
}

func TestApply_RefusesNewAccessAndForeignObjects(t *testing.T) {
	s := newScene(t)
	if _, err := s.client.Apply(t.Context(), s.propose(), []string{"granular:data(a) on secrets"}, Options{}); err == nil || !strings.Contains(err.Error(), "--allow-new") {
		t.Errorf("new access: %v", err)
	}
	p := s.propose()
	foreign := p.Add.ClusterRoles[0].DeepCopy()
	foreign.Labels = nil
	_, err := s.rbac.RbacV1().ClusterRoles().Create(t.Context(), foreign, metav1.CreateOptions{})
	must(t, err)
	if _, err := s.client.Apply(t.Context(), p, nil, Options{}); err == nil || !strings.Contains(err.Error(), "was not made for") {
		t.Errorf("a foreign object: %v", err)
	}
}

// TestApply_RefusesWhatCannotBeRecorded: before anything is added.
func TestApply_RefusesWhatCannotBeRecorded(t *testing.T) {
	s := newScene(t)
	r, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), "operator", metav1.GetOptions{})
	must(t, err)
	for i := range 3000 {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{fmt.Sprintf("things-with-a-long-name-%d", i)}})
	}
	_, err = s.rbac.RbacV1().ClusterRoles().Update(t.Context(), r, metav1.UpdateOptions{})
	must(t, err)
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "change it by hand with -o yaml") || len(s.said) > 0 {
		t.Errorf("%v %q", err, s.said)
	}
}

func TestUndo_RefusesToLoseALaterChange(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	_, err = s.apply(Options{})
	must(t, err)
	r, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), "operator", metav1.GetOptions{})
	must(t, err)
	r.Rules = nil
	_, err = s.rbac.RbacV1().ClusterRoles().Update(t.Context(), r, metav1.UpdateOptions{})
	must(t, err)
	if _, err := s.client.Undo(t.Context(), s.subject(), false); err == nil || !strings.Contains(err.Error(), "--force-overwrite") {
		t.Errorf("%v", err)
	}
	// The granular role stays until update is back.
	if list, _ := s.rbac.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: tighten.SubjectLabel}); len(list.Items) != 1 {
		t.Errorf("%d roles that were added are left", len(list.Items))
	}
	_, err = s.client.Undo(t.Context(), s.subject(), true)
	must(t, err)
}

// TestUndo_OfTwoSubjectsOfOneBinding: each gets back its own place.
func TestUndo_OfTwoSubjectsOfOneBinding(t *testing.T) {
	a, b, c := rbacv1.Subject{Name: "a"}, rbacv1.Subject{Name: "b"}, rbacv1.Subject{Name: "c"}
	all := []rbacv1.Subject{a, b, c}
	withoutA := takenFrom(all, []rbacv1.Subject{b, c})
	withoutAB := takenFrom([]rbacv1.Subject{b, c}, []rbacv1.Subject{c})
	if got := putBack(putBack([]rbacv1.Subject{c}, withoutAB), withoutA); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("in the opposite order: %v", got)
	}
	if got := putBack(putBack([]rbacv1.Subject{c}, withoutA), withoutAB); len(got) != 3 {
		t.Errorf("in the same order: %v", got)
	}
	if got := putBack(all, withoutA); len(got) != 3 {
		t.Errorf("put back twice: %v", got)
	}
}
