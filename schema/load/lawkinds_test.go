package load

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// The laws are about random documents and random pairs of objects. This file has the kinds, and where they have values.

// lawKind is a kind of the laws.
type lawKind struct {
	gvk      runtimeschema.GroupVersionKind
	resource string
	// template is the place of the template that Pods are made from, empty for Pods themselves.
	template string
	// isFree means that the API server does not know all fields of the template.
	isFree bool
	// own are the places of values outside the template.
	own []string
	// definitions define a custom resource, each in another way. A case has one of them.
	definitions []string
	// versions are those that documents may name.
	versions []string
}

// A place is the path of a value, with | between the steps. A step that begins with # is the item of a list with that name.
var (
	podPlaces = slices.Concat(
		below("metadata|labels", "app", "example.com/x", "example.com/y", "other.io/x"),
		below("metadata|annotations", "example.com/x", "example.com/y", appArmorPrefix+"web", appArmorPrefix+"init", "kubectl.kubernetes.io/restartedAt"),
		below("spec", "nodeName", "hostNetwork", "serviceAccountName", "priorityClassName", "hostname", "nodeSelector|disk", "nodeSelector|example.com/x", "nodeSelector|example.com/y"),
		below("spec|containers|#web", partsOfContainers...), below("spec|containers|#side", partsOfContainers...), below("spec|initContainers|#init", partsOfContainers...),
		below("spec|volumes", "#data|hostPath|path", "#keys|secret|secretName"), below("spec|imagePullSecrets", "#own|name"),
	)
	partsOfContainers = []string{"image", "resources|limits|cpu", "resources|limits|example.com/gpu", "resources|requests|cpu", "resources|requests|example.com/gpu", "securityContext|privileged"}

	// derivedPaths are paths of Pods that the API server writes from others.
	derivedPaths = []string{
		`.metadata.labels["topology.kubernetes.io/zone"]`, ".spec.serviceAccount", ".spec.priority", ".spec.volumes", ".spec.imagePullSecrets", ".spec.tolerations", ".spec.resources",
		`.spec.resources.requests["cpu"]`, ".spec.containers[*].securityContext.appArmorProfile", ".spec.initContainers[*].securityContext.appArmorProfile", ".spec.containers[*].resources.requests",
	}

	vaultPlaces = slices.Concat(
		below("spec", "secret", "other", "Secret", "SECRET", "plain|x", "plain|a/x", "plain|a/y", "Plain|a/x", "items|x|secret", "items|x|deep|secret", "items|y|secret"),
		below("spec", "items|a/x|secret", "items|a/x|deep|secret", "Items|x|secret", "free|secret", "free|Secret"), below("metadata|labels", "example.com/x", "example.com/y"),
	)
)

const appArmorPrefix = "container.apparmor.security.beta.kubernetes.io/"

// below returns places below another one.
func below(place string, more ...string) []string {
	var out []string
	for _, m := range more {
		out = append(out, place+"|"+m)
	}
	return out
}

var (
	lawPod    = &lawKind{gvk: gvk("", "v1", "Pod"), resource: "pods", versions: []string{"v1"}}
	templates = []*lawKind{
		{gvk: gvk("apps", "v1", "Deployment"), resource: "deployments", template: "spec|template", own: []string{"spec|replicas", "metadata|labels|example.com/x"}, versions: []string{"v1"}},
		{gvk: gvk("batch", "v1", "CronJob"), resource: "cronjobs", template: "spec|jobTemplate|spec|template", own: []string{"spec|suspend"}, versions: []string{"v1"}},
		{gvk: gvk("apps", "v1", "ControllerRevision"), resource: "controllerrevisions", template: "data|spec|template", isFree: true, own: []string{"revision"}, versions: []string{"v1"}},
		{gvk: gvk("example.com", "v1", "Runner"), resource: "runners", template: "spec|template", isFree: true, own: []string{"spec|name"}, definitions: runners(runner), versions: []string{"v1"}},
		{gvk: gvk("example.com", "v1", "Fleet"), resource: "fleets", template: "spec|templates|a/x", isFree: true, own: []string{"spec|name"}, definitions: runners(fleet), versions: []string{"v1"}},
	}
	lawVaults = []*lawKind{vaultOf("v1"), vaultOf("v2")}
	lawKinds  = slices.Concat([]*lawKind{lawPod}, templates, lawVaults)
)

func vaultOf(version string) *lawKind {
	out := &lawKind{gvk: gvk("example.com", version, "Vault"), resource: "vaults", own: vaultPlaces, versions: []string{"v1", "v2"}}
	for _, versions := range [][]string{{"v1", "v2"}, {"v2", "v1", "v3"}} {
		out.definitions = append(out.definitions, strings.ReplaceAll(vaults(versions...), "spec: {type: object, ", "spec: {type: object, "+keepUnknown+", "))
	}
	return out
}

// fleet is a definition with a map of templates.
func fleet(template string) string {
	return strings.NewReplacer("runner", "fleet", "Runner", "Fleet", "template: "+template, "templates: {type: object, additionalProperties: "+template+"}").Replace(runner(template))
}

