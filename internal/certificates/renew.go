package certificates

import (
	"crypto/x509"
	"slices"
	"time"
)

const (
	// lead is how long a new CA is in the bundle before it signs. kube-apiserver's authorizer trusts the CAs in a file on the
	// control plane, and an administrator must copy that file within this time. It is much less than the remaining lifetime of a
	// serving certificate that is due, so nothing expires meanwhile.
	lead = 7 * 24 * time.Hour

	// overlap is how long a CA stays in the bundle after its last certificate was replaced. It is much longer than a replica takes
	// to follow the Secret.
	overlap = time.Hour
)

// renew returns the content that the Secret should have now, and the reasons why it differs from m. Without a reason there is no
// difference. held are the CAs that the replica already trusts; with them its own certificate stays valid while the Secret is made
// again.
//
// The new serving certificate may be signed by a CA that no caller knows yet. A replica that reads it from the Secret publishes the
// CA before it serves the certificate.
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

// dueAt returns why a new authority is needed, "" if none is.
func (a *authority) dueAt(now time.Time) string {
	switch {
	case a == nil:
		return "there is no CA that can sign"
	case !now.Before(due(a.certificate)):
		return "two thirds of the CA's life have passed"
	}
	return ""
}

// servingDueAt returns why a new serving certificate is needed, "" if none is.
func (m material) servingDueAt(now time.Time) string {
	switch {
	case m.serving == nil:
		return "there is no serving certificate that can be used"
	case now.Before(issued(m.authority.certificate).Add(lead)) && !m.authority.signed(m.serving.leaf):
		// The present certificate is signed by the previous CA, and is valid for longer than lead.
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

// join returns first, and the certificates of second and third that have not expired, each once.
func join(first, second, third []*x509.Certificate, now time.Time) []*x509.Certificate {
	out := slices.Clone(first)
	for _, c := range slices.Concat(second, third) {
		if !expired(c, now) && !slices.ContainsFunc(out, c.Equal) {
			out = append(out, c)
		}
	}
	return out
}
