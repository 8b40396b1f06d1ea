package plugin

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// TestTighten_ApplyRefusesWhatNoFlagAccepts: new access and losses.
func TestTighten_ApplyRefusesWhatNoFlagAccepts(t *testing.T) {
	for _, c := range []struct {
		o        tightening
		proposal tighten.Proposal
		proof    tighten.Proof
		want     string
	}{
		{proof: tighten.Proof{Create: []string{"a", "b"}}, want: "a; b: look at it, then give --allow-create"},
		{proof: tighten.Proof{Read: []string{"a"}}, want: "a: look at it, then give --allow-read"},
		{proposal: tighten.Proposal{Losses: []string{"a", "b"}}, want: "a; b: look at it, then give --allow-loss"},
		{proposal: tighten.Proposal{Losses: []string{"a"}}, o: tightening{allowLoss: true}},
		{},
	} {
		err := c.o.refusal(&c.proposal, &c.proof)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
