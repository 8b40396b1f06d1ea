//go:build integration

package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

const (
	namespace = "soak"
	// people is the number of users of each kind.
	people = 20
	// objects is the number of objects that each of them writes.
	objects = 3
)

// sizes are those of the bodies of reviews, in bytes.
var sizes = []int{2 << 10, 16 << 10}

// barriers are in a schema file.
const barriers = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: guarded}
spec:
  uncoveredPermissions: [granular:label(guarded.example.com)]
  resources: [{apiGroups: [""], resources: [secrets]}]
`

// population has the users and permissions. Those of "taker" change.
func population() string {
	var out strings.Builder
	role := func(kind, name, rules string, users ...string) {
		ns, subjects := "", ""
		if kind == "Role" {
			ns = ", namespace: " + namespace
		}
		for _, user := range users {
			subjects += fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s},", user)
		}
		fmt.Fprintf(&out, "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s%s}, rules: [%s]}\n", kind, name, ns, rules)
		fmt.Fprintf(&out, "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: %sBinding, metadata: {name: %s%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}, subjects: [%s]}\n", kind, name, ns, kind, name, subjects)
	}
	var scalers, keepers, editors []string
	for i := range people {
		scalers, keepers, editors = append(scalers, fmt.Sprint("scaler-", i)), append(keepers, fmt.Sprint("keeper-", i)), append(editors, fmt.Sprint("editor-", i))
	}
	fmt.Fprintf(&out, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", namespace)
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: soak}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	out.WriteString("---\n" + deployment + "\n")
	role("Role", "scaler", `{apiGroups: [apps], resources: [deployments], verbs: [get, granular, "granular:scale"]}`, scalers...)
	role("Role", "keeper", `{apiGroups: [""], resources: [configmaps], verbs: [get, granular, "granular:datum(mine)"]}`, keepers...)
	role("Role", "editor", `{apiGroups: ["", apps], resources: [secrets, deployments], verbs: [get, update, patch]}`, editors...)
	role("Role", "taker", takerRules(takerVerbs), "taker")
	role("Role", "pauser", `{apiGroups: [apps], resources: [deployments], verbs: [get, granular, "granular:soak.example.com/pause"]}`, "pauser")
	role("ClusterRole", "soak-maker", `{apiGroups: [soak.example.com], resources: [gadgets], verbs: [get, granular, "granular:soak.example.com/size"]}`, "maker")
	role("ClusterRole", "soak-stretcher", `{apiGroups: [soak.example.com], resources: [gadgets], verbs: [get, granular, "granular:soak.example.com/extent"]}`, "stretcher")
	return out.String()
}

const takerVerbs = `granular, "granular:scale"`

func takerRules(verbs string) string {
	return `{apiGroups: [apps], resources: [deployments], verbs: [get, ` + verbs + `]}`
}

// target is what a user writes to.
type target struct{ group, resource, kind, name, user string }

const groups = `["system:authenticated"]`

func (a target) question(verb string, t *truth) *request {
	return &request{name: fmt.Sprintf("question: %s %s/%s by %s", verb, a.resource, a.name, a.user), path: "/authorize", truth: t, body: fmt.Appendf(nil,
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":%s,"resourceAttributes":{"verb":%q,"group":%q,"version":"v1","resource":%q,"namespace":%q,"name":%q}}}`,
		a.user, groups, verb, a.group, a.resource, namespace, a.name)}
}

// reviews returns the review of an update in each size.
func (a target) reviews(name, path string, t *truth, metadata [2]string, rest [2]string) []*request {
	build := func(padding int) []byte {
		object := func(i int) string {
			return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":"u","annotations":{"padding":%q}%s}%s}`,
				strings.TrimPrefix(a.group+"/v1", "/"), a.kind, a.name, namespace, strings.Repeat("x", padding), metadata[i], rest[i])
		}
		gvr := fmt.Sprintf(`{"group":%q,"version":"v1","resource":%q}`, a.group, a.resource)
		gvk := fmt.Sprintf(`{"group":%q,"version":"v1","kind":%q}`, a.group, a.kind)
		return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":%s,"resource":%s,"requestKind":%s,"requestResource":%s,"name":%q,"namespace":%q,"operation":"UPDATE","userInfo":{"username":%q,"groups":%s},"object":%s,"oldObject":%s,"dryRun":false,"options":{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}}}`,
			gvk, gvr, gvk, gvr, a.name, namespace, a.user, groups, object(1), object(0))
	}
	var out []*request
	for _, size := range sizes {
		out = append(out, &request{name: fmt.Sprintf("%s of %s/%s by %s, %d KiB", name, a.resource, a.name, a.user, size>>10), path: path, truth: t, body: build(max(0, size-len(build(0))) / 2)})
	}
	return out
}

// mix has all requests of the load.
type mix struct {
	// steady ones have one answer for ever, the answers of the others change.
	steady, changing, questions []*request

	// The truths that change.
	scale, marker               *truth // of taker: its verb, and its marker
	scaleDenied                 *truth
	paused                      *truth // of pauser: its verb exists with a PermissionSchema
	moving                      *truth // of editors: a barrier comes and goes
	maker, stretcher, gadgetAsk *truth // of a kind that comes, changes and goes
}

