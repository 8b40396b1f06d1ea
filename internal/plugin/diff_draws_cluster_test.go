//go:build integration

package plugin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// manifestsToDraw are manifests of objects before and after a change. %s is the name. The API server sets defaults in all of them.
var manifestsToDraw = []struct{ resource, before, after string }{
	{
		"deployments.apps",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: shop}, spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: web, image: 'web:1'}]}}}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: shop, labels: {tier: front}}, spec: {replicas: 2, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: web, image: 'web:2', env: [{name: A, value: b}]}]}}}}`,
	},
	{
		"deployments.apps",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: shop}, spec: {paused: true, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: web, image: web}, {name: log, image: log}]}}}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: shop}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: web, image: web}, {name: metrics, image: metrics, ports: [{containerPort: 80}]}]}}}}`,
	},
	{
		"configmaps",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, annotations: {example.com/a: '1'}}, data: {a: '1', b: '2'}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop, annotations: {example.com/b: '1'}}, data: {a: '1', b: '3', c: '4'}}`,
	},
	{
		"services",
		`{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: shop}, spec: {selector: {app: a}, ports: [{port: 80, name: web}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: shop}, spec: {selector: {app: b}, ports: [{port: 80, name: web}, {port: 443, name: tls}]}}`,
	},
	{
		"namespaces",
		`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {a: '1'}}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {a: '2', pod-security.kubernetes.io/enforce: baseline}}}`,
	},
	{
		"widgets.example.com",
		`{apiVersion: example.com/v1, kind: Widget, metadata: {name: %s, namespace: shop}, spec: {size: 1, parts: [{name: a, count: 1}, {name: b, count: 2}]}}`,
		`{apiVersion: example.com/v1, kind: Widget, metadata: {name: %s, namespace: shop}, spec: {size: 2, color: red, parts: [{name: b, count: 3}, {name: c, count: 1}]}}`,
	},
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.size", "verb": "example.com/size"}, {"path": ".spec.color", "verb": "example.com/color", "excluded": true}]}'}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
    spec: {type: object, properties: {size: {type: integer}, color: {type: string}, mode: {type: string, default: fast},
      parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}}}},
    status: {type: object, properties: {size: {type: integer}}}}}}}]
`

// drawn is an apply of one user.
type drawn struct {
	user     *cluster.User
	name     string
	resource string
	manifest string
	args     []string
	// own means that the command runs as the user, and not as an administrator about it.
	own    bool
	answer *diffAnswer
	// left is the verb that the role lacks at first.
	left string
}

