package expression

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestK4_AKnownStringIsNoCode: the residual compares with exactly the known string, whatever characters a user has chosen.
func TestK4_AKnownStringIsNoCode(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x180) {
		all.WriteRune(r)
	}
	for _, name := range []string{all.String(), `" || true || "`, `\" || true || "`, "\u2028\u2029\ufeff\ufffd\U0010ffff", "a\xffb", "\xc3(", `\u0022`, "`", "'''", `"""`, "{}[]$%s"} {
		r, known := update()
		alice := &user.DefaultInfo{Name: name, Groups: []string{name, "other"}}
		r.user, known.User = alice, alice
		for source, owners := range map[string]map[string]bool{
			`object.owner == request.userInfo.username`: {name: true, name + "x": false, "ÿ": false},
			`object.owner in request.userInfo.groups`:   {name: true, "other": true, "x": false},
		} {
			folded := compile(t, source).Fold(context.Background(), known)
			if folded.Outcome != Residual {
				t.Errorf("%q: outcome %d, error %v, want a residual", name, folded.Outcome, folded.Err)
				continue
			}
			for owner, want := range owners {
				r.object = map[string]any{"owner": owner}
				if got, err := folded.Residual.Evaluate(context.Background(), r); got != want || err != nil {
					t.Errorf("%q: %s is %t, %v for owner %q, want %t", name, folded.Residual, got, err, owner, want)
				}
			}
		}
	}
}
