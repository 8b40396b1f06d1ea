//go:build integration

package plugin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/internal/livefield"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// drawnField is a field of an object of canIObjects, with values that the API server takes.
type drawnField struct {
	target, apiVersion, subresource string
	field                           string
	values                          []string
}

var drawnFields = []drawnField{
	{"deployments/web", "", "", ".spec.replicas", []string{"1", "5", "20"}},
	{"deployments/web", "", "", `.spec.template.spec.containers[name="web"].image`, []string{`"a:1"`, `"b:2"`, `"c:3"`}},
	{"deployments/web", "", "", `.spec.template.spec.containers[name="side"].image`, []string{`"a:1"`, `"b:2"`, `"c:3"`}},
	{"deployments/web", "", "", `.spec.template.spec.containers[1].name`, []string{`"x"`, `"y"`, `"z"`}},
	{"deployments/web", "", "", `.metadata.labels["example.com/x"]`, []string{`"a"`, `"b"`, `null`}},
	{"deployments/web", "", "", `.metadata.labels["new"]`, []string{`"a"`, `"b"`, `"c"`}},
	{"deployments/web", "", "", `.metadata.annotations["note"]`, []string{`"a"`, `"b"`, `null`}},
	{"deployments/web", "", "", `.metadata.labels`, []string{`{"app":"web","example.com/x":"q"}`, `{"z":"1"}`, `{"app":"web","a":"1"}`}},
	{"deployments/web", "", "", ".spec.paused", []string{"true"}},
	{"deployments/web", "", "", ".spec.minReadySeconds", []string{"1", "2", "3"}},
	{"deployments/web", "", "", ".spec.strategy", []string{`{"type":"Recreate"}`, `{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}`, `{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2,"maxUnavailable":1}}`}},
	{"deployments/web", "", "scale", ".spec.replicas", []string{"1", "5", "20"}},
	{"deployments/web", "", "status", ".status.replicas", []string{"1", "2", "3"}},
	{"statefulsets/db", "", "", ".spec.replicas", []string{"4", "5", "6"}},
	{"configmaps/settings", "", "", `.data["a"]`, []string{`"x"`, `"bad"`, `"y"`}},
	{"configmaps/settings", "", "", `.data`, []string{`{"a":"x"}`, `{"a":"bad"}`, `{"b":"y"}`}},
	{"gadgets/one", "example.com/v1", "", ".spec.size", []string{"1", "4", "9"}},
	{"gadgets/one", "example.com/v1", "", ".spec.danger", []string{"true"}},
	{"gadgets/one", "example.com/v1", "", ".spec", []string{`{"size":2}`, `{"size":3,"color":"red"}`, `{"size":3,"danger":true}`}},
	{"gadgets/one", "example.com/v1", "", `.spec.tags["a"]`, []string{`"x"`, `"y"`, `"z"`}},
	{"gadgets/one", "example.com/v1", "", `.spec.parts[name="p"].count`, []string{"7", "8", "9"}},
	{"gadgets/one", "example.com/v1beta1", "", ".spec.size", []string{"1", "4", "9"}},
	{"gadgets/one", "example.com/v1beta1", "", ".spec.color", []string{`"a"`, `"b"`, `"c"`}},
	{"gadgets/one", "example.com/v1", "", ".metadata.finalizers", []string{`["example.com/a"]`, `["example.com/b"]`, `["example.com/a","example.com/b"]`}},
	{"services/web", "", "", `.spec.ports[port=80,protocol="TCP"].targetPort`, []string{"8080", "9090", "7070"}},
	{"services/web", "", "", `.spec.selector["app"]`, []string{`"a"`, `"b"`, `"c"`}},
}

const canIObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web, example.com/x: "0"}, annotations: {note: "0"}}, spec: {replicas: 3, selector: {matchLabels: {app: web}},
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}, {name: side, image: "side:1"}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, spec: {replicas: 3, serviceName: db, selector: {matchLabels: {app: db}},
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: "db:1"}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {a: "0", b: "0"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: 80}]}}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: one, namespace: shop}, spec: {size: 3, color: blue, tags: {a: "0", b: "0"}, parts: [{name: p, count: 1}]}}
`

const canIRules = `
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: labels}, spec: {uncoveredPermissions: ['granular:label(example.com)'], resources: [{apiGroups: [apps], resources: [deployments]}],
  matchConditions: [{name: user, expression: "request.userInfo.username in ['user1', 'user3', 'user5', 'user7']"}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: images}, spec: {uncoveredPermissions: ['granular:image(web)'], resources: [{apiGroups: [apps], resources: [deployments]}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: scales}, spec: {uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [statefulsets/scale]}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: bounds}, spec: {subjects: [{kind: User, name: user0}, {kind: User, name: user2}, {kind: User, name: user4}, {kind: User, name: user6}], verbs: ["granular:scale"],
  resources: [{apiGroups: [apps], resources: [deployments, deployments/scale]}], effect: Allow, condition: 'object.spec.replicas <= 10'}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: freeze}, spec: {subjects: [{kind: Group, name: 'system:authenticated'}], verbs: [update, patch],
  resources: [{apiGroups: [""], resources: [configmaps]}], effect: Deny, condition: 'object.data["a"] == "bad"'}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: small}, spec: {subjects: [{kind: User, name: user8}, {kind: User, name: user9}], verbs: [update, patch],
  resources: [{apiGroups: [example.com], resources: ['*']}], effect: Allow, condition: 'object.spec.size < 5'}}
