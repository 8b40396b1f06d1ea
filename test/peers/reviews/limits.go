package reviews

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// These are the names of changes that not every peer sees.
const (
	// Order is a list whose items change places.
	Order = "order"
	// Ownership is a manager that takes a field from another one in managedFields, with the same value.
	Ownership = "ownership"
	// NewField is a field of .spec that the author of a policy did not know.
	NewField = "new-field"
)

// intruder is the entry in managedFields of a manager that takes over the image.
const intruder = `"managedFields":[{"apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c0\"}":{".":{},"f:image":{}}}}}}},"manager":"intruder","operation":"Update","time":"2026-01-02T08:00:00Z"},`

// Limits returns reviews with changes that a user who may change one field may not make. All are to be denied.
func Limits(tb testing.TB) []Case {
	tb.Helper()
	body := deployed(tb, 16, Scaler, edit{replicas: 1})
	setting := func(n int) string {
		return fmt.Sprintf(`{"name":"SHOP_SETTING_%d","value":"https://service.shop.svc.cluster.local:8443/api/v1/%03d"}`, n, n)
	}
	return []Case{
		{Order, replaced(tb, body, setting(0)+","+setting(1), setting(1)+","+setting(0)), false},
		{Ownership, replaced(tb, replaced(tb, body, `{".":{},"f:image":{},`, `{".":{},`), `"managedFields":[`, intruder), false},
		{NewField, replaced(tb, body, `"spec":{"replicas"`, `"spec":{"stopAfter":"2h","replicas"`), false},
	}
}

// replaced changes the new object, which is the first of the two.
func replaced(tb testing.TB, body []byte, from, to string) []byte {
	tb.Helper()
	out := strings.Replace(string(body), from, to, 1)
	if out == string(body) {
		tb.Fatalf("the body has no %s", from)
	}
	return []byte(out)
}

// TestLimits fails for each of the cases that the peer does not deny, except for those of the given names, which it must allow: the peer
// does not see these changes.
func TestLimits(t *testing.T, p Peer, cases []Case, unseen ...string) {
	t.Helper()
	p.Cases = nil
	for _, c := range cases {
		c.Allowed = slices.Contains(unseen, c.Name)
		p.Cases = append(p.Cases, c)
	}
	Test(t, p)
}
