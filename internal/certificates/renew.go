package certificates

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	// lead is how long a new CA is in the bundle before it signs. kube-apiserver's authorizer trusts
	// what a file on the control plane says, so whoever copies that file has this long. It is far less
	// than what is left of a serving certificate's life when it is due, so nothing expires meanwhile.
	lead = 7 * 24 * time.Hour

	// overlap is how long a CA stays in the bundle after the last certificate of it was replaced: far
	// longer than a replica takes to follow the Secret.
	overlap = time.Hour
)

// renew returns what the Secret should hold now, and why it differs from m; no reason, no difference.
// held are the CAs that the replica trusts already, which keeps its own certificate good while the
// Secret is made again.
//
// The new serving certificate may be of a CA that no caller knows yet. Who reads it from the Secret
// makes the CA known first.
func (m material) renew(names []string, held []*x509.Certificate, now time.Time) (material, []string, error) {
	var reasons []string
	next := material{authority: m.authority, serving: m.serving, bundle: slices.Clone(m.bundle)}
	if reason := m.authority.dueAt(now); reason != "" {
		reasons = append(reasons, reason)
		a, err := newAuthority(now)
		if err != nil {
			return material{}, nil, err
		}
		next.authority = a
		next.bundle = join([]*x509.Certificate{a.certificate}, m.bundle, held, now)
	}
	if reason := next.servingDueAt(now); reason != "" {
		reasons = append(reasons, reason)
		s, err := next.authority.issue(names, now)
		if err != nil {
			return material{}, nil, err
		}
		next.serving = s
	}
	if len(next.bundle) > 1 && next.authority.signed(next.serving.leaf) && !now.Before(issued(next.serving.leaf).Add(overlap)) {
		reasons = append(reasons, "no certificate of the old CA is in use any more")
		next.bundle = next.bundle[:1]
	}
	return next, reasons, nil
}

// dueAt says why there has to be a new authority; "" if there need not.
func (a *authority) dueAt(now time.Time) string {
	switch {
	case a == nil:
		return "there is no CA that can sign"
	case !now.Before(due(a.certificate)):
		return "two thirds of the CA's life have passed"
	}
	return ""
}

// servingDueAt says why there has to be a new serving certificate; "" if there need not.
func (m material) servingDueAt(now time.Time) string {
	switch {
	case m.serving == nil:
		return "there is no serving certificate that can be used"
	case now.Before(issued(m.authority.certificate).Add(lead)) && !m.authority.signed(m.serving.leaf):
		// What is there is of the CA before, and good for longer than this will last.
		return ""
	case !m.authority.signed(m.serving.leaf):
		return "the new CA has been known for long enough"
	case !now.Before(due(m.serving.leaf)):
		return "two thirds of the serving certificate's life have passed"
	}
	return ""
}

func (a *authority) signed(leaf *x509.Certificate) bool {
	return leaf.CheckSignatureFrom(a.certificate) == nil
}

// join returns first and those of the others that have not expired, each once.
func join(first, second, third []*x509.Certificate, now time.Time) []*x509.Certificate {
	out := slices.Clone(first)
	for _, c := range slices.Concat(second, third) {
		if !expired(c, now) && !slices.ContainsFunc(out, c.Equal) {
			out = append(out, c)
		}
	}
	return out
}
