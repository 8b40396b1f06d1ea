package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/fieldperm/fieldperm/test/aggregated/brewery"
	"github.com/fieldperm/fieldperm/test/aggregated/brewery/openapi"
	v1 "github.com/fieldperm/fieldperm/test/aggregated/brewery/v1"
)

// Config configures a server. The first five fields are required.
type Config struct {
	// Kubeconfig is the path of the file with which the server calls kube-apiserver: for SubjectAccessReviews, for the configuration of
	// authentication, and for webhook configurations.
	Kubeconfig string
	// EtcdURL is the address of an etcd. The server's keys begin with Prefix there.
	EtcdURL string
	// Certificate and Key are the PEM of the serving certificate.
	Certificate, Key []byte
	// Address is the IP address and port to listen on.
	Address string

	// Admission is the path of an AdmissionConfiguration. It names the client certificate for webhooks.
	Admission string
	// Definitions are the OpenAPI definitions. Nil: those of the group, which openapi-gen has written.
	Definitions common.GetOpenAPIDefinitions
	// WithoutWebhooks turns the admission plugin for validating webhooks off.
	WithoutWebhooks bool
	// Authorizer changes the delegating authorizer. Nil: no change.
	Authorizer func(authorizer.Authorizer) authorizer.Authorizer
	// WithoutValidation makes the storage forget the validation functions that call validating admission.
	WithoutValidation bool
}

// Prefix is the beginning of the server's keys in etcd.
const Prefix = "/brewery"

// Server is a running server.
type Server struct {
	stop context.CancelFunc
	done chan error
	dir  string
}

// Start starts a server in this process, and returns when it listens.
func Start(ctx context.Context, config Config) (*Server, error) {
	dir, err := os.MkdirTemp("", "fieldperm-brewery-")
	if err != nil {
		return nil, fmt.Errorf("aggregated server: %w", err)
	}
	prepared, err := config.prepare(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("aggregated server: %w", err), os.RemoveAll(dir))
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{stop: stop, done: make(chan error, 1), dir: dir}
	go func() { s.done <- prepared.RunWithContext(running) }()
	return s, nil
}

// Stop ends the server and returns when it has ended.
func (s *Server) Stop() error {
	s.stop()
	return errors.Join(<-s.done, os.RemoveAll(s.dir))
}

// runnable is a prepared server.
type runnable interface{ RunWithContext(context.Context) error }

func (c *Config) prepare(dir string) (runnable, error) {
	scheme, err := brewery.Scheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		return nil, err
	}
	config, err := c.configure(dir, scheme, codecs, listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	generic, err := config.Complete().New("brewery", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	group, err := c.group(scheme, codecs, config.RESTOptionsGetter)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := generic.InstallAPIGroup(group); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return generic.PrepareRun(), nil
}

func (c *Config) configure(dir string, scheme *runtime.Scheme, codecs serializer.CodecFactory, listener net.Listener) (*genericapiserver.RecommendedConfig, error) {
	options := genericoptions.NewRecommendedOptions(Prefix, codecs.LegacyCodec(v1.GroupVersion))
	options.Etcd.StorageConfig.EncodeVersioner = v1.GroupVersion
	options.Etcd.StorageConfig.Transport.ServerList = []string{c.EtcdURL}
	options.SecureServing.Listener = listener
	options.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	serving := &options.SecureServing.ServerCert.CertKey
	serving.CertFile, serving.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(serving.CertFile, c.Certificate, 0o600), os.WriteFile(serving.KeyFile, c.Key, 0o600)); err != nil {
		return nil, err
	}
	options.CoreAPI.CoreAPIKubeconfigPath = c.Kubeconfig
	options.Authentication.RemoteKubeConfigFile = c.Kubeconfig
	options.Authorization.RemoteKubeConfigFile = c.Kubeconfig
	// The tests change grants, and do not want to wait.
	options.Authorization.AllowCacheTTL, options.Authorization.DenyCacheTTL = 0, 0
	options.Features.EnablePriorityAndFairness = false
	options.Admission.ConfigFile = c.Admission
	if c.WithoutWebhooks {
		options.Admission.DisablePlugins = []string{validatingwebhook.PluginName}
	}
	config := genericapiserver.NewRecommendedConfig(codecs)
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.37", "", "")
	definitions := c.Definitions
	if definitions == nil {
		definitions = openapi.Definitions
	}
	namer := openapinamer.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = "brewery", "brewery"
	if errs := options.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.Authorizer != nil {
		// This function runs after the authorizer is made, and before admission plugins get it.
		options.ExtraAdmissionInitializers = func(config *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
			config.Authorization.Authorizer = c.Authorizer(config.Authorization.Authorizer)
			return nil, nil
		}
	}
	return config, options.ApplyTo(config)
}
