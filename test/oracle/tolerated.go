package oracle

import (
	"slices"

	"github.com/fieldperm/fieldperm/test/exact"
)

// toleration is something that is known not to be covered, and why that is left so. Each is counted in the table at the
// end, and described in the docs.
type toleration struct {
	reason string
	// fits says that this charge of a request is of this sort.
	fits func(*Request, exact.Charge) bool
}

var tolerations = []toleration{
	{
		reason: "the scale handler drops an owner of .spec.replicas after admission, which sees the Scale only",
		fits: func(r *Request, c exact.Charge) bool {
			return r.Endpoint.Sub == "scale" && c.Operation == "ownership"
		},
	},
}

// tolerate reports whether every charge of a verdict is known.
func (t *table) tolerate(r *Request, v *Verdict) bool {
	if len(v.Charges) == 0 {
		return false
	}
	for _, c := range v.Charges {
		i := slices.IndexFunc(tolerations, func(one toleration) bool { return one.fits(r, c) })
		if i < 0 {
			return false
		}
		t.add(t.tolerated, tolerations[i].reason)
	}
	return true
}
