package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/exact"
	"github.com/fieldperm/fieldperm/verbs"
)

// set is an UncoveredPermissionSet in the form that the oracle uses.
type set struct {
	object    *v1alpha1.UncoveredPermissionSet
	verbs     []verbs.Verb
	resources []Place // of main resources; none for all
	condition *condition
}

// about reports whether the verbs of the set are barriers on a resource for a request.
func (s *set) about(p Place, r *Request) bool {
	if !s.object.Spec.Denies() || len(s.resources) > 0 && !slices.Contains(s.resources, p.Main()) {
		return false
	}
	return s.condition == nil || s.condition.holds(r)
}

// condition is a match condition in CEL, and the same condition in Go.
type condition struct {
	expression string
	holds      func(*Request) bool
}

var conditions = []*condition{
	{`request.operation == "UPDATE"`, func(r *Request) bool { return !r.creates }},
	{`request.userInfo.username.endsWith("3")`, func(r *Request) bool { return strings.HasSuffix(r.User.Name, "3") }},
	{`!has(request.subResource) || request.subResource != "status"`, func(r *Request) bool { return r.Endpoint.Sub != "status" }},
	{`request.dryRun != true`, func(r *Request) bool { return !r.DryRun }},
	// A condition that fails counts as true.
	{`request.nope == "x"`, func(*Request) bool { return true }},
}

// guardedKind is a kind with fields that are drawn for PermissionSchemas.
type guardedKind struct {
	group, resource, kind string
	versions              []string
	paths                 []string
	// alone says that not every version has the paths, so that a schema is for one version only.
	alone bool
	// hidden are the paths that another version does not have.
	hidden []string
}

// guarded are the kinds that schemas and sets are drawn for.
var guarded = []guardedKind{
	{"", "pods", "Pod", []string{"v1"}, []string{`.metadata.annotations["example.com/note"]`, `.metadata.labels["tier"]`, ".spec.nodeName", ".spec.containers[*].image", ".spec.tolerations", ".spec.tolerations[*].key", ".spec.containers[*].command", ".status.phase"}, false, nil},
	{"", "events", "Event", []string{"v1"}, []string{".reason", ".message", ".involvedObject.name"}, false, nil},
	{"events.k8s.io", "events", "Event", []string{"v1"}, []string{".reason", ".note", ".regarding.name"}, false, nil},
	{"", "configmaps", "ConfigMap", []string{"v1"}, []string{".data[*]", ".immutable", `.data["a"]`, `.metadata.labels["tier"]`, `.metadata.annotations["example.com/note"]`}, false, nil},
	{"", "secrets", "Secret", []string{"v1"}, []string{".data[*]", ".type"}, false, nil},
	{"", "namespaces", "Namespace", []string{"v1"}, []string{`.metadata.labels["pod-security.kubernetes.io/enforce"]`, ".spec.finalizers"}, false, nil},
	{"", "nodes", "Node", []string{"v1"}, []string{".spec.taints", ".spec.taints[*].effect", ".spec.unschedulable", ".status.addresses"}, false, nil},
	{"", "services", "Service", []string{"v1"}, []string{".spec.externalIPs", ".spec.selector", ".spec.ports"}, false, nil},
	{"apps", "deployments", "Deployment", []string{"v1"}, []string{".spec.replicas", ".spec.template.spec.containers[*].image", ".spec.paused", ".metadata.annotations", `.metadata.labels["tier"]`, ".spec.template.spec.serviceAccountName", ".spec.template.spec.tolerations[*].key"}, false, nil},
	{"apps", "statefulsets", "StatefulSet", []string{"v1"}, []string{".spec.replicas", ".spec.template"}, false, nil},
	{"apps", "daemonsets", "DaemonSet", []string{"v1"}, []string{".spec.template.spec.containers[*].image"}, false, nil},
	{"autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", []string{"v1", "v2"}, []string{".spec.maxReplicas", ".spec.minReplicas", ".spec.scaleTargetRef.name"}, false, nil},
	{"autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", []string{"v2"}, []string{".spec.metrics", ".spec.behavior"}, true, []string{".spec.metrics", ".spec.behavior"}},
	{"batch", "jobs", "Job", []string{"v1"}, []string{".spec.suspend", ".spec.parallelism"}, false, nil},
	{"networking.k8s.io", "ingresses", "Ingress", []string{"v1"}, []string{".spec.tls", ".spec.rules", ".spec.rules[*].host", ".spec.tls[*].secretName"}, false, nil},
	{"certificates.k8s.io", "certificatesigningrequests", "CertificateSigningRequest", []string{"v1"}, []string{".status.conditions", ".status.certificate"}, false, nil},
	{"rbac.authorization.k8s.io", "clusterroles", "ClusterRole", []string{"v1"}, []string{".rules", ".rules[*].verbs"}, false, nil},
	{"discovery.k8s.io", "endpointslices", "EndpointSlice", []string{"v1"}, []string{".endpoints", ".endpoints[*].addresses"}, false, nil},
	{"storage.k8s.io", "storageclasses", "StorageClass", []string{"v1"}, []string{".allowVolumeExpansion"}, false, nil},
}