// runners returns definitions of which the API server knows some fields of the template, or none.
func runners(definition func(template string) string) []string {
	const (
		keys      = "properties: {app: {type: string}, example.com/x: {type: string}}"
		container = "{type: object, " + keepUnknown + ", required: [name], properties: {name: {type: string}, image: {type: string}, securityContext: {type: object, " + keepUnknown + "}}}"
		some      = keepUnknown + ", properties: {metadata: {type: object, properties: {labels: {type: object, " + keepUnknown + ", " + keys + "}}}, " +
			"spec: {type: object, " + keepUnknown + ", properties: {nodeName: {type: string}, nodeSelector: {type: object, " + keepUnknown + ", properties: {disk: {type: string}, example.com/x: {type: string}}}, " +
			"containers: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: " + container + "}}}}"
	)
	entry, kind := "{path: .spec.template, include: podTemplate}", "Runner"
	if !strings.Contains(definition(""), "kind: Runner") {
		entry, kind = "{path: '.spec.templates[*]', include: podTemplate}", "Fleet"
	}
	return []string{
		definition("{type: object, " + withKey + ", " + some + "}"),
		definition("{type: object, " + withKey + ", " + keepUnknown + "}"),
		definition("{type: object, "+some+"}") + "---\n" + permissionSchema("include", "example.com", kind, entry),
	}
}

func (k *lawKind) isVault() bool { return k.gvk.Kind == "Vault" }

// makesPods reports whether the kind has Pods or a template of them.
func (k *lawKind) makesPods() bool { return !k.isVault() }

// in returns a place of Pods as a place of the kind.
func (k *lawKind) in(ofPods string) string {
	if k.template == "" {
		return ofPods
	}
	return k.template + "|" + ofPods
}

// places returns the places of all values of the kind.
func (k *lawKind) places() []string {
	out := slices.Clone(k.own)
	if k.makesPods() {
		for _, p := range podPlaces {
			out = append(out, k.in(p))
		}
	}
	return out
}

// isKey reports whether a step of a place is the key of a map.
func isKey(steps []string, i int) bool {
	return i > 0 && slices.Contains([]string{"labels", "annotations", "nodeselector", "limits", "requests", "plain", "items", "templates"}, strings.ToLower(steps[i-1]))
}

// drawPath draws the path of an entry for a place, or for what the place is in. A key may stand for its prefix or for all keys.
func drawPath(r *rand.Rand, place string) string {
	steps, out := strings.Split(place, "|"), ""
	for i, step := range steps[:max(1+r.IntN(len(steps)), 1+r.IntN(len(steps)))] {
		switch prefix, _, has := strings.Cut(step, "/"); {
		case strings.HasPrefix(step, "#"):
			out += "[*]"
		case !isKey(steps, i):
			out += "." + step
		case r.IntN(4) == 0:
			out += "[*]"
		case has && r.IntN(2) == 0:
			out += `["` + prefix + `/"]`
		default:
			out += `["` + step + `"]`
		}
	}
	return out
}

// respell draws another spelling of the names of fields in a place. Keys of maps keep theirs.
func respell(r *rand.Rand, place string) string {
	steps := strings.Split(place, "|")
	was := slices.Clone(steps)
	for i, step := range was {
		if isKey(was, i) || step[0] == '#' || r.IntN(6) > 0 {
			continue
		}
		// The Kelvin sign and the long s are the same letters as k and s to a reader that ignores case.
		steps[i] = []string{strings.ToUpper(step[:1]) + step[1:], strings.ToUpper(step), strings.NewReplacer("k", "K", "s", "ſ").Replace(step)}[r.IntN(3)]
	}
	return strings.Join(steps, "|")
}

// values are the values of an object by place.
type values map[string]any

func drawLeaf(r *rand.Rand, place string) any {
	switch place[strings.LastIndexByte(place, '|')+1:] {
	case "hostNetwork", "privileged", "suspend":
		return r.IntN(2) == 0
	case "replicas", "revision":
		return r.IntN(4)
	}
	return string('a' + rune(r.IntN(3)))
}

// drawPair draws two objects, which differ in a few of the places.
func drawPair(r *rand.Rand, places []string) (old, new values) {
	old = values{}
	for _, p := range places {
		if r.IntN(2) == 0 {
			old[p] = drawLeaf(r, p)
		}
	}
	new = maps.Clone(old)
	for range 1 + r.IntN(4) {
		if p := places[r.IntN(len(places))]; r.IntN(3) == 0 {
			delete(new, p)
		} else {
			new[p] = drawLeaf(r, p)
		}
	}
	return old, new
}

// keepItems gives all objects the items that one of them has, so that no item is added or removed.
func keepItems(objects ...values) {
	items := values{}
	for _, v := range objects {
		for place := range v {
			steps := strings.Split(place, "|")
			if i := slices.IndexFunc(steps, func(s string) bool { return s[0] == '#' }); i >= 0 {
				items[strings.Join(append(slices.Clone(steps[:i+1]), "name"), "|")] = steps[i][1:]
			}
		}
	}
	for _, v := range objects {
		maps.Copy(v, items)
	}
}
