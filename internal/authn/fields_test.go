package authn

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/test/issuer"
)

const all = user.AllAuthenticated

// Every field of the API, by the result for a token with some claims.
func TestKEP3331_Fields(t *testing.T) {
	i := startIssuer(t, issuer.Config{Path: "/realms/dev"})
	ann := user.DefaultInfo{Name: "ann", Groups: []string{all}}
	for _, c := range []struct {
		name   string
		entry  string
		claims map[string]any
		want   user.DefaultInfo
		err    string
	}{
		{name: "issuer.url with a path", entry: entry(i, named), claims: claims(), want: ann},
		{name: "issuer.audiences, one, in a list of the token", entry: entry(i, named), claims: claims(map[string]any{"aud": []string{"other", audience}}), want: ann},
		{name: "issuer.audiences, another", entry: entry(i, named), claims: claims(map[string]any{"aud": "secret"}), err: "is for none of issuer.audiences"},
		{name: "issuer.audiences, none in the token", entry: entry(i, named), claims: claims(map[string]any{"aud": nil}), err: "is for none of issuer.audiences"},
		{
			name: "issuer.audienceMatchPolicy", entry: issuerOnly(i, "[one, two]", "\n    audienceMatchPolicy: MatchAny") + named + "\n",
			claims: claims(map[string]any{"aud": []string{"three", "two"}}), want: ann,
		},
		{
			name: "issuer.audienceMatchPolicy, none matches", entry: issuerOnly(i, "[one, two]", "\n    audienceMatchPolicy: MatchAny") + named + "\n",
			claims: claims(map[string]any{"aud": []string{"three", "secret"}}), err: "is for none of issuer.audiences",
		},
		{name: "claimMappings.username.prefix", entry: entry(i, "\n  claimMappings: {username: {claim: sub, prefix: 'oidc:'}}"), claims: claims(), want: user.DefaultInfo{Name: "oidc:ann", Groups: []string{all}}},
		{name: "claimMappings.username.claim is missing", entry: entry(i, "\n  claimMappings: {username: {claim: login, prefix: ''}}"), claims: claims(), err: `claimMappings.username: claim "login" is missing or not a text`},
		{name: "claimMappings.username.claim is a number", entry: entry(i, named), claims: claims(map[string]any{"sub": 1}), err: "has claims that are not of the types that JWT gives them"},
		{
			name: "claimMappings.username.expression", entry: entry(i, "\n  claimMappings: {username: {expression: 'claims.first + \".\" + claims.last.lowerAscii()'}}"),
			claims: claims(map[string]any{"first": "ann", "last": "LEE"}), want: user.DefaultInfo{Name: "ann.lee", Groups: []string{all}},
		},
		{name: "claimMappings.username.expression fails", entry: entry(i, "\n  claimMappings: {username: {expression: 'claims.first'}}"), claims: claims(), err: "claimMappings.username: expression fails"},
		{name: "claimMappings.username.expression is empty", entry: entry(i, "\n  claimMappings: {username: {expression: 'claims.first'}}"), claims: claims(map[string]any{"first": ""}), err: "claimMappings.username: expression is empty"},
		{name: "claimMappings.username.expression is a number", entry: entry(i, "\n  claimMappings: {username: {expression: 'claims.first'}}"), claims: claims(map[string]any{"first": 1}), err: "claimMappings.username: expression fails"},
		{
			name: "email, verified", entry: entry(i, "\n  claimMappings: {username: {claim: email, prefix: ''}}"),
			claims: claims(map[string]any{"email": "ann@example.com", "email_verified": true}), want: user.DefaultInfo{Name: "ann@example.com", Groups: []string{all}},
		},
		{
			name: "email, nothing said", entry: entry(i, "\n  claimMappings: {username: {claim: email, prefix: ''}}"),
			claims: claims(map[string]any{"email": "ann@example.com"}), want: user.DefaultInfo{Name: "ann@example.com", Groups: []string{all}},
		},
		{
			name: "email, not verified", entry: entry(i, "\n  claimMappings: {username: {claim: email, prefix: ''}}"),
			claims: claims(map[string]any{"email": "secret@example.com", "email_verified": false}), err: `claimMappings.username: the claim "email" is not verified`,
		},
		{
			name: "email, verified by a word", entry: entry(i, "\n  claimMappings: {username: {claim: email, prefix: ''}}"),
			claims: claims(map[string]any{"email": "secret@example.com", "email_verified": "true"}), err: `claimMappings.username: the claim "email_verified" is not a bool`,
		},
		{
			name: "claimMappings.groups.claim, a list", entry: entry(i, named+"\n    groups: {claim: roles, prefix: ''}"),
			claims: claims(map[string]any{"roles": []string{"a", "b"}}), want: user.DefaultInfo{Name: "ann", Groups: []string{"a", "b", all}},
		},
		{
			name: "claimMappings.groups.prefix, a text", entry: entry(i, named+"\n    groups: {claim: roles, prefix: 'oidc:'}"),
			claims: claims(map[string]any{"roles": "a"}), want: user.DefaultInfo{Name: "ann", Groups: []string{"oidc:a", all}},
		},
		{name: "claimMappings.groups.claim is missing", entry: entry(i, named+"\n    groups: {claim: roles, prefix: ''}"), claims: claims(), want: ann},
		{
			name: "claimMappings.groups.claim is a number", entry: entry(i, named+"\n    groups: {claim: roles, prefix: ''}"),
			claims: claims(map[string]any{"roles": 7}), err: `claimMappings.groups: claim "roles" is not a list of texts`,
		},
		{
			name: "claimMappings.groups.expression, nested claims", entry: entry(i, named+"\n    groups: {expression: 'claims.realm.roles.map(r, \"kc:\" + r)'}"),
			claims: claims(map[string]any{"realm": map[string]any{"roles": []string{"a", "b"}}}), want: user.DefaultInfo{Name: "ann", Groups: []string{"kc:a", "kc:b", all}},
		},
		{
			name: "claimMappings.groups.expression fails", entry: entry(i, named+"\n    groups: {expression: 'claims.realm.roles'}"),
			claims: claims(map[string]any{"realm": "secret"}), err: "claimMappings.groups: expression fails",
		},
		{
			name: "claimMappings.groups.expression, escaped names", entry: entry(i, named+"\n    groups: {expression: 'claims.example__dot__com__slash__team.in__dash__side'}"),
			claims: claims(map[string]any{"example.com/team": map[string]any{"in-side": "a"}}), want: user.DefaultInfo{Name: "ann", Groups: []string{"a", all}},
		},
		{
			name: "claimMappings.groups.expression, names in brackets", entry: entry(i, named+"\n    groups: {expression: 'claims[\"example.com/team\"]'}"),
			claims: claims(map[string]any{"example.com/team": "a"}), want: user.DefaultInfo{Name: "ann", Groups: []string{"a", all}},
		},
		{name: "claimMappings.uid.claim", entry: entry(i, named+"\n    uid: {claim: oid}"), claims: claims(map[string]any{"oid": "u-1"}), want: user.DefaultInfo{Name: "ann", UID: "u-1", Groups: []string{all}}},
		{name: "claimMappings.uid.claim is missing", entry: entry(i, named+"\n    uid: {claim: oid}"), claims: claims(), err: `claimMappings.uid: claim "oid" is missing`},
		{name: "claimMappings.uid.expression", entry: entry(i, named+"\n    uid: {expression: '\"u-\" + string(claims.n)'}"), claims: claims(map[string]any{"n": 3}), want: user.DefaultInfo{Name: "ann", UID: "u-3", Groups: []string{all}}},
		{name: "claimMappings.uid.expression fails", entry: entry(i, named+"\n    uid: {expression: 'claims.n'}"), claims: claims(), err: "claimMappings.uid: expression fails"},
		{
			name: "claimMappings.extra", entry: entry(i, named+"\n    extra:\n    - {key: example.com/tenant, valueExpression: claims.tenant}\n    - {key: example.com/none, valueExpression: '\"\"'}\n    - {key: example.com/list, valueExpression: claims.list}"),
			claims: claims(map[string]any{"tenant": "acme", "list": []string{"x", "y"}}),
			want:   user.DefaultInfo{Name: "ann", Groups: []string{all}, Extra: map[string][]string{"example.com/tenant": {"acme"}, "example.com/list": {"x", "y"}}},
		},
		{name: "claimMappings.extra fails", entry: entry(i, named+"\n    extra: [{key: example.com/tenant, valueExpression: claims.tenant}]"), claims: claims(), err: `claimMappings.extra[0].valueExpression (key "example.com/tenant"): expression fails`},
		{name: "claimMappings.extra is a number", entry: entry(i, named+"\n    extra: [{key: example.com/tenant, valueExpression: claims.n}]"), claims: claims(map[string]any{"n": 1}), err: `claimMappings.extra[0].valueExpression (key "example.com/tenant"): expression yields neither a text nor a list of texts`},
		{name: "jti", entry: entry(i, named), claims: claims(map[string]any{"jti": "j-1"}), want: user.DefaultInfo{Name: "ann", Groups: []string{all}, Extra: map[string][]string{user.CredentialIDKey: {"JTI=j-1"}}}},
		{name: "claimValidationRules.claim", entry: entry(i, "\n  claimValidationRules: [{claim: hd, requiredValue: acme}]"+named), claims: claims(map[string]any{"hd": "acme"}), want: ann},
		{name: "claimValidationRules.claim is missing", entry: entry(i, "\n  claimValidationRules: [{claim: hd, requiredValue: acme}]"+named), claims: claims(), err: `claimValidationRules: claim "hd" is missing`},
		{name: "claimValidationRules.requiredValue is another", entry: entry(i, "\n  claimValidationRules: [{claim: hd, requiredValue: acme}]"+named), claims: claims(map[string]any{"hd": "secret"}), err: `claimValidationRules: claim "hd" has another value`},
		{
			name: "claimValidationRules.expression", entry: entry(i, "\n  claimValidationRules: [{expression: 'claims.exp - claims.iat <= 7200', message: too long}]"+named),
			claims: claims(), want: ann,
		},
		{
			name: "claimValidationRules.message", entry: entry(i, "\n  claimValidationRules: [{expression: 'claims.exp - claims.iat <= 60', message: tokens are valid for a minute}]"+named),
			claims: claims(), err: `claimValidationRules: expression "claims.exp - claims.iat <= 60": tokens are valid for a minute`,
		},
		{
			name: "claimValidationRules.expression fails", entry: entry(i, "\n  claimValidationRules: [{expression: 'int(claims.n) > 1', message: m}]"+named),
			claims: claims(map[string]any{"n": "secret"}), err: "claimValidationRules: expression fails",
		},
		{name: "userValidationRules", entry: entry(i, named+"\n  userValidationRules: [{expression: 'user.username.startsWith(\"a\") && user.groups.size() == 0', message: m}]"), claims: claims(), want: ann},
		{
			name: "userValidationRules.message", entry: entry(i, named+"\n  userValidationRules: [{expression: '!user.username.startsWith(\"system:\")', message: 'system: is the system''s'}]"),
			claims: claims(map[string]any{"sub": "system:secret"}), err: `userValidationRules: expression "!user.username.startsWith(\"system:\")": system: is the system's`,
		},
		{name: "a name of the system counts, as in kube-apiserver", entry: entry(i, named+"\n    groups: {claim: roles, prefix: ''}"), claims: claims(map[string]any{"sub": "system:x", "roles": user.SystemPrivilegedGroup}), want: user.DefaultInfo{Name: "system:x", Groups: []string{user.SystemPrivilegedGroup, all}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := startWith(t, c.entry)
			token := sign(t, i, c.claims, issuer.Token{})
			if c.want.Name == "" {
				refusedWith(t, a, token, fmt.Sprintf("bearer token: issuer %q: %s", i.URL(), c.err))
				if _, err := identify(a, token); strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), token) {
					t.Errorf("error has a claim or the token: %v", err)
				}
				return
			}
			if got := accepted(t, a, token, c.want.Name); !reflect.DeepEqual(got, &c.want) {
				t.Errorf("user is %+v, want %+v", got, &c.want)
			}
		})
	}
}

