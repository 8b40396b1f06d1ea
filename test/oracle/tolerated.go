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
	fits func(Config, *Request, exact.Charge) bool
}

var tolerations = []toleration{
	{
		reason: "the scale handler drops an owner of .spec.replicas after admission, which sees the Scale only",
		fits: func(_ Config, r *Request, c exact.Charge) bool {
			return r.Endpoint.Sub == "scale" && c.Operation == "ownership"
		},
	},
	{
		reason: "no webhook that is an object is asked about objects of admissionregistration.k8s.io (W4): what their kinds have as barriers does not hold",
		fits: func(_ Config, r *Request, c exact.Charge) bool {
			return r.Endpoint.Group == "admissionregistration.k8s.io" && c.Barrier >= 0
		},
	},
}

// tolerate reports whether every charge of a verdict is known.
func (w *world) tolerate(r *Request, v *Verdict) bool {
	if len(v.Charges) == 0 {
		return false
	}
	for _, c := range v.Charges {
		i := slices.IndexFunc(tolerations, func(one toleration) bool { return one.fits(w.config, r, c) })
		if i < 0 {
			return false
		}
		w.table.add(w.table.tolerated, tolerations[i].reason)
	}
	return true
}
