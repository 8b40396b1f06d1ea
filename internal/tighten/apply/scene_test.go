package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
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

// scene is a fake API server, with UIDs, resource versions, generations and preconditions.
type scene struct {
	t       *testing.T
	rbac    *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	client  *Client
	said    []string
	user    string
	fields  string
	// access is the answer to every SubjectAccessReview.
	access authorizationv1.SubjectAccessReviewStatus

	version int
	// saying is called with each text that the client says, saving before each update of a record.
	saying func(text string)
	saving func()
	// writes counts those of the client. The one with the number crash ends the program: before the write, or after it.
	writes, crash int
	after, dead   bool
}

var errCrash = errors.New("the program has ended")

func newScene(t *testing.T) *scene {
	t.Helper()
	g, err := rbac.Decode("test", []byte(objects))
	must(t, err)
	resource := v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource)
	s := &scene{
		t: t, user: operator, fields: "granular:scale", access: authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "granular: the user holds it"},
		rbac:    &fake.Clientset{},
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
	// fake.NewClientset would read the OpenAPI of all kinds for each scene.
	tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	s.rbac.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	s.rbac.PrependReactor("*", "*", s.reactor(tracker))
	s.dynamic.PrependReactor("*", "*", s.reactor(s.dynamic.Tracker()))
	s.client = &Client{LetIn: 700 * time.Millisecond, RBAC: s.rbac, Records: hooked{Records(s.rbac), s}, Observations: s.observations(), Say: func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		s.said = append(s.said, text)
		if s.saying != nil {
			s.saying(text)
		}
	}}
	for i := range g.ClusterRoles {
		s.add(&object{ref: tighten.Ref{Kind: clusterRoleKind, Name: g.ClusterRoles[i].Name}, role: &g.ClusterRoles[i]})
	}
	for i := range g.Roles {
		s.add(&object{ref: tighten.Ref{Kind: roleKind, Namespace: g.Roles[i].Namespace, Name: g.Roles[i].Name}, role: clusterRole(&g.Roles[i])})
	}
	for i := range g.ClusterRoleBindings {
		s.add(&object{ref: tighten.Ref{Kind: clusterRoleBindingKind, Name: g.ClusterRoleBindings[i].Name}, binding: &g.ClusterRoleBindings[i]})
	}
	for i := range g.RoleBindings {
		s.add(&object{ref: tighten.Ref{Kind: roleBindingKind, Namespace: g.RoleBindings[i].Namespace, Name: g.RoleBindings[i].Name}, binding: clusterRoleBinding(&g.RoleBindings[i])})
	}
	s.writes = 0
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reactor does what the API server does besides storing, and ends the program where the test says so.
func (s *scene) reactor(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		if s.dead {
			return true, nil, errCrash
		}
		write := action.GetVerb() == "create" || action.GetVerb() == "update" || action.GetVerb() == "delete"
		if !write || action.GetResource().Resource == "subjectaccessreviews" {
			return false, nil, nil
		}
		if action.GetSubresource() == "" {
			s.writes++
		}
		now := action.GetSubresource() == "" && s.writes == s.crash
		s.dead = now
		if now && !s.after {
			return true, nil, errCrash
		}
		if err := s.store(tracker, action); err != nil {
			return true, nil, err
		}
		if now {
			_, _, _ = clienttesting.ObjectReaction(tracker)(action)
			return true, nil, errCrash
		}
		return false, nil, nil
	}
}

func (s *scene) store(tracker clienttesting.ObjectTracker, action clienttesting.Action) error {
	s.version++
	conflict := func(name string) error {
		return apierrors.NewConflict(action.GetResource().GroupResource(), name, errors.New("precondition"))
	}
	current := func(name string) metav1.Object {
		found, err := tracker.Get(action.GetResource(), action.GetNamespace(), name)
		if err != nil {
			return nil
		}
		m, err := meta.Accessor(found)
		must(s.t, err)
		return m
	}
	if remove, ok := action.(clienttesting.DeleteActionImpl); ok {
		is, p := current(remove.Name), remove.DeleteOptions.Preconditions
		if is != nil && p != nil && (p.UID != nil && *p.UID != is.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != is.GetResourceVersion()) {
			return conflict(remove.Name)
		}
		return nil
	}
	write, ok := action.(clienttesting.CreateAction) // An update has the same method.
	if !ok {
		return fmt.Errorf("action %T", action)
	}
	m, err := meta.Accessor(write.GetObject())
	must(s.t, err)
	is := current(m.GetName())
	switch {
	case action.GetVerb() == "create" && is == nil:
		m.SetUID(types.UID("uid-" + strconv.Itoa(s.version)))
		m.SetGeneration(1)
	case action.GetVerb() == "update" && is != nil:
		if m.GetResourceVersion() != "" && m.GetResourceVersion() != is.GetResourceVersion() || m.GetUID() != "" && m.GetUID() != is.GetUID() {
			return conflict(m.GetName())
		}
		m.SetUID(is.GetUID())
		if next, ok := m.(*unstructured.Unstructured); ok && action.GetSubresource() == "" {
			before, _ := is.(*unstructured.Unstructured)
			next.Object["status"] = before.Object["status"]
			m.SetGeneration(is.GetGeneration())
			if !equality.Semantic.DeepEqual(before.Object["spec"], next.Object["spec"]) {
				m.SetGeneration(is.GetGeneration() + 1)
			}
		}
	}
	m.SetResourceVersion(strconv.Itoa(s.version))
	return nil
}

// hooked are the records with scene.saving.
type hooked struct {
	typedcorev1.SecretInterface
	s *scene
}

