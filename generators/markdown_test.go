package generators

import "testing"

// TestMarkdown_NamesOfOthersAreText: no name ends the code or the cell.
func TestMarkdown_NamesOfOthersAreText(t *testing.T) {
	for text, want := range map[string]string{
		".spec.a":                     "`.spec.a`",
		".spec[\"a|b`<script>``x\"]":  "```.spec[\"a\\|b`<script>``x\"]```",
		"`a":                          "`` `a ``",
		"a\n\n<script>\x1b[31m":       "`a\\n\\n<script>\\x1b[31m`",
		"granular:label(prefix of x)": "`granular:label(prefix of x)`",
	} {
		if got := CodeSpan(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got, want := cellText("self < `a` |\nb"), `self &lt; &#96;a&#96; \|\nb`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
