package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// This file draws the documents and the users of the laws, compiles the one, writes objects, and asks for decisions.

// lawEntry is an entry of a drawn document.
type lawEntry struct {
	path, verb, more string
	// ofPods is the same path in Pods, empty outside a template.
	ofPods string
	// isOfEveryName means that the path ends with all names of a struct.
	isOfEveryName bool
}

// lawDocument is a drawn PermissionSchema, or an UncoveredPermissionSet.
type lawDocument struct {
	kind    *lawKind
	version string
	entries []lawEntry
	// set is the text of a set, empty for a PermissionSchema.
	set string
	// rank orders the documents where a law reorders them.
	rank int
}

func (d lawDocument) text(name string) string {
	if d.set != "" {
		return d.set
	}
	var entries []string
	for _, e := range d.entries {
		entries = append(entries, fmt.Sprintf("{path: '%s', verb: %s%s}", e.path, e.verb, e.more))
	}
	out := permissionSchema(name, d.kind.gvk.Group, d.kind.gvk.Kind, strings.Join(entries, ", "))
	if d.version != "" {
		out = strings.Replace(out, "permissions:", "versions: ["+d.version+"], permissions:", 1)
	}
	return out
}

func texts(documents ...lawDocument) []string {
	var out []string
	for i, d := range documents {
		out = append(out, d.text(fmt.Sprintf("d%d", i)))
	}
	return out
}

var lawConditions = []string{"self == 'a'", "oldSelf == 'a'", "self == null", "oldSelf != self", "false", "self != null && oldSelf != null"}

// declaresScalar reports whether the path of a place leads to a scalar that the kind declares.
func (k *lawKind) declaresScalar(place, path string) bool {
	p, err := fieldpath.ParsePattern(path)
	if err != nil || len(p) != 1+strings.Count(place, "|") || slices.Contains(derivedPaths, path) {
		return false
	}
	under := func(above string) bool { return strings.HasPrefix(place, above) }
	if k.isVault() {
		return strings.ToLower(place) == place && !under("spec|free")
	}
	return !k.isFree || !under(k.template)
}

// drawEntry draws an entry about a kind.
func drawEntry(r *rand.Rand, k *lawKind, prefix string, places []string, conditions bool) lawEntry {
	out := lawEntry{verb: fmt.Sprintf("example.com/%s%c", prefix, 'a'+rune(r.IntN(4)))}
	place := places[r.IntN(len(places))]
	if k.gvk.Kind == "ControllerRevision" {
		place = k.own[r.IntN(len(k.own))] // Nothing is known of its template, so that it has no paths.
	}
	if respelled := respell(r, place); (k.isVault() || k.isFree) && k.definitions != nil && r.IntN(4) == 0 {
		place = respelled
	}
	out.path = drawPath(r, place)
	if template := strings.ReplaceAll(k.template, "|", "."); k.template != "" && strings.HasPrefix(out.path, "."+template) {
		out.ofPods = strings.TrimPrefix(out.path, "."+template)
	}
	isStruct := slices.Contains([]string{".spec", ".spec.free", ".spec.template", ".spec.template.spec"}, out.path)
	switch {
	case k == lawPod && r.IntN(3) == 0:
		out.path = derivedPaths[r.IntN(len(derivedPaths))]
	case isStruct && k.definitions != nil && r.IntN(4) == 0:
		out.path, out.isOfEveryName = out.path+"[*]", true
	}
	switch n := r.IntN(4); {
	case n < 2:
		out.more = ", excluded: true"
	case n == 2 && conditions && k.declaresScalar(place, out.path):
		out.more = fmt.Sprintf(", excludedWhen: \"%s\"", lawConditions[r.IntN(len(lawConditions))])
	}
	return out
}

// drawDocument draws a document about one kind. Its verbs have names with the prefix.
func drawDocument(r *rand.Rand, k *lawKind, prefix string, places []string, conditions bool) lawDocument {
	out := lawDocument{kind: k, rank: r.IntN(1000)}
	if r.IntN(2) == 0 {
		out.version = k.versions[r.IntN(len(k.versions))]
	}
	for range 1 + r.IntN(3) {
		if e := drawEntry(r, k, prefix, places, conditions); !slices.ContainsFunc(out.entries, func(other lawEntry) bool { return other.path == e.path }) {
			out.entries = append(out.entries, e)
		}
	}
	return out
}

