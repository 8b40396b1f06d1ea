//go:build integration

package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/test/sender"
)

// request is a request with its right answers.
type request struct {
	sender.Request
	truth *truth
}

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
	return &request{sender.Request{Name: fmt.Sprintf("question: %s %s/%s by %s", verb, a.resource, a.name, a.user), Path: "/authorize", Body: fmt.Appendf(nil,
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":%s,"resourceAttributes":{"verb":%q,"group":%q,"version":"v1","resource":%q,"namespace":%q,"name":%q}}}`,
		a.user, groups, verb, a.group, a.resource, namespace, a.name)}, t}
}

// edit is a part of an object before and after an update.
type edit struct{ before, after string }

// reviews returns the review of an update in each size. The two edits are of the metadata and of the rest.
func (a target) reviews(name, path string, t *truth, metadata, rest edit) []*request {
	const form = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":%q,"kind":%s,"resource":%s,"requestKind":%s,"requestResource":%s,"name":%q,"namespace":%q,"operation":"UPDATE","userInfo":{"username":%q,"groups":%s},"object":%s,"oldObject":%s,"dryRun":false,"options":{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}}}`
	gvr := fmt.Sprintf(`{"group":%q,"version":"v1","resource":%q}`, a.group, a.resource)
	gvk := fmt.Sprintf(`{"group":%q,"version":"v1","kind":%q}`, a.group, a.kind)
	build := func(uid string, padding int) []byte {
		object := func(metadata, rest string) string {
			return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":"u","annotations":{"padding":%q}%s}%s}`,
				strings.TrimPrefix(a.group+"/v1", "/"), a.kind, a.name, namespace, strings.Repeat("x", padding), metadata, rest)
		}
		return fmt.Appendf(nil, form, uid, gvk, gvr, gvk, gvr, a.name, namespace, a.user, groups, object(metadata.after, rest.after), object(metadata.before, rest.before))
	}
	var out []*request
	for _, size := range sizes {
		// The UID shows that an answer is to this request.
		full := fmt.Sprintf("%s of %s/%s by %s, %d KiB", name, a.resource, a.name, a.user, size>>10)
		body := build(full, max(0, size-len(build(full, 0)))/2)
		out = append(out, &request{sender.Request{Name: full, Path: path, UID: types.UID(full), Body: body}, t})
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

var none = edit{}

func newMix() *mix {
	m := &mix{
		scale: always(sender.Allowed), marker: always(sender.Allowed), scaleDenied: always(sender.Denied), paused: always(sender.Denied), moving: always(sender.Allowed),
		maker: always(sender.Denied | sender.Errored), stretcher: always(sender.Denied | sender.Errored), gadgetAsk: always(sender.Denied | sender.Errored),
	}
	replicas := edit{`,"spec":{"replicas":1}`, `,"spec":{"replicas":2}`}
	pause := edit{`,"spec":{"replicas":1}`, `,"spec":{"replicas":1,"paused":true}`}
	both := edit{`,"spec":{"replicas":1}`, `,"spec":{"replicas":2,"minReadySeconds":7}`}
	for i := range people {
		for j := range objects {
			scaler := target{"apps", "deployments", "Deployment", fmt.Sprint("web-", j), fmt.Sprint("scaler-", i)}
			m.steady = append(m.steady, scaler.reviews("scale", granularPath, always(sender.Allowed), none, replicas)...)
			m.steady = append(m.steady, scaler.reviews("pause", granularPath, always(sender.Denied), none, pause)...)
			m.steady = append(m.steady, scaler.reviews("scale and more", granularPath, always(sender.Denied), none, both)...)
			m.questions = append(m.questions, scaler.question("patch", always(sender.Allowed)), scaler.question("update", always(sender.Allowed)), scaler.question("delete", always(sender.Denied)))
			keeper := target{"", "configmaps", "ConfigMap", fmt.Sprint("map-", j), fmt.Sprint("keeper-", i)}
			m.steady = append(m.steady, keeper.reviews("own datum", granularPath, always(sender.Allowed), none, edit{`,"data":{"mine":"a","other":"b"}`, `,"data":{"mine":"c","other":"b"}`})...)
			m.steady = append(m.steady, keeper.reviews("other datum", granularPath, always(sender.Denied), none, edit{`,"data":{"mine":"a","other":"b"}`, `,"data":{"mine":"a","other":"c"}`})...)
			m.questions = append(m.questions, keeper.question("patch", always(sender.Allowed)))
			editor := target{"", "secrets", "Secret", fmt.Sprint("secret-", j), fmt.Sprint("editor-", i)}
			m.steady = append(m.steady, editor.reviews("free label", uncoveredPath, always(sender.Allowed), edit{`,"labels":{"a":"b"}`, `,"labels":{"a":"c"}`}, none)...)
			m.steady = append(m.steady, editor.reviews("guarded label", uncoveredPath, always(sender.Denied), edit{`,"labels":{"guarded.example.com/a":"b"}`, `,"labels":{"guarded.example.com/a":"c"}`}, none)...)
			mover := target{"apps", "deployments", "Deployment", fmt.Sprint("web-", j), fmt.Sprint("editor-", i)}
			m.changing = append(m.changing, mover.reviews("moving label", uncoveredPath, m.moving, edit{`,"labels":{"moving.example.com/a":"b"}`, `,"labels":{"moving.example.com/a":"c"}`}, none)...)
		}
	}
	for j := range objects {
		taker := target{"apps", "deployments", "Deployment", fmt.Sprint("web-", j), "taker"}
		stranger := taker
		stranger.user = "nobody"
		for range people { // As frequent as the others.
			m.changing = append(m.changing, taker.reviews("scale", granularPath, m.scale, none, replicas)...)
			m.changing = append(m.changing, taker.reviews("pause", granularPath, m.scaleDenied, none, pause)...)
			m.questions = append(m.questions, taker.question("patch", m.marker), stranger.question("patch", always(sender.Denied)))
			pauser := taker
			pauser.user = "pauser"
			m.changing = append(m.changing, pauser.reviews("pause", granularPath, m.paused, none, pause)...)
			m.steady = append(m.steady, pauser.reviews("scale", granularPath, always(sender.Denied), none, replicas)...)
			gadget := target{"soak.example.com", "gadgets", "Gadget", fmt.Sprint("gadget-", j), "maker"}
			size := edit{`,"spec":{"size":1}`, `,"spec":{"size":2}`}
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