const granularPath, uncoveredPath = "/admit/granular", "/admit/uncovered"

var none = [2]string{}

func newMix() *mix {
	m := &mix{
		scale: always(Allowed), marker: always(Allowed), scaleDenied: always(Denied), paused: always(Denied), moving: always(Allowed),
		maker: always(Denied | Errored), stretcher: always(Denied | Errored), gadgetAsk: always(Denied | Errored),
	}
	replicas := [2]string{`,"spec":{"replicas":1}`, `,"spec":{"replicas":2}`}
	pause := [2]string{`,"spec":{"replicas":1}`, `,"spec":{"replicas":1,"paused":true}`}
	both := [2]string{`,"spec":{"replicas":1}`, `,"spec":{"replicas":2,"minReadySeconds":7}`}
	for i := range people {
		for j := range objects {
			scaler := target{"apps", "deployments", "Deployment", fmt.Sprint("web-", j), fmt.Sprint("scaler-", i)}
			m.steady = append(m.steady, scaler.reviews("scale", granularPath, always(Allowed), none, replicas)...)
			m.steady = append(m.steady, scaler.reviews("pause", granularPath, always(Denied), none, pause)...)
			m.steady = append(m.steady, scaler.reviews("scale and more", granularPath, always(Denied), none, both)...)
			m.questions = append(m.questions, scaler.question("patch", always(Allowed)), scaler.question("update", always(Allowed)), scaler.question("delete", always(Denied)))
			keeper := target{"", "configmaps", "ConfigMap", fmt.Sprint("map-", j), fmt.Sprint("keeper-", i)}
			m.steady = append(m.steady, keeper.reviews("own datum", granularPath, always(Allowed), none, [2]string{`,"data":{"mine":"a","other":"b"}`, `,"data":{"mine":"c","other":"b"}`})...)
			m.steady = append(m.steady, keeper.reviews("other datum", granularPath, always(Denied), none, [2]string{`,"data":{"mine":"a","other":"b"}`, `,"data":{"mine":"a","other":"c"}`})...)
			m.questions = append(m.questions, keeper.question("patch", always(Allowed)))
			editor := target{"", "secrets", "Secret", fmt.Sprint("secret-", j), fmt.Sprint("editor-", i)}
			m.steady = append(m.steady, editor.reviews("free label", uncoveredPath, always(Allowed), [2]string{`,"labels":{"a":"b"}`, `,"labels":{"a":"c"}`}, none)...)
			m.steady = append(m.steady, editor.reviews("guarded label", uncoveredPath, always(Denied), [2]string{`,"labels":{"guarded.example.com/a":"b"}`, `,"labels":{"guarded.example.com/a":"c"}`}, none)...)
			mover := target{"apps", "deployments", "Deployment", fmt.Sprint("web-", j), fmt.Sprint("editor-", i)}
			m.changing = append(m.changing, mover.reviews("moving label", uncoveredPath, m.moving, [2]string{`,"labels":{"moving.example.com/a":"b"}`, `,"labels":{"moving.example.com/a":"c"}`}, none)...)
		}
	}
	for j := range objects {
		taker := target{"apps", "deployments", "Deployment", fmt.Sprint("web-", j), "taker"}
		stranger := taker
		stranger.user = "nobody"
		for range people { // As frequent as the others.
			m.changing = append(m.changing, taker.reviews("scale", granularPath, m.scale, none, replicas)...)
			m.changing = append(m.changing, taker.reviews("pause", granularPath, m.scaleDenied, none, pause)...)
			m.questions = append(m.questions, taker.question("patch", m.marker), stranger.question("patch", always(Denied)))
			pauser := taker
			pauser.user = "pauser"
			m.changing = append(m.changing, pauser.reviews("pause", granularPath, m.paused, none, pause)...)
			m.steady = append(m.steady, pauser.reviews("scale", granularPath, always(Denied), none, replicas)...)
			gadget := target{"soak.example.com", "gadgets", "Gadget", fmt.Sprint("gadget-", j), "maker"}
			size := [2]string{`,"spec":{"size":1}`, `,"spec":{"size":2}`}
			m.changing = append(m.changing, gadget.reviews("size", granularPath, m.maker, none, size)...)
			m.questions = append(m.questions, gadget.question("patch", m.gadgetAsk))
			gadget.user = "stretcher"
			m.changing = append(m.changing, gadget.reviews("size", granularPath, m.stretcher, none, size)...)
		}
	}
	return m
}

// pick returns a request: every tenth is a question, and every fourth is about what changes.
func (m *mix) pick(random *rand.Rand) *request {
	from := m.steady
	switch share := random.IntN(100); {
	case share < 10:
		from = m.questions
	case share < 35:
		from = m.changing
	}
	return from[random.IntN(len(from))]
}

// about returns one request of a truth.
func (m *mix) about(t *truth) *request {
	for _, r := range m.changing {
		if r.truth == t {
			return r
		}
	}
	for _, r := range m.questions {
		if r.truth == t {
			return r
		}
	}
	return nil
}