// floor are the resources that no barrier reaches (W4). The control plane needs them to keep running.
var floor = map[string][]string{
	"coordination.k8s.io":          {"leases", "leasecandidates"},
	"authentication.k8s.io":        {"tokenreviews", "selfsubjectreviews"},
	"authorization.k8s.io":         {"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"},
	"fieldperm.dev":                {"conditionalpolicies/status", "permissionschemas/status", "uncoveredpermissionsets/status"},
	"admissionregistration.k8s.io": {"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
}

// onFloor reports whether requests to an endpoint are on the floor, where no barrier reaches.
func onFloor(p Place) bool {
	return slices.Contains(floor[p.Group], p.Resource) || slices.Contains(floor[p.Group], p.Name())
}

// toGuard returns the kinds for which schemas and sets are drawn: the kinds of the resources that the run writes.
func (w *world) toGuard() []guardedKind {
	out := slices.DeleteFunc(slices.Clone(guarded), func(g guardedKind) bool {
		return len(w.config.Only) > 0 && !slices.Contains(w.config.Only, g.resource)
	})
	for _, c := range w.definitions {
		// Use mostly the stored version, so that fields that other versions do not keep are guarded.
		v := c.storage()
		if paths := pathsOf("", v.schema, isAny); len(paths) > 0 {
			common := shared(c.versions, isAny)
			hidden := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return slices.Contains(common, p) })
			out = append(out, guardedKind{c.group, "things", c.kind, []string{v.name}, paths, true, hidden})
		}
	}
	if len(out) == 0 {
		return guarded
	}
	return out
}

// guards are the schemas and sets of an epoch.
type guards struct {
	schemas []*v1alpha1.PermissionSchema
	sets    []*set
}

