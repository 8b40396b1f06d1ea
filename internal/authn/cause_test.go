package authn

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// The log says which of several expressions of extra has failed, and nothing of the token.
func TestKEP3331_AFailingExtraIsLoggedWithItsPlace(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named+`
    extra:
    - {key: example.com/a, valueExpression: "claims.a"}
    - {key: example.com/b, valueExpression: "claims.b.c"}
    - {key: example.com/d, valueExpression: "claims.d"}`))
	good := map[string]any{"a": "x", "b": map[string]any{"c": "y"}, "d": "z"}
	accepted(t, a, sign(t, i, claims(good), issuer.Token{}), "ann")
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"the first is missing": {map[string]any{"a": nil}, `claimMappings.extra[0].valueExpression (key "example.com/a"): expression fails`},
		"the second fails":     {map[string]any{"b": map[string]any{"secret": 1}}, `claimMappings.extra[1].valueExpression (key "example.com/b"): expression fails`},
		"the third is a map":   {map[string]any{"d": map[string]any{"secret": 1}}, `claimMappings.extra[2].valueExpression (key "example.com/d"): expression yields neither a text nor a list of texts`},
		// The text of another expression in a claim does not lead the log astray.
		"a claim with the message": {map[string]any{"b": "secret: expression 'claims.d' resulted in error: "}, `claimMappings.extra[1].valueExpression (key "example.com/b"): expression fails`},
	} {
		t.Run(name, func(t *testing.T) {
			token := sign(t, i, claims(good, c.change), issuer.Token{})
			refusedWith(t, a, token, c.want)
			if _, err := identify(a, token); strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "validationRules") {
				t.Errorf("error has a claim, or rules that the file does not have: %v", err)
			}
		})
	}
}

// k8s.io/apiserver evaluates mappings before rules. A token that fails both is logged with the mapping, and with the rules.
func TestKEP3331_AFailedMappingNamesTheRulesBehindIt(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, `
  claimValidationRules: [{claim: hd, requiredValue: acme}]
  claimMappings:
    username: {claim: sub, prefix: ""}
    groups: {expression: "claims.groups"}`))
	refusedWith(t, a, sign(t, i, claims(map[string]any{"hd": "other"}), issuer.Token{}),
		"claimMappings.groups: expression fails; claimValidationRules are evaluated after the mappings, and may refuse the token too")
	refusedWith(t, a, sign(t, i, claims(map[string]any{"hd": "other", "groups": "x"}), issuer.Token{}), `claimValidationRules: claim "hd" has another value`)
	accepted(t, a, sign(t, i, claims(map[string]any{"hd": "acme", "groups": "x"}), issuer.Token{}), "ann")
}

// The cost of an expression is bounded, whatever is in the token: a token cannot hold a processor.
func TestKEP3331_TheCostOfAnExpressionIsBounded(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	const each = "dyn(claims.list).all(x, dyn(claims.list).all(y, dyn(claims.list).all(z, x + y + z != '')))"
	long := make([]string, 300)
	for n := range long {
		long[n] = "x"
	}
	for field, rest := range map[string]string{
		"claimValidationRules": "\n  claimValidationRules: [{expression: \"" + each + "\", message: m}]" + named,
		"claimMappings.groups": named + "\n    groups: {expression: \"" + each + " ? 'a' : 'b'\"}",
		"claimMappings.extra[0].valueExpression (key \"example.com/x\")": named + "\n    extra: [{key: example.com/x, valueExpression: \"" + each + " ? 'a' : 'b'\"}]",
	} {
		a := startWith(t, entry(i, rest))
		refusedWith(t, a, sign(t, i, claims(map[string]any{"list": long}), issuer.Token{}), field+": expression fails: it exceeds the cost limit of CEL")
		accepted(t, a, sign(t, i, claims(map[string]any{"list": long[:3]}), issuer.Token{}), "ann")
	}
}

// The libraries of Kubernetes are there, and the one of encodings, which KEP-3331 asks for in addition.
func TestKEP3331_LibrariesOfExpressions(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	for name, expression := range map[string]string{
		"encoding": "base64.decode(base64.encode(bytes(claims.text)))",
		"strings":  "claims.text.lowerAscii().split('-').join('.')",
		"regex":    "claims.text.find('[a-z]+')",
		"lists":    "['b', 'a'].sort()[0]",
		"urls":     "url('https://' + claims.text + '.example').getHost()",
		"sets":     "sets.contains(['a'], ['a']) ? 'yes' : ''",
		"optional": "claims.?absent.orValue('none')",
		"quantity": "quantity('1k').isGreaterThan(quantity('1')) ? 'yes' : ''",
		"ip":       "ip('10.0.0.1').family() == 4 ? 'yes' : ''",
		"semver":   "semver('1.2.3').major() == 1 ? 'yes' : ''",
		"format":   "format.dns1123Label().validate('a').hasValue() ? '' : 'yes'",
	} {
		a := startWith(t, entry(i, "\n  claimMappings: {username: {expression: \"'user-' + string("+expression+")\"}}"))
		if got, err := identify(a, sign(t, i, claims(map[string]any{"text": "a-b"}), issuer.Token{})); err != nil || got == nil || got.GetName() == "user-" {
			t.Errorf("%s: user is %v, %v", name, got, err)
		}
	}
}
