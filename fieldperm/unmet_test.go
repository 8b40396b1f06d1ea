package fieldperm

import (
	"strings"
	"testing"
)

// TestK8_AConditionIsNamedWithItsAuthorizer: of a policy, or of another authorizer.
func TestK8_AConditionIsNamedWithItsAuthorizer(t *testing.T) {
	var b strings.Builder
	(&Denial{Unmet: []Unmet{{Name: "few", Description: "at most 5"}, {Name: "team", Authorizer: "teams"}}}).writeUnmet(&b)
	if want := `; the condition of policy "few" is not met: "at most 5"; the condition "team" of authorizer "teams" is not met`; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
