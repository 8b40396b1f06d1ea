package configfile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
)

// mostIssuers is k8s.io/apiserver's limit. With more issuers, its validation looks at none of them.
const mostIssuers = 64

// LoadAuthentication reads an AuthenticationConfiguration: apiserver.config.k8s.io/v1, v1beta1 or v1alpha1. file is the name in
// errors. It returns the configuration and warnings. The error is Problems, with all faults.
func LoadAuthentication(file string, data []byte) (*apiserver.AuthenticationConfiguration, []string, error) {
	compiler, err := NewClaimsCompiler()
	if err != nil {
		return nil, nil, err
	}
	r := newReading(file, data, claimsAndUsers(compiler))
	if r.tree.value == nil {
		return nil, nil, r.result()
	}
	object := r.decode("AuthenticationConfiguration", "--authentication-config", data)
	configuration, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, nil, r.result()
	}
	var errs field.ErrorList
	mended := configuration
	if n := len(configuration.JWT); n > mostIssuers {
		errs = append(errs, field.TooMany(field.NewPath("jwt"), n, mostIssuers))
		mended = configuration.DeepCopy()
		mended.JWT = mended.JWT[:mostIssuers]
	}
	errs = append(errs, validation.ValidateAuthenticationConfiguration(compiler, mended, nil)...)
	r.judge(errs, func(path string) string { return path }, issuerCures())
	if len(r.problems) == 0 && len(errs) > 0 {
		r.report("", errs.ToAggregate().Error(), "")
	}
	r.checkMappings(compiler, mended)
	if err := r.result(); err != nil {
		return nil, nil, err
	}
	r.warnIssuers(configuration)
	return configuration, r.warnings, nil
}

func issuerCures() map[string]cure {
	https := "write https://…, with nothing but a host, a port and a path"
	prefixed := "write claim with prefix, or expression"
	either := "write claim with requiredValue, or expression with message"
	return map[string]cure{
		"jwt":                                         {missing: "drop some, or let one issuer vouch for the others"},
		"jwt[].issuer.url":                            {missing: `write url: https://…, as it is in the token's claim "iss"`, other: https, twice: "write one entry per issuer, with all its audiences and audienceMatchPolicy: MatchAny"},
		"jwt[].issuer.discoveryURL":                   {missing: https + ", or leave it out: the default is the url with /.well-known/openid-configuration", twice: "write each discoveryURL for one issuer only"},
		"jwt[].issuer.audiences":                      {missing: `write audiences: with what tokens for fieldperm have in the claim "aud"`},
		"jwt[].issuer.audiences[]":                    {missing: "write each audience once, and none that is empty"},
		"jwt[].issuer.audienceMatchPolicy":            {missing: "write audienceMatchPolicy: MatchAny"},
		"jwt[].issuer.certificateAuthority":           {missing: "write the CA's certificates in PEM, indented below certificateAuthority: |, or leave it out to trust those of the system"},
		"jwt[].issuer.egressSelectorType":             {missing: "leave it out: fieldperm asks issuers directly"},
		"jwt[].claimValidationRules[]":                {missing: either},
		"jwt[].claimValidationRules[].claim":          {missing: "leave one of the two out"},
		"jwt[].claimValidationRules[].message":        {missing: "leave message out, or write expression in place of claim"},
		"jwt[].claimValidationRules[].requiredValue":  {missing: "leave requiredValue out, or write claim in place of expression"},
		"jwt[].claimValidationRules[].expression":     {missing: "leave one of the two out"},
		"jwt[].claimMappings.username":                {missing: prefixed},
		"jwt[].claimMappings.username.prefix":         {missing: `write prefix: "oidc:", or prefix: "" for none`, other: "leave prefix out, and put it into the expression: \"oidc:\" + …"},
		"jwt[].claimMappings.username.expression":     {missing: "write a CEL expression over claims", other: "add to claimValidationRules: expression: claims.?email_verified.orValue(true) == true"},
		"jwt[].claimMappings.groups":                  {missing: prefixed},
		"jwt[].claimMappings.groups.prefix":           {missing: `write prefix: "oidc:", or prefix: "" for none`, other: "leave prefix out, and put it into the expression"},
		"jwt[].claimMappings.uid":                     {missing: "write claim or expression"},
		"jwt[].claimMappings.extra[].key":             {missing: "write a key with a domain of your own, for example key: example.com/name", other: "write a lowercase key with a domain of your own, for example key: example.com/name", twice: "leave one of the two out, or join their expressions into a list"},
		"jwt[].claimMappings.extra[].valueExpression": {missing: "write valueExpression: with a CEL expression over claims"},
		"jwt[].userValidationRules[].expression":      {missing: "write a CEL expression over user", other: "leave one of the two out"},
		"anonymous.conditions":                        {missing: "write enabled: true, or leave conditions out"},
	}
}

