package access

import (
	"fmt"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Cluster are the grants of a cluster. It is immutable.
type Cluster struct {
	rbac     *rbac.Authorizer
	policies Policies
	named    *named
}

// New returns the grants. policies may be nil. RBAC objects that are not about the question may be left out.
func New(grants rbac.Grants, policies Policies) (*Cluster, error) {
	authorizer, err := rbac.NewStored(grants)
	if err != nil {
		return nil, fmt.Errorf("RBAC: %w", err)
	}
	c := &Cluster{rbac: authorizer, policies: policies}
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
	var out []Row
	if f.unchanged {
		return out
	}
	for _, s := range c.named.subjects {
		if ways := c.ways(w, s, f); len(ways) > 0 {
			out = append(out, Row{s, ways})
		}
	}
	return out
}