func (h hooked) Update(ctx context.Context, o *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	if hook := h.s.saving; hook != nil {
		h.s.saving = nil
		hook()
	}
	return h.SecretInterface.Update(ctx, o, options)
}

// add makes an object as others do.
func (s *scene) add(o *object) types.UID {
	s.t.Helper()
	uid, err := s.client.create(s.t.Context(), o)
	must(s.t, err)
	return uid
}

// change changes an object as others do.
func (s *scene) change(ref tighten.Ref, change func(o *object)) {
	s.t.Helper()
	o, err := s.client.get(s.t.Context(), ref)
	must(s.t, err)
	if o == nil {
		s.t.Fatalf("%s is not there", ref)
	}
	change(o)
	must(s.t, s.client.update(s.t.Context(), o))
}

// drop deletes an object as others do.
func (s *scene) drop(ref tighten.Ref) {
	s.t.Helper()
	o, err := s.client.get(s.t.Context(), ref)
	must(s.t, err)
	if o == nil {
		s.t.Fatalf("%s is not there", ref)
	}
	_, err = s.client.remove(s.t.Context(), ref, o.meta().UID)
	must(s.t, err)
}

func (s *scene) observations() dynamic.ResourceInterface {
	return s.dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource))
}

func (s *scene) subject() tighten.Subject {
	subject, err := tighten.ParseSubject(s.user)
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
	strip := func(kind *metav1.TypeMeta, m *metav1.ObjectMeta) {
		*kind, m.ManagedFields, m.ResourceVersion = metav1.TypeMeta{}, nil, ""
	}
	for i := range all.Roles {
		strip(&all.Roles[i].TypeMeta, &all.Roles[i].ObjectMeta)
	}
	for i := range all.ClusterRoles {
		strip(&all.ClusterRoles[i].TypeMeta, &all.ClusterRoles[i].ObjectMeta)
	}
	for i := range all.RoleBindings {
		strip(&all.RoleBindings[i].TypeMeta, &all.RoleBindings[i].ObjectMeta)
	}
	for i := range all.ClusterRoleBindings {
		strip(&all.ClusterRoleBindings[i].TypeMeta, &all.ClusterRoleBindings[i].ObjectMeta)
	}
	text, err := json.MarshalIndent(all, "", " ")
	must(s.t, err)
	return string(text)
}

// suffix returns that of the record, or a new one.
func (s *scene) suffix() string {
	s.t.Helper()
	suffix, _, err := Before(s.t.Context(), s.client.Records, s.subject(), &rbac.Grants{})
	must(s.t, err)
	if suffix == "" {
		suffix = NewSuffix()
	}
	return suffix
}

func (s *scene) propose() *tighten.Proposal {
	s.t.Helper()
	log := ""
	for _, resource := range []string{`"resource":"deployments","apiGroup":"apps"`, `"resource":"configmaps","apiGroup":""`} {
		log += `{"kind":"Event","stage":"ResponseComplete","verb":"update","user":{"username":"` + s.user + `","groups":["` + s.subject().Name + `"]},"objectRef":{` + resource +
			`,"namespace":"team","name":"web"},"responseStatus":{"code":200},"annotations":{"granular.fieldperm.dev/fields":"` + s.fields + `"}}` + "\n"
	}
	e := &tighten.Evidence{}
	l := tighten.Log{Subject: s.subject(), Visit: e.Collect}
	must(s.t, l.Read(s.t.Context(), strings.NewReader(log)))
	all := s.read()
	p, err := tighten.Propose(s.subject(), &all, e, tighten.Options{
		Namespaces: tighten.HeldReach, Names: tighten.HeldReach, Suffix: s.suffix(), Barriers: &tighten.Barriers{Unknown: true}, Decides: func(tighten.Resource) tighten.Decides { return tighten.DecidesYes },
	})
	must(s.t, err)
	p.New = nil // Not every subject of a test holds update on both resources.
	return p
}

func (s *scene) apply(options Options) (Step, error) {
	s.t.Helper()
	return s.client.Apply(s.t.Context(), s.propose(), nil, options)
}

func (s *scene) undo(overwrite bool) (int, error) {
	s.t.Helper()
	return s.client.Undo(s.t.Context(), s.subject(), overwrite)
}

// tightened makes both steps.
func (s *scene) tightened() {
	s.t.Helper()
	step, err := s.apply(Options{})
	must(s.t, err)
	s.observe(good())
	next, err := s.apply(Options{Unproven: true})
	must(s.t, err)
	if step != Added || next != Removed {
		s.t.Fatalf("steps %d and %d", step, next)
	}
}

// record returns the record of the subject.
func (s *scene) record() *record {
	s.t.Helper()
	st, err := s.client.load(s.t.Context(), s.subject())
	must(s.t, err)
	if st == nil {
		s.t.Fatal("there is no record")
	}
	return &st.record
}

// observe writes the status of the observation, as fieldperm does.
func (s *scene) observe(status v1alpha1.PermissionObservationStatus) {
	s.t.Helper()
	o, err := s.observations().Get(s.t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
	must(s.t, err)
	if status.ObservedGeneration == 0 {
		status.ObservedGeneration = o.GetGeneration()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	must(s.t, err)
	o.Object["status"] = content
	_, err = s.observations().UpdateStatus(s.t.Context(), o, metav1.UpdateOptions{})
	must(s.t, err)
}

func good() v1alpha1.PermissionObservationStatus {
	return v1alpha1.PermissionObservationStatus{Writes: 5, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionObserving, Status: metav1.ConditionTrue}}}
}
