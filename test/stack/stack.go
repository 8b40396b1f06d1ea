package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/watchdog"
)

// User is the name under which fieldperm calls the API server here.
const User = "fieldperm"

// The names of the objects that configure admission: the first in the topology REST only.
const (
	Configuration          = "fieldperm"
	UncoveredConfiguration = "fieldperm-uncovered"
)

// Config describes the stack. Only Bin is required.
type Config struct {
	// Bin is the directory of the built fieldperm-gen and fieldperm-webhook.
	Bin string
	// Schemas are files or directories for --permission-schemas of fieldperm-webhook.
	Schemas []string
	// Webhooks are further webhook configurations, by file name: static ones, or objects, as the topology is.
	Webhooks map[string][]byte
	// Arguments are further flags of fieldperm-webhook serve.
	Arguments []string
	// Prepare receives the directory with the output of fieldperm-gen and the certificates, before any process starts. It may change all
	// files in it, for example kube-apiserver's chain of authorizers, and add others; it returns flags for Arguments that name them. Nil:
	// no change.
	Prepare func(dir string) (arguments []string, err error)
	// Audit enables an audit log, see Stack.AuditLog.
	Audit bool
	// Log receives a line for each step of the start. Nil: none.
	Log io.Writer

	// Topology selects the kind of installation. Zero: static manifests, if the API server reads them.
	Topology Topology
	// Replicas is the number of fieldperm-webhooks behind a balancer at the address in the manifests. Zero: one, at that address itself.
	Replicas int
	// Proxied puts a proxy between fieldperm and kube-apiserver, see Stack.Intercept.
	Proxied bool
	// Observe receives the requests of kube-apiserver to fieldperm. It supports one replica only. Nil: none.
	Observe Observe
	// AuthorizedTTL and UnauthorizedTTL are the times for which kube-apiserver caches fieldperm's decisions. Zero: the generator's default.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// Authentication is the content of kube-apiserver's AuthenticationConfiguration, see cluster.Config. Nil: none.
	Authentication []byte
	// Address and ServerFlags are settings of kube-apiserver, see cluster.Config. With an address fieldperm proves every API server that is
	// published in the endpoints of the Service "kubernetes". Without one it proves the API server of its own connection.
	Address     string
	ServerFlags map[string][]string
}

// Topology is a kind of installation.
type Topology int

const (
	// Any is Static with an API server that reads static manifests, and REST with an older one.
	Any Topology = iota
	// Static runs fieldperm beside kube-apiserver: the webhook granular is a file that the API server reads. The other webhooks are an
	// object that fieldperm maintains, protected by a guard.
	Static
	// REST runs fieldperm in the cluster: every webhook is an object, protected by a guard.
	REST
)

// Stack is a running control plane with fieldperm in it. It also has all methods of the cluster; Stop and Dir are its own. Only the methods
// of the cluster, and methods for different replicas, may be called concurrently.
type Stack struct {
	*cluster.Cluster

	config    Config
	dir       string
	url       string
	authority *cluster.Authority
	replicas  []*replica
	balancer  *balancer // nil without Config.Replicas
	proxy     *proxy    // nil without Config.Proxied
	observer  *observer // nil without Config.Observe
	watchdog  *watchdog.Watchdog

	// probes numbers the questions, so that none is answered from a cache.
	probes int

	stop    sync.Once
	stopErr error
}

