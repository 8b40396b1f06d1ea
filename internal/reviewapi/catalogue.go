package reviewapi

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/schema"
)

// catalogue is a compiled schema as GET /permissions shows it.
type catalogue struct {
	schema *schema.Schema
	kinds  []kindEntry
	// whole is all of it, rendered.
	whole []byte
}

// kindEntry is a kind in one version. Its JSON is a contract: names do not change, lists are never null.
type kindEntry struct {
	Group   string      `json:"group"`
	Version string      `json:"version"`
	Kind    string      `json:"kind"`
	Verbs   []verbEntry `json:"verbs"`
	// Truncated says that the kind has more places than are listed.
	Truncated bool `json:"truncated,omitempty"`
}

// maxPlaces is at how many places of one kind is looked. The largest built-in kind has some hundreds; a
// schema of somebody else's API server may unfold without bound.
const maxPlaces = 20_000

// verbEntry is a verb and what it guards.
type verbEntry struct {
	// Verb has the parameter's name in place of a value, as the reference of verbs has: granular:image(containerName).
	Verb string `json:"verb"`
	// Parameter is that name, "" if the verb takes none.
	Parameter string `json:"parameter"`
	// Uncovered says that nothing above the verb counts at these paths, the generic permission neither, be
	// it for some values only. UncoveredPermissionSets are not counted: they depend on the request.
	Uncovered bool `json:"uncovered"`
	// Apart says that the verbs above do not count at these paths, but for granular:* and the generic permission.
	Apart bool `json:"apart,omitempty"`
	// Powers are what the verb is worth beyond its fields, those of all that it covers included.
	Powers []schema.Power `json:"powers,omitempty"`
	// Paths are sorted patterns; "" is the object as a whole.
	Paths []string `json:"paths"`
}

// newCatalogue lists a schema: kinds by group and name, new versions before old, verbs by name.
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

// verbsOf reports false where maxPlaces were not all.
func verbsOf(k *schema.Kind) (listed []verbEntry, whole bool) {
	type key struct {
		verb, parameter string
		uncovered       bool
		apart           bool
		powers          string
	}
	powers := map[key][]schema.Power{}
	paths := map[key][]string{}
	whole = k.Guarded(maxPlaces, func(p schema.Pattern, n *schema.Node) {
		for _, guard := range n.Permissions() {
			at := key{guard.Describe(), guard.ParameterName(), guard.MayBar(), guard.Apart(), fmt.Sprint(n.Worth(guard))}
			powers[at] = n.Worth(guard)
			paths[at] = append(paths[at], p.String())
		}
	})
	listed = make([]verbEntry, 0, len(paths))
	for at, list := range paths {
		slices.Sort(list)
		listed = append(listed, verbEntry{Verb: at.verb, Parameter: at.parameter, Uncovered: at.uncovered, Apart: at.apart, Powers: powers[at], Paths: slices.Compact(list)})
	}
	slices.SortFunc(listed, func(a, b verbEntry) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Paths[0], b.Paths[0]))
	})
	return listed, whole
}