// warnIssuers reports settings that are valid but probably not intended.
func (r *reading) warnIssuers(configuration *apiserver.AuthenticationConfiguration) {
	if version, _ := r.value("apiVersion").(string); strings.HasSuffix(version, "/v1alpha1") {
		r.warn("apiVersion", quoted(version)+" is an alpha version", "write apiVersion: "+apiserver.GroupName+"/v1")
	}
	anonymous := configuration.Anonymous
	if len(configuration.JWT) == 0 && (anonymous == nil || !anonymous.Enabled) {
		r.warn("", "has neither issuers nor anonymous callers, so that only client certificates are accepted", "add an issuer below jwt, or leave the file out")
	}
	if anonymous != nil && anonymous.Enabled && len(anonymous.Conditions) == 0 {
		r.warn("anonymous", "is enabled for every path: callers without a token are system:anonymous", "name paths in anonymous.conditions, or write enabled: false")
	}
	if anonymous != nil {
		for i, condition := range anonymous.Conditions {
			if !strings.HasPrefix(condition.Path, "/") {
				r.warn(child(item("anonymous.conditions", i), "path"), quoted(condition.Path)+" is no request's path", "write a path that starts with /")
			}
		}
	}
	for i := range configuration.JWT {
		r.warnIssuer(item("jwt", i), &configuration.JWT[i])
	}
}

func (r *reading) warnIssuer(path string, issuer *apiserver.JWTAuthenticator) {
	if selector := issuer.Issuer.EgressSelectorType; selector != "" {
		r.warn(child(path, "issuer.egressSelectorType"), quoted(string(selector))+" has no effect: fieldperm asks issuers directly", "leave it out")
	}
	r.warnEncodings(path, issuer)
	for _, mapping := range []struct {
		name, example string
		value         apiserver.PrefixedClaimOrExpression
	}{
		{"username", "!user.username.startsWith('system:')", issuer.ClaimMappings.Username},
		{"groups", "user.groups.all(group, !group.startsWith('system:'))", issuer.ClaimMappings.Groups},
	} {
		if mapping.value.Prefix != nil && *mapping.value.Prefix == "-" {
			r.warn(child(path, "claimMappings."+mapping.name+".prefix"), `"-" is a prefix like any other, as in "-alice"`,
				`write prefix: "" for none: only the flag --oidc-username-prefix of kube-apiserver takes "-" for that`)
		}
		if mapping.value.Claim == "" && mapping.value.Expression == "" || mapping.value.Prefix != nil && *mapping.value.Prefix != "" ||
			strings.Contains(mapping.value.Expression, "system:") || slices.ContainsFunc(issuer.UserValidationRules, func(rule apiserver.UserValidationRule) bool {
			return strings.Contains(rule.Expression, "system:") && strings.Contains(rule.Expression, "user."+mapping.name)
		}) {
			continue
		}
		r.warn(child(path, "claimMappings."+mapping.name), fmt.Sprintf("has no prefix: a token can carry %s of the system, such as %s", mapping.name, map[string]string{"username": "system:kube-controller-manager", "groups": "system:masters"}[mapping.name]),
			fmt.Sprintf("add to userValidationRules: expression: %q", mapping.example))
	}
}
