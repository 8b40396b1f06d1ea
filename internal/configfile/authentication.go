package configfile

import (
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
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

// LoadAuthentication reads an AuthenticationConfiguration: apiserver.config.k8s.io/v1, v1beta1 or v1alpha1. file is the name in
// errors. It returns the configuration and warnings. The error is Problems.
func LoadAuthentication(file string, data []byte) (*apiserver.AuthenticationConfiguration, []string, error) {
	compiler, err := NewClaimsCompiler()
	if err != nil {
		return nil, nil, err
	}
	d := read(file, data, false)
	object := d.decode("AuthenticationConfiguration", "--authentication-config", reflect.TypeFor[apiserverv1.AuthenticationConfiguration](), func() bool { return false })
	configuration, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, nil, d.result()
	}
	errs := validation.ValidateAuthenticationConfiguration(compiler, configuration, nil)
	d.judge(append(errs, mappingFaults(compiler, configuration)...))
	if err := d.result(); err != nil {
		return nil, nil, err
	}
	d.warnIssuers(configuration)
	return configuration, d.warnings, nil
}
