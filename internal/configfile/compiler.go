package configfile

import (
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/apis/apiserver"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// NewClaimsCompiler returns the compiler of expressions over claims and users: that of kube-apiserver, and the library of encodings. KEP-3331
// asks for that library (base64), and kube-apiserver does not have it. A file that kube-apiserver loads has the same meaning with both.
func NewClaimsCompiler() (authenticationcel.Compiler, error) {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []celgo.EnvOption{ext.Encoders(ext.EncodersVersion(0))},
	})
	if err != nil {
		return nil, err
	}
	return authenticationcel.NewCompiler(env), nil
}

// warnEncodings reports expressions that only fieldperm can evaluate.
func (r *reading) warnEncodings(path string, issuer *apiserver.JWTAuthenticator) {
	warn := func(at, expression string) {
		if strings.Contains(expression, "base64.") {
			r.warn(child(path, at), quoted(expression)+" uses base64, which kube-apiserver does not have", "write it without base64 if kube-apiserver reads this file too")
		}
	}
	for i, rule := range issuer.ClaimValidationRules {
		warn(child(item("claimValidationRules", i), "expression"), rule.Expression)
	}
	warn("claimMappings.username.expression", issuer.ClaimMappings.Username.Expression)
	warn("claimMappings.groups.expression", issuer.ClaimMappings.Groups.Expression)
	warn("claimMappings.uid.expression", issuer.ClaimMappings.UID.Expression)
	for i, extra := range issuer.ClaimMappings.Extra {
		warn(child(item("claimMappings.extra", i), "valueExpression"), extra.ValueExpression)
	}
	for i, rule := range issuer.UserValidationRules {
		warn(child(item("userValidationRules", i), "expression"), rule.Expression)
	}
}
