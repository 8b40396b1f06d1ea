package review

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// catalogue is a compiled schema in the form of GET /permissions.
type catalogue struct {
	schema *schema.Schema
	kinds  []kindEntry
	// whole is the complete catalogue as JSON.
	whole []byte
}

// kindEntry is one version of a kind. Its JSON is a contract: names do not change, and lists are never null.
type kindEntry struct {
	Group   string      `json:"group"`
	Version string      `json:"version"`
	Kind    string      `json:"kind"`
	Verbs   []verbEntry `json:"verbs"`
	// Truncated means that the kind has more paths than are listed.
	Truncated bool `json:"truncated,omitempty"`
}

// maxPlaces is the maximum number of paths of one kind that are listed. The largest built-in kind has some hundreds. The schema of
// an aggregated API server may be recursive without bound.
const maxPlaces = 20_000

// verbEntry is a verb and the fields that it is needed for.
type verbEntry struct {
	// Verb has the parameter's name in place of a value, as in the reference of verbs: granular:image(containerName).
	Verb string `json:"verb"`
	// Parameter is the name of the parameter, "" if the verb takes none.
	Parameter string `json:"parameter"`
	// Uncovered means that no verb above this one covers these paths, and that the generic permission does not either, be it for
	// some values only. UncoveredPermissionSets are not included, because they depend on the request.
	Uncovered bool `json:"uncovered"`
	// Powers are the powers that the verb gives beyond its fields, including those of all verbs that it covers.
	Powers []schema.Power `json:"powers,omitempty"`
	// Paths are sorted patterns; "" is the whole object.
	Paths []string `json:"paths"`
}

// newCatalogue lists a schema: kinds by group and name, new versions before old ones, verbs by name.
func newCatalogue(s *schema.Schema) (*catalogue, error) {
	compiled := s.Kinds()
	slices.SortFunc(compiled, func(a, b *schema.Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	c := &catalogue{schema: s, kinds: make([]kindEntry, 0, len(compiled))}
	for _, k := range compiled {
		listed, whole := verbsOf(k)
		c.kinds = append(c.kinds, kindEntry{Group: k.Group, Version: k.Version, Kind: k.Kind, Verbs: listed, Truncated: !whole})
	}
	var err error
	c.whole, err = render(c.kinds)
	return c, err
}

// verbsOf returns the verbs of a kind. whole is false if the kind has more than maxPlaces paths.
func verbsOf(k *schema.Kind) (listed []verbEntry, whole bool) {
	type key struct {
		verb, parameter string
		uncovered       bool
		powers          string
	}
	powers := map[key][]schema.Power{}
	paths := map[key][]string{}
	whole = k.Guarded(maxPlaces, func(p fieldpath.Pattern, n *schema.Node) {
		for _, guard := range n.Permissions() {
			if guard.BarsOnly() {
				continue
			}
			at := key{guard.Describe(), guard.ParameterName(), guard.MayBar(), fmt.Sprint(n.Worth(guard))}
			powers[at] = n.Worth(guard)
			paths[at] = append(paths[at], p.String())
		}
	})
	listed = make([]verbEntry, 0, len(paths))
	for at, list := range paths {
		slices.Sort(list)
		listed = append(listed, verbEntry{Verb: at.verb, Parameter: at.parameter, Uncovered: at.uncovered, Powers: powers[at], Paths: slices.Compact(list)})
	}
	slices.SortFunc(listed, func(a, b verbEntry) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Paths[0], b.Paths[0]))
	})
	return listed, whole
}