`

// canIVerbs are drawn for users.
var canIVerbs = []string{
	"granular:scale", "granular:image", "granular:image(web)", "granular:image(side)", "granular:container", "granular:label", "granular:label(example.com)", "granular:metadata", "granular:specification",
	"granular:template", "granular:*", "granular:datum(a)", "granular:data", "granular:example.com/size", "granular:example.com/danger", "granular:example.com/tag(a)", "granular:example.com/tags", "granular:annotation(note)",
	"granular:status", "granular:strategy", "granular:finalizer(example.com)", "granular:selector", "granular:ports", "granular:containers",
}

// canIScene is a control plane with fieldperm, its users, and the command as its administrator calls it.
type canIScene struct {
	*plane
	stack  *stack.Stack
	users  []string
	admin  *rest.Config
	config string
}

func newCanIScene(t *testing.T, random *rand.Rand) *canIScene {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Arguments: []string{"--decision-cache-ttl=500ms"}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := &plane{t: t, cluster: s.Cluster}
	p.admin, err = s.User("admin", "system:masters")
	must(t, err)
	p.asker, err = s.User("asker")
	must(t, err)
	out := &canIScene{plane: p, stack: s, admin: s.Admin(), config: p.admin.Kubeconfig}
	p.kubectl("", "apply", "-f", "../../config/crd")
	gadgets, _, _ := strings.Cut(definitions, "\n---\n")
	p.kubectl(gadgets, "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/permissionschemas.fieldperm.dev", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/conditionalpolicies.fieldperm.dev", "crd/gadgets.example.com")
	p.kubectl(canIObjects, "create", "-f", "-")
	p.kubectl(canIRules, "create", "-f", "-")
	p.kubectl(out.drawUsers(random), "create", "-f", "-")
	must(t, s.AwaitGrants(t.Context()))
	must(t, s.AwaitKind(t.Context(), schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}, "Gadget"))
	// A set of a subresource alone has no probe.
	p.kubectl("", "wait", "--for=condition=Enforced", "--timeout=90s", "uncoveredpermissionsets/labels", "uncoveredpermissionsets/images")
	p.kubectl("", "wait", "--for=condition=Enforced", "--timeout=90s", "conditionalpolicies", "--all")
	return out
}

// drawUsers returns the grants of the users.
func (s *canIScene) drawUsers(random *rand.Rand) string {
	var all strings.Builder
	scopes := []string{"resources: ['*']", "resources: ['*']", "resources: ['*']", "resources: [deployments, gadgets, configmaps]", "resources: ['*'], resourceNames: [web, one]", "resources: ['*/scale', '*/status', deployments]"}
	entries := [][]string{{"patch"}, {"update"}, {"update", "patch"}, {"granular", "get"}, {"granular", "get"}, {"granular"}, {"granular", "update", "get"}, nil}
	for i := range 24 {
		user := fmt.Sprintf("user%d", i)
		s.users = append(s.users, user)
		verbs := entries[i%len(entries)]
		for range random.IntN(6) {
			verbs = append(verbs[:len(verbs):len(verbs)], canIVerbs[random.IntN(len(canIVerbs))])
		}
		if i == 23 {
			verbs = []string{"*"}
		}
		quoted, err := json.Marshal(verbs)
		must(s.t, err)
		if len(verbs) == 0 {
			quoted = []byte(`["get"]`)
		}
		s.t.Logf("%s: %s on %s", user, quoted, scopes[i%len(scopes)])
		fmt.Fprintf(&all, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[1]s}, rules: [{apiGroups: ['*'], %[3]s, verbs: %[2]s}]}\n---\n"+
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, "+
			"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]}\n---\n", user, quoted, scopes[i%len(scopes)])
	}
	return all.String()
}

// about returns the question of a user about a field, as the command asks it.
func (s *canIScene) about(known map[string]*caller, user, verb string, d *drawnField) (*permission, *situation, *livefield.Field) {
	s.t.Helper()
	o := s.command(s.config)
	o.as, o.verb, o.subresource, o.apiVersion, o.fields = user, verb, d.subresource, d.apiVersion, []string{d.field}
	c := known[user]
	if c == nil {
		var err error
		c, err = o.caller(s.t.Context())
		must(s.t, err)
		if len(c.missing) > 0 {
			s.t.Fatal(c.missing)
		}
		known[user] = c
	}
	situation, err := o.situation(s.t.Context(), c, d.target)
	must(s.t, err)
	fields, err := livefield.Resolve(situation.kind, situation.object, d.field)
	must(s.t, err)
	return o, situation, &fields[0]
}

func (s *canIScene) command(kubeconfig string) *permission {
	flags := genericclioptions.NewConfigFlags(true)
	namespace := "shop"
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	flags.Impersonate, flags.ImpersonateGroup, flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil, nil, nil
	return &permission{inquirer: inquirer{options: options{
		cluster: flags, maxChecks: fieldperm.DefaultMaxChecks, output: outputText, streams: genericiooptions.NewTestIOStreamsDiscard(),
	}}, changed: func(string) bool { return false }}
}

// judged is what the API server says to a write.
type judged struct{ allowed, same, invalid bool }

// writes sends the change as a dry run of the user: a PUT for update, a PATCH for patch.
func (s *canIScene) writes(user, verb string, in *situation, f *livefield.Field, value any) (judged, error) {
	s.t.Helper()
	config := rest.CopyConfig(s.admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	must(s.t, err)
	of := client.Resource(schema.GroupVersionResource(in.base.Resource)).Namespace("shop")
	changed, err := f.Set(in.object, value)
	must(s.t, err)
	before, err := json.Marshal(in.object)
	must(s.t, err)
	after, err := json.Marshal(changed)
	must(s.t, err)
	var sub []string
	if in.of.subresource != "" {
		sub = []string{in.of.subresource}
	}
	if verb == "update" {
		_, err = of.Update(s.t.Context(), &unstructured.Unstructured{Object: changed}, metav1.UpdateOptions{DryRun: []string{"All"}, FieldManager: "can-i"}, sub...)
	} else {
		_, err = of.Patch(s.t.Context(), in.base.Name, types.JSONPatchType, jsonPatch(s.t, f, value), metav1.PatchOptions{DryRun: []string{"All"}, FieldManager: "can-i"}, sub...)
	}
	out := judged{allowed: err == nil, same: string(before) == string(after), invalid: apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)}
	if err != nil && !out.invalid && !apierrors.IsForbidden(err) {
		s.t.Fatalf("%s %s %s: %v", user, verb, f.Path, err)
	}
	return out, err
}

func jsonPatch(t *testing.T, f *livefield.Field, value any) []byte {
	t.Helper()
	operation := map[string]any{"op": "add", "path": f.Pointer(), "value": value}
	if value == nil {
		operation = map[string]any{"op": "remove", "path": f.Pointer()}
	}
	out, err := json.Marshal([]any{operation})
	must(t, err)
	return out
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var out any
	must(t, utiljson.Unmarshal([]byte(text), &out))
	return out
}

// TestCluster_CanISaysWhatTheAPIServerDecides: an answer about a value is the decision of the API server on this change, and a yes or a no without a
// value holds for each value.
func TestCluster_CanISaysWhatTheAPIServerDecides(t *testing.T) {
	const seed = 3617
	random := rand.New(rand.NewPCG(seed, 0))
	s := newCanIScene(t, random)
	known := map[string]*caller{}
	counts, compared := map[string]int{}, 0
	all := draws(240)
	for compared < all {
		d := &drawnFields[random.IntN(len(drawnFields))]
		user, verb := s.users[random.IntN(len(s.users))], []string{"patch", "update"}[random.IntN(2)]
		_, in, f := s.about(known, user, verb, d)
		for _, text := range d.values {
			in.value, in.hasValue = parsed(t, text), true
			with, err := in.decide(t.Context(), f)
			must(t, err)
			is, why := s.writes(user, verb, in, f, in.value)
			if is.invalid {
				t.Fatalf("%s %s %s %s: the value is not valid: %v", verb, d.target, d.field, text, why)
			}
			compared++
			counts["with value: "+with.Outcome.String()]++
			if with.Outcome != anyvalue.Depends && (with.Outcome == anyvalue.Yes) != is.allowed {
				t.Errorf("%s: %s %s/%s %s %s: %s, and the API server: %v", user, verb, d.target, d.subresource, d.field, text, with.Sentence("it"), why)
			}
			if with.Outcome == anyvalue.Depends && !strings.Contains(with.Why[0], "owner") {
				t.Errorf("%s: %s %s %s %s: depends on %v", user, verb, d.target, d.field, text, with.Why)
			}
		}
		in.hasValue = false
		without, err := in.judge.Field(t.Context(), f.Charged)
		must(t, err)
		counts["without: "+without.Outcome.String()]++
		if without.Outcome == anyvalue.Depends {
			continue
		}
		for _, text := range d.values {
			is, why := s.writes(user, verb, in, f, parsed(t, text))
			if is.allowed != (without.Outcome == anyvalue.Yes) && !is.same {
				t.Errorf("%s: %s %s/%s %s: %s for every value, and the API server for %s: %v", user, verb, d.target, d.subresource, d.field, without.Sentence("it"), text, why)
			}
		}
	}
	t.Logf("%d changes: %v", compared, counts)
	for _, outcome := range []string{"with value: yes", "with value: no", "without: yes", "without: no", "without: depends"} {
		if counts[outcome] < all/24 {
			t.Errorf("%s: %d only", outcome, counts[outcome])
		}
	}
}