// drawDocuments draws documents about a kind, and about Pods if the kind makes some. Documents often speak of one place.
func drawDocuments(r *rand.Rand, k *lawKind, places []string, conditions bool) []lawDocument {
	var out []lawDocument
	for range 1 + r.IntN(3) {
		about, in := k, places
		if k.makesPods() && r.IntN(2) == 0 {
			about, in = lawPod, placesOfPods(k, places)
		}
		d := drawDocument(r, about, "v", in, conditions)
		if len(out) > 0 && r.IntN(2) == 0 && out[0].kind == about {
			d.entries = d.entries[:1]
			first := out[0].entries[0]
			first.verb, first.more = d.entries[0].verb, d.entries[0].more
			d.entries[0] = first
		}
		out = append(out, d)
	}
	return out
}

// placesOfPods returns those of the places that are in the template, as places of Pods. If there are none, it returns the name of the node.
func placesOfPods(k *lawKind, places []string) []string {
	var out []string
	for _, p := range places {
		if p == k.in(strings.TrimPrefix(p, k.in(""))) && !slices.Contains(k.own, p) {
			out = append(out, strings.TrimPrefix(p, k.in("")))
		}
	}
	if out == nil {
		return []string{"spec|nodeName"}
	}
	return out
}

var lawSetVerbs = []string{"image", "image(web)", "label(example.com)", "labels", "templateLabel", "annotation(example.com)", "specification", "containers", "container(web)", "nodeAssignment", "*", "example.com/va", "example.com/vb"}

// drawSet draws a set about the resource of a kind.
func drawSet(r *rand.Rand, k *lawKind) lawDocument {
	verb := lawSetVerbs[r.IntN(len(lawSetVerbs))]
	return lawDocument{kind: k, rank: r.IntN(1000), set: fmt.Sprintf("apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\n"+
		"spec: {uncoveredPermissions: ['granular:%s'], resources: [{apiGroups: ['%s'], resources: [%s]}]}\n", verb, k.gvk.Group, k.resource)}
}

// lawUser is a user of the laws. A verb that held does not name is held by chance, which is always the same, if it has the prefix of one that may be.
type lawUser struct {
	seed uint64
	may  string
	held map[string]bool
}

func drawUser(r *rand.Rand, may string) lawUser {
	return lawUser{seed: r.Uint64(), may: may, held: map[string]bool{"update": r.IntN(2) == 0, "patch": false, "granular": r.IntN(4) > 0}}
}

// holds reports whether a user holds a verb, and notes it for the report of a failure.
func (u lawUser) holds(verb string) bool {
	held, known := u.held[verb]
	if !known && u.may != "" {
		held = strings.HasPrefix(verb, u.may) && chance(u.seed, verb)%3 == 0
		u.held[verb] = held
	}
	return held
}

// Authorize implements fieldperm.Authorizer.
func (u lawUser) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	if u.holds(verb) {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow}, nil
	}
	return fieldperm.AuthorizerDecision{}, nil
}

func (u lawUser) String() string {
	var out []string
	for _, verb := range slices.Sorted(maps.Keys(u.held)) {
		if u.held[verb] {
			out = append(out, verb)
		}
	}
	return strings.Join(out, " ")
}

// chance returns a number that a seed and a name always have.
func chance(seed uint64, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, seed, name)
	return rand.New(rand.NewPCG(seed, h.Sum64())).Uint64()
}