// TestCluster_DiffIsWhatApplyNeeds: of each drawn user and manifest the answer says that the user may apply it exactly if kubectl apply then
// succeeds. If not, the printed role is enough, and without a drawn one of its verbs it is not.
func TestCluster_DiffIsWhatApplyNeeds(t *testing.T) {
	p := newDiffPlane(t)
	p.kubectl(widgets, "create", "-f", "-")
	p.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/widgets.example.com")
	must(t, p.stack.AwaitKindIn(t.Context(), runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, "Widget", "shop"))
	random := rand.New(rand.NewPCG(3, 4))
	all := make([]*drawn, draws(32))
	var grants strings.Builder
	for i := range all {
		all[i] = p.draw(random, i, &grants)
	}
	p.kubectl(grants.String(), "create", "-f", "-")
	must(t, p.stack.AwaitGrants(t.Context()))

	outcomes := map[string]int{}
	var first, whole []any
	for _, d := range all {
		as, args := p.admin, append([]string{"--as", d.user.Name}, d.args...)
		if d.own {
			as, args = d.user, d.args
		}
		d.answer = p.answer(as, d.manifest, args...)
		object := &d.answer.Objects[0]
		allowed, why := p.apply(d.user, d.manifest, d.args...)
		if allowed != object.Allowed {
			t.Errorf("%s %q, own %t: the answer is %t, kubectl apply %t: %s\n%s", d.name, d.args, d.own, object.Allowed, allowed, why, indented(object))
		}
		outcomes[fmt.Sprintf("%s, allowed %t", object.Result, allowed)]++
		if allowed {
			continue
		}
		if !object.Enough || len(object.Ask) == 0 {
			t.Errorf("%s: no role is enough: %s", d.name, indented(object))
			continue
		}
		d.left = object.Ask[random.IntN(len(object.Ask))]
		first, whole = append(first, without(d.answer.Roles, d.left)...), append(whole, d.answer.Roles...)
	}
	p.create(first)
	for _, d := range all {
		if d.left == "" {
			continue
		}
		if allowed, _ := p.apply(d.user, d.manifest, d.args...); allowed {
			t.Errorf("%s %q: the role without %q is enough: %s", d.name, d.args, d.left, indented(&d.answer.Objects[0]))
			d.left = ""
		}
	}
	p.create(whole)
	for _, d := range all {
		if d.left == "" {
			continue
		}
		if allowed, why := p.apply(d.user, d.manifest, d.args...); !allowed {
			t.Errorf("%s %q, own %t: the role is not enough: %s\n%s", d.name, d.args, d.own, why, indented(&d.answer.Objects[0]))
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"dryRun, allowed true", "dryRun, allowed false", "computed, allowed false"} {
		if outcomes[outcome] == 0 {
			t.Errorf("outcomes %v, want %q among them", outcomes, outcome)
		}
	}
}

// draw draws a user with some verbs, and an object with a change of it.
func (p *diffPlane) draw(random *rand.Rand, i int, grants *strings.Builder) *drawn {
	p.t.Helper()
	m := manifestsToDraw[random.IntN(len(manifestsToDraw))]
	d := &drawn{name: fmt.Sprintf("o%d", i), resource: m.resource, own: random.IntN(2) == 0}
	var err error
	d.user, err = p.cluster.User(fmt.Sprintf("user%d", i))
	must(p.t, err)
	d.manifest = fmt.Sprintf(m.after, d.name)
	if random.IntN(2) == 0 {
		d.args = []string{"--server-side"}
		if random.IntN(2) == 0 {
			d.args = append(d.args, "--force-conflicts")
		}
	}
	if random.IntN(4) > 0 {
		args := []string{"apply", "-f", "-"}
		if len(d.args) > 0 {
			args = append(args, "--server-side")
		}
		p.kubectl(fmt.Sprintf(m.before, d.name), args...)
	}
	// What the change needs, as an administrator sees it.
	needed := p.answer(p.admin, d.manifest, append([]string{"--as", d.user.Name}, d.args...)...)
	var held []string
	for _, verb := range needed.Objects[0].Ask {
		if verb != "get" && random.IntN(10) < 8 {
			held = append(held, verb)
		}
	}
	for _, verb := range []string{"create", "update", "patch", "granular:*"} {
		if random.IntN(12) == 0 {
			held = append(held, verb)
		}
	}
	if d.own || random.IntN(2) == 0 {
		held = append(held, "get")
	}
	if len(held) == 0 {
		return d
	}
	resource, group, _ := strings.Cut(m.resource, ".")
	quoted, err := json.Marshal(held)
	must(p.t, err)
	fmt.Fprintf(grants, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[1]s}, rules: [{apiGroups: [%[2]q], resources: [%[3]q], verbs: %[4]s}]}\n---\n"+
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, "+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]}\n---\n", d.user.Name, group, resource, quoted)
	return d
}

// create applies roles as an administrator, and waits until they are in force.
func (p *diffPlane) create(roles []any) {
	p.t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": roles})
	must(p.t, err)
	p.kubectl(string(list), "apply", "-f", "-")
	must(p.t, p.stack.AwaitGrants(p.t.Context()))
}

// without returns roles without one verb.
func without(roles []any, verb string) []any {
	raw, _ := json.Marshal(roles)
	var out []any
	_ = json.Unmarshal(raw, &out)
	for _, role := range out {
		rules, _ := role.(map[string]any)["rules"].([]any)
		for _, rule := range rules {
			rule := rule.(map[string]any)
			rule["verbs"] = slices.DeleteFunc(rule["verbs"].([]any), func(v any) bool { return v == verb })
			if len(rule["verbs"].([]any)) == 0 {
				rule["verbs"] = []any{"nothing"}
			}
		}
	}
	return out
}

func indented(value any) string {
	out, _ := json.MarshalIndent(value, "", " ")
	return string(out)
}