// guards draws the schemas and sets. The names of the objects contain the epoch.
func (w *world) guards(d *draw) (*guards, error) {
	out := &guards{}
	used := map[string]bool{}
	for i := range 3 {
		all := w.toGuard()
		g := pick(d, all)
		// Fields that one version shows and another version hides are guarded more often.
		if hiding := slices.DeleteFunc(all, func(g guardedKind) bool { return len(g.hidden) == 0 }); len(hiding) > 0 && d.oneIn(2) {
			g = pick(d, hiding)
		}
		if used[g.group+g.kind] {
			continue
		}
		used[g.group+g.kind] = true
		one := &v1alpha1.PermissionSchema{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e%d-%d", w.epoch, i)}, Spec: v1alpha1.PermissionSchemaSpec{Group: g.group, Kind: g.kind}}
		one.APIVersion, one.Kind = v1alpha1.GroupVersion.String(), "PermissionSchema"
		if g.alone || d.oneIn(3) {
			one.Spec.Versions = []string{pick(d, g.versions)}
		}
		for j, path := range append(d.some(g.paths, 1+d.IntN(3)), d.some(g.hidden, d.IntN(3))...) {
			if !slices.ContainsFunc(one.Spec.Permissions, func(p v1alpha1.FieldPermission) bool { return p.Path == path }) {
				// A write needs the verbs of the version through which it is made. Only barriers hold across all versions.
				bars := !d.oneIn(3) || len(one.Spec.Versions) > 0 && !slices.Contains(g.hidden, path)
				one.Spec.Permissions = append(one.Spec.Permissions, v1alpha1.FieldPermission{Path: path, Verb: fmt.Sprintf("oracle.test/p%d", j), Excluded: bars})
			}
		}
		out.schemas = append(out.schemas, one)
	}
	// Sometimes draw only a few sets: if everything is guarded, no write passes.
	for i := range 1 + d.IntN(4) {
		s, err := w.set(d, i)
		if err != nil {
			return nil, err
		}
		out.sets = append(out.sets, s)
	}
	return out, nil
}

func (w *world) set(d *draw, number int) (*set, error) {
	g := pick(d, w.toGuard())
	object := &v1alpha1.UncoveredPermissionSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e%d-set-%d", w.epoch, number)}}
	object.APIVersion, object.Kind = v1alpha1.GroupVersion.String(), "UncoveredPermissionSet"
	out := &set{object: object}
	var known []string
	for _, version := range g.versions {
		known = append(known, w.verbsOfKind(runtimeschema.GroupVersionKind{Group: g.group, Version: version, Kind: g.kind})...)
	}
	for v := range w.learned[Place{Group: g.group, Resource: g.resource}] {
		known = append(known, v)
	}
	slices.Sort(known)
	for _, text := range slices.Compact(slices.Sorted(slices.Values(newVocabulary(slices.Compact(known)).some(d, 1+d.IntN(5))))) {
		v, err := verbs.Parse(text)
		if err != nil {
			return nil, err
		}
		out.verbs = append(out.verbs, v)
		object.Spec.UncoveredPermissions = append(object.Spec.UncoveredPermissions, text)
	}
	if !d.oneIn(12) {
		for _, r := range []int{0, d.IntN(len(guarded))}[:1+d.IntN(2)] {
			if r != 0 {
				g = guarded[r]
			}
			out.resources = append(out.resources, Place{Group: g.group, Resource: g.resource})
			object.Spec.Resources = append(object.Spec.Resources, v1alpha1.ResourceRule{APIGroups: []string{g.group}, Resources: []string{g.resource, g.resource + "/*"}[:1]})
		}
	}
	// Some sets let writes pass: no write may be refused because of them.
	if d.oneIn(10) {
		object.Spec.ValidationActions = []v1alpha1.ValidationAction{pick(d, []v1alpha1.ValidationAction{v1alpha1.ValidationWarn, v1alpha1.ValidationAudit})}
	}
	if d.oneIn(3) {
		out.condition = pick(d, conditions)
		object.Spec.MatchConditions = []v1alpha1.MatchCondition{{Name: "drawn", Expression: out.condition.expression}}
	}
	return out, nil
}

// describe lists the schemas and sets in force that may concern an endpoint, and its definition.
func (w *world) describe(e *Endpoint) []string {
	var out []string
	say := func(what string, v any) {
		if raw, err := json.Marshal(v); err == nil {
			out = append(out, what+" "+string(raw))
		}
	}
	if c := w.customs[e.Place.Main()]; c != nil {
		say("definition", c.object)
	}
	if w.inForce != nil {
		for _, one := range w.inForce.schemas {
			say("schema", one.Spec)
		}
		for _, one := range w.inForce.sets {
			say("set", one.object.Spec)
		}
	}
	return out
}

// documents are the schemas by which stored objects are judged.
func (w *world) documents(g *guards) compile.Documents {
	docs := w.built
	for _, c := range w.definitions {
		docs = docs.Append(c.docs)
	}
	if g == nil {
		return docs
	}
	for _, one := range g.schemas {
		more, errs := load.PermissionSchema(one.Name, one)
		if len(errs) == 0 {
			docs = docs.Append(more)
		}
	}
	return docs
}

func (w *world) compile(docs compile.Documents) error {
	stored, errs := exact.NewStored(docs)
	if len(errs) > 0 {
		return errs[0]
	}
	stored.Free = free
	w.stored = stored
	return nil
}