// mayMake reports whether a user may make a change. There is no limit of checks: with one more verb a user may need one more check.
func mayMake(t *testing.T, user fieldperm.Authorizer, required []fieldperm.Requirement) bool {
	t.Helper()
	decision, err := fieldperm.Decide(t.Context(), user, fieldperm.Review{Generic: []string{"update", "patch"}, Requirements: required}, fieldperm.Limits{MaxChecks: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return decision.Allowed
}

// lawWorld compiles documents with the kinds of the laws.
type lawWorld struct {
	topology  compile.Topology
	catalogue []compile.PermissionDocument
	// definitions are those of the custom resources by their text.
	definitions map[string]compile.Documents
	// compiled are the schemas of this round.
	compiled map[string]*schema.Schema
}

func newLawWorld(t *testing.T) *lawWorld {
	t.Helper()
	w := &lawWorld{topology: workloadKinds(t), definitions: map[string]compile.Documents{}}
	maps.DeleteFunc(w.topology.Kinds, func(kind runtimeschema.GroupVersionKind, _ string) bool {
		return !slices.ContainsFunc(lawKinds, func(k *lawKind) bool { return k.gvk == kind })
	})
	var err error
	if w.catalogue, err = Catalogue(false); err != nil {
		t.Fatal(err)
	}
	return w
}

// scope says which kinds are compiled, and how.
type scope struct {
	kind       *lawKind
	definition int
	// isWhole means all kinds, in place of the one and Pods, which compile faster.
	isWhole, traced bool
}

// compile returns nil if the documents have a fault.
func (w *lawWorld) compile(t *testing.T, s scope, documents ...string) *schema.Schema {
	t.Helper()
	key := fmt.Sprint(s.isWhole, s.traced, strings.Join(documents, ""))
	if known, has := w.compiled[key]; has {
		return known
	}
	topology := w.topology
	topology.Kinds = maps.Clone(w.topology.Kinds)
	maps.DeleteFunc(topology.Kinds, func(kind runtimeschema.GroupVersionKind, _ string) bool {
		return !s.isWhole && kind != s.kind.gvk && (kind != lawPod.gvk || !s.kind.makesPods())
	})
	docs := compile.Documents{Topologies: []compile.Topology{topology}, Permissions: w.catalogue, Traced: s.traced}
	for _, k := range lawKinds {
		if len(k.definitions) > 0 && k != lawVaults[1] && (s.isWhole || k.gvk.Kind == s.kind.gvk.Kind) {
			docs = docs.Append(w.decode(t, k.definitions[s.definition%len(k.definitions)]))
		}
	}
	for i, text := range documents {
		more, errs := Decode(fmt.Sprintf("d%d", i), []byte(text))
		if len(errs) > 0 {
			t.Fatal(errs, text)
		}
		docs = docs.Append(more)
	}
	out, _, errs := schemacheck.Compile(docs)
	if len(errs) > 0 {
		out = nil
	}
	w.compiled[key] = out
	return out
}

// decode decodes a definition once.
func (w *lawWorld) decode(t *testing.T, definition string) compile.Documents {
	t.Helper()
	out, has := w.definitions[definition]
	if !has {
		var errs []error
		if out, errs = Decode("definition", []byte(definition)); len(errs) > 0 {
			t.Fatal(errs)
		}
		w.definitions[definition] = out
	}
	return out
}

// order is the order of the members of objects and of the items of lists. Zero sorts them by name.
type order struct{ members, items uint64 }

// json returns the object.
func (v values) json(o order) []byte {
	root := map[string]any{}
	for place, value := range v {
		at, steps := root, strings.Split(place, "|")
		for i, step := range steps[:len(steps)-1] {
			next, _ := at[step].(map[string]any)
			if next == nil {
				next = map[string]any{}
				if strings.HasPrefix(step, "#") {
					next["name"] = steps[i][1:]
				}
				at[step] = next
			}
			at = next
		}
		at[steps[len(steps)-1]] = value
	}
	return jsonOf(root, o)
}

func jsonOf(v any, o order) []byte {
	m, is := v.(map[string]any)
	if !is {
		out, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return out
	}
	names := slices.Sorted(maps.Keys(m))
	isList := len(names) > 0 && strings.HasPrefix(names[0], "#")
	seed := o.members
	if isList {
		seed = o.items
	}
	if seed != 0 {
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(chance(seed, a), chance(seed, b)) })
	}
	var parts []string
	for _, name := range names {
		part := string(jsonOf(m[name], o))
		if !isList {
			part = fmt.Sprintf("%q:%s", name, part)
		}
		parts = append(parts, part)
	}
	if isList {
		return []byte("[" + strings.Join(parts, ",") + "]")
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}