func TestKEP3331_Versions(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		a, _ := start(t, settings(t, versioned(version, entry(i, named))))
		accepted(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
	}
}

func TestKEP3331_DiscoveryURL(t *testing.T) {
	// No server has the issuer's name. Only discoveryURL leads to the issuer.
	i := startIssuer(t, issuer.Config{Name: "https://issuer.example.com/realm", DiscoveryPath: "/internal/configuration"})
	text := issuerOnly(i, "["+audience+"]", "\n    discoveryURL: "+i.DiscoveryURL()) + named
	if errs := probeText(t, configuration(text)); len(errs) != 0 {
		t.Errorf("a probe says %v", errs)
	}
	a := startWith(t, text)
	accepted(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
	refusedWith(t, a, sign(t, i, claims(map[string]any{"iss": "https://" + i.Address()}), issuer.Token{}), "is none of jwt[].issuer.url")
}

func TestKEP3331_SeveralIssuers(t *testing.T) {
	first, second, third := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	a := startWith(t, entry(first, "\n  claimMappings: {username: {claim: sub, prefix: '1:'}}"), entry(second, "\n  claimMappings: {username: {claim: sub, prefix: '2:'}}"))
	accepted(t, a, sign(t, first, claims(), issuer.Token{}), "1:ann")
	accepted(t, a, sign(t, second, claims(), issuer.Token{}), "2:ann")
	refusedWith(t, a, sign(t, third, claims(), issuer.Token{}), fmt.Sprintf("issuer %q: is none of jwt[].issuer.url", third.URL()))
	refusedWith(t, a, sign(t, first, claims(map[string]any{"iss": second.URL()}), issuer.Token{}), "is signed by none of the issuer's keys")
}

func TestKEP3331_DistributedGroups(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named+"\n    groups: {claim: groups, prefix: 'd:'}"))
	distributed := sign(t, i, map[string]any{"aud": audience, "groups": []string{"a", "b"}}, issuer.Token{})
	good := sign(t, i, claims(i.Distribute("groups", distributed, "open")), issuer.Token{})
	// The library makes the verifier of distributed claims when the first token of an issuer arrives, and refuses that token.
	eventually(t, "distributed claims are read", func() bool {
		_, err := identify(a, good)
		return err == nil
	})
	if got, want := accepted(t, a, good, "ann").GetGroups(), []string{"d:a", "d:b", all}; !reflect.DeepEqual(got, want) {
		t.Errorf("groups are %q, want %q", got, want)
	}
	otherAudience := sign(t, i, map[string]any{"aud": "secret", "groups": []string{"a"}}, issuer.Token{})
	refusedWith(t, a, sign(t, i, claims(i.Distribute("groups", otherAudience, "")), issuer.Token{}), "its distributed claims cannot be had")
	refusedWith(t, a, sign(t, i, claims(map[string]any{
		"_claim_names":   map[string]any{"groups": "s"},
		"_claim_sources": map[string]any{"s": map[string]any{"endpoint": "http://" + i.Address() + "/"}},
	}), issuer.Token{}), "its distributed claims cannot be had")
}
