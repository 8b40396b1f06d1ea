package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/verbs"
)

// Cluster are the grants of a cluster. It remembers what it was asked, and is not safe for concurrent use.
type Cluster struct {
	rbac     *rbac.Authorizer
	policies Policies
	named    *named
	spots    map[seen][]spot
}

// New returns the grants. policies may be nil. RBAC objects that are not about the question may be left out.
func New(grants rbac.Grants, policies Policies) (*Cluster, error) {
	authorizer, err := rbac.NewStored(grants)
	if err != nil {
		return nil, fmt.Errorf("RBAC: %w", err)
	}
	c := &Cluster{rbac: authorizer, policies: policies, spots: map[seen][]spot{}}
	if policies == nil {
		c.named = namedIn(&grants, nil)
	} else {
		c.named = namedIn(&grants, policies.Subjects())
	}
	return c, nil
}

// Row is a subject that may change the field, with its ways to do so: those without a condition first, and of these the strongest.
type Row struct {
	Subject Subject
	Ways    []Way
}

// How returns the kind of the strongest way.
func (r *Row) How() How { return r.Ways[0].How() }

// WhoCan returns the subjects that may change the field at a place, by kind and name.
func (c *Cluster) WhoCan(w *Write, p *fieldtree.Place) []Row {
	return c.whoCan(w, fieldOf(w, p))
}

func (c *Cluster) whoCan(w *Write, f *field) []Row {
	if f.unchanged {
		return nil
	}
	return c.rows(w, func(h *holder) []Way { return h.ways(f) })
}

// Holders returns the subjects that hold a verb of a kind, whatever it lets them change. Those that hold it by the verb "*" have a row for "*" only.
func (c *Cluster) Holders(w *Write, verb string) []Row {
	if !c.mayHold(verb) {
		return nil
	}
	by := Generic
	switch {
	case verb == rbacv1.VerbAll:
		by = Wildcard
	case strings.HasPrefix(verb, verbs.Marker):
		by = Granular
	}
	return c.rows(w, func(h *holder) []Way {
		var out []Way
		for _, o := range h.hold(verb) {
			out = append(out, way(by, []option{o}, nil))
		}
		return out
	})
}

func (c *Cluster) rows(w *Write, see look) []Row {
	var out []Row
	for _, s := range c.named.subjects {
		if ways := c.ways(w, s, see); len(ways) > 0 {
			out = append(out, Row{s, ways})
		}
	}
	return out
}

// Parameterized returns the verbs with a parameter, of a verb without, that a rule or a policy about the resource names.
func (c *Cluster) Parameterized(w *Write, base string) []string {
	if !c.mayHold(base) {
		return nil
	}
	seen := map[string]bool{}
	c.rows(w, func(h *holder) []Way {
		for _, v := range h.verbsOf(base) {
			seen[v.String()] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(seen))
}

// mayHold reports whether any subject may hold a verb, or the verb for one value of its parameter, other than by "*".
func (c *Cluster) mayHold(verb string) bool {
	return c.policies != nil || c.named.verbs[withoutParameter(verb)]
}

// withoutParameter returns the text of a verb without its parameter. It need not be a verb of fieldperm.
func withoutParameter(verb string) string {
	base, _, _ := strings.Cut(verb, "(")
	return base
}