// Start starts all processes and returns when fieldperm is ready. The context limits only the start. If it fails, no process and no file
// remains, and the error has the end of the log of the failed process.
func Start(ctx context.Context, config Config) (*Stack, error) {
	dir, err := os.MkdirTemp("", "fieldperm-stack-")
	if err != nil {
		return nil, fmt.Errorf("stack: directory: %w", err)
	}
	if config.Log == nil {
		config.Log = io.Discard
	}
	s := &Stack{config: config, dir: dir}
	if s.watchdog, err = watchdog.Guard(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// oldestWithManifests is the first kube-apiserver that reads static manifests of webhooks without a feature gate.
var oldestWithManifests = version.MajorMinor(1, 37)

// choose chooses the topology, and says why.
func (s *Stack) choose(ctx context.Context) error {
	if s.config.Topology != Any {
		return nil
	}
	server, err := cluster.ServerVersion(ctx)
	if err != nil {
		return err
	}
	if s.config.Topology = Static; server.LessThan(oldestWithManifests) {
		s.config.Topology = REST
		fmt.Fprintf(s.config.Log, "fieldperm: kube-apiserver %s reads no static manifests: installed as in the cluster, by objects of the API server\n", server)
	} else {
		fmt.Fprintf(s.config.Log, "fieldperm: installed beside kube-apiserver %s, by static manifests\n", server)
	}
	return nil
}

func (s *Stack) start(ctx context.Context) error {
	if err := s.choose(ctx); err != nil {
		return err
	}
	if err := s.place(); err != nil {
		return err
	}
	if err := s.writeFiles(ctx); err != nil {
		return err
	}
	if s.config.Observe != nil {
		if err := s.observe(strings.TrimPrefix(s.url, "https://")); err != nil {
			return err
		}
	}
	audit := ""
	if s.config.Audit {
		audit = s.AuditLog()
	}
	var err error
	server := s.ServerConfig()
	server.AuditLog = audit
	if s.Cluster, err = cluster.Start(ctx, server); err != nil {
		return err
	}
	if s.config.Address != "" {
		if err := s.Publish(ctx, cluster.APIServer); err != nil {
			return err
		}
	}
	objects := []string{"rbac.yaml", "flowschema.yaml"}
	if s.config.Topology == REST {
		objects = append(objects, "webhooks.yaml")
	}
	objects = append(objects, "guard.yaml")
	if s.config.Topology == REST {
		objects = slices.AppendSeq(objects, maps.Keys(s.config.Webhooks))
	}
	for _, name := range objects {
		if err := s.Apply(ctx, s.configuration(name)); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := s.StartWebhook(ctx); err != nil {
		return err
	}
	fmt.Fprintf(s.config.Log, "fieldperm: ready after %s at %s\n", time.Since(begin).Round(10*time.Millisecond), s.url)
	return s.AwaitBarriers(ctx)
}

// ServerConfig returns the configuration of the kube-apiserver, for a second one (AddAPIServer).
func (s *Stack) ServerConfig() cluster.Config {
	flags := map[string][]string{}
	if s.config.Address != "" {
		// Publish writes the endpoints instead.
		flags["endpoint-reconciler-type"] = []string{"none"}
	}
	maps.Copy(flags, s.config.ServerFlags)
	authentication := ""
	if s.config.Authentication != nil {
		authentication = s.configuration(authenticationFile)
	}
	return cluster.Config{
		AuthenticationConfig: authentication,
		AuthorizationConfig:  s.configuration("authorization-configuration.yaml"),
		AdmissionConfig:      s.configuration("admission-configuration.yaml"),
		Log:                  s.config.Log,
		Dir:                  s.dir,
		Address:              s.config.Address,
		ExtraArgs:            flags,
	}
}

// place chooses the addresses on which fieldperm listens.
func (s *Stack) place() error {
	var addresses []string
	for number := range max(1, s.config.Replicas) {
		port, err := cluster.FreePort()
		if err != nil {
			return fmt.Errorf("stack: fieldperm: %w", err)
		}
		s.replicas = append(s.replicas, &replica{name: replicaName(number), port: port})
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	s.url = s.replicas[0].url()
	if s.config.Observe != nil {
		port, err := cluster.FreePort()
		s.url = fmt.Sprintf("https://127.0.0.1:%d", port)
		return err
	}
	if s.config.Replicas == 0 {
		return nil
	}
	port, err := cluster.FreePort()
	if err != nil {
		return fmt.Errorf("stack: balancer: %w", err)
	}
	s.url = fmt.Sprintf("https://127.0.0.1:%d", port)
	s.balancer, err = newBalancer(fmt.Sprintf("127.0.0.1:%d", port), addresses)
	return err
}

// ownKubeconfig returns the kubeconfig file with which fieldperm calls kube-apiserver.
func (s *Stack) ownKubeconfig() (string, error) {
	own, err := s.User(User)
	if err != nil {
		return "", err
	}
	if !s.config.Proxied {
		return own.Kubeconfig, nil
	}
	file := s.configuration("proxy.kubeconfig")
	if s.proxy != nil {
		return file, nil
	}
	if s.proxy, err = newProxy(own.Config); err != nil {
		return "", fmt.Errorf("stack: %w", err)
	}
	content, err := s.proxy.kubeconfig(own.Config)
	if err != nil {
		return "", fmt.Errorf("stack: proxy: %w", err)
	}
	return file, os.WriteFile(file, content, 0o600)
}

// Apply applies a file, or the files of a directory that end in .yaml, as the administrator, by server-side apply.
func (s *Stack) Apply(ctx context.Context, path string) error {
	admin, err := s.User("admin", "system:masters")
	if err != nil {
		return err
	}
	objects, err := s.Objects(admin)
	if err != nil {
		return err
	}
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return fmt.Errorf("stack: %w", err)
		}
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("stack: %w", err)
		}
		if err := objects.Apply(ctx, string(manifest)); err != nil {
			return fmt.Errorf("stack: %s: %w", file, err)
		}
	}
	return nil
}

// Stop ends the processes and removes the directory. It may be called more than once; each call returns when everything is removed. The
// error names the processes that had to be killed.
func (s *Stack) Stop() error {
	s.stop.Do(func() {
		errs := []error{s.StopWebhook()}
		if s.Cluster != nil {
			errs = append(errs, s.Cluster.Stop())
		}
		if s.balancer != nil {
			errs = append(errs, s.balancer.stop())
		}
		if s.observer != nil {
			errs = append(errs, s.observer.stop())
		}
		if s.proxy != nil {
			errs = append(errs, s.proxy.stop())
		}
		s.stopErr = errors.Join(append(errs, s.watchdog.Release())...)
	})
	return s.stopErr
}

// Dir returns the directory of the stack, which Stop removes. It contains the directory of the cluster.
func (s *Stack) Dir() string { return s.dir }

// AuditLog returns the path of the audit log, with one event in a line; there is none if Config.Audit is not set.
func (s *Stack) AuditLog() string { return filepath.Join(s.dir, "audit.log") }

// Topology returns the kind of the installation.
func (s *Stack) Topology() Topology { return s.config.Topology }

// File returns the path of a file of fieldperm's configuration: the output of fieldperm-gen, and certificates.
func (s *Stack) File(name string) string { return s.configuration(name) }

// configuration returns the path of a file that fieldperm-gen wrote.
func (s *Stack) configuration(name string) string {
	return filepath.Join(s.dir, "config", name)
}
