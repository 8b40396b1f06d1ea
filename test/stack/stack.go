package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/watchdog"
)

// User is the name under which fieldperm calls the API server here.
const User = "fieldperm"

// Config says what to start. Only Bin is required.
type Config struct {
	// Bin is the directory of the built fieldperm-gen and fieldperm-webhook.
	Bin string
	// Schemas are files or directories for --permission-schemas of fieldperm-webhook and of fieldperm-gen manifests.
	Schemas []string
	// Definitions are files or directories that fieldperm-gen manifests reads besides: CustomResourceDefinitions that
	// will be installed, so that the webhook for barriers covers them. fieldperm-webhook reads those from the cluster.
	Definitions []string
	// Webhooks are further static webhook configurations, by file name.
	Webhooks map[string][]byte
	// Arguments are further flags of fieldperm-webhook serve.
	Arguments []string
	// Audit asks for an audit log, see Stack.AuditLog.
	Audit bool
	// Log takes a line for each step of the start. Nil: none.
	Log io.Writer
}

// Stack is a running control plane with fieldperm in it. All methods of the cluster are there too, Stop and Dir are the
// stack's. Only the cluster's may be called concurrently.
type Stack struct {
	*cluster.Cluster

	config   Config
	dir      string
	url      string
	webhook  *process
	watchdog *watchdog.Watchdog

	// probes numbers questions that must not be answered from a cache.
	probes int

	stop    sync.Once
	stopErr error
}

// Start starts all and returns when fieldperm is ready. The context bounds the start only. If it fails, nothing is
// left, and the error has the end of the log of what failed.
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

func (s *Stack) start(ctx context.Context) error {
	if err := s.writeFiles(ctx); err != nil {
		return err
	}
	audit := ""
	if s.config.Audit {
		audit = s.AuditLog()
	}
	var err error
	s.Cluster, err = cluster.Start(ctx, cluster.Config{
		AuthorizationConfig: s.configuration("authorization-configuration.yaml"),
		AdmissionConfig:     s.configuration("admission-configuration.yaml"),
		AuditLog:            audit,
		Log:                 s.config.Log,
		Dir:                 s.dir,
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"rbac.yaml", "flowschema.yaml"} {
		if err := s.apply(ctx, s.configuration(name)); err != nil {
			return err
		}
	}
	begin := time.Now()
	if err := s.StartWebhook(ctx); err != nil {
		return err
	}
	fmt.Fprintf(s.config.Log, "fieldperm: ready after %s at %s\n", time.Since(begin).Round(10*time.Millisecond), s.url)
	return nil
}

// apply installs what fieldperm-gen wrote for the cluster.
func (s *Stack) apply(ctx context.Context, file string) error {
	admin, err := s.User("admin", "system:masters")
	if err != nil {
		return err
	}
	if _, stderr, err := s.Kubectl(admin).Run(ctx, "", "apply", "--server-side", "-f", file); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	return nil
}

// Stop ends the processes and removes the directory. It may be called more than once; each call returns when all is
// gone. The error says what did not go by itself.
func (s *Stack) Stop() error {
	s.stop.Do(func() {
		errs := []error{s.StopWebhook()}
		if s.Cluster != nil {
			errs = append(errs, s.Cluster.Stop())
		}
		s.stopErr = errors.Join(append(errs, s.watchdog.Release())...)
	})
	return s.stopErr
}

// Dir returns the directory of the stack, removed by Stop. The cluster's own one lies in it.
func (s *Stack) Dir() string { return s.dir }

// AuditLog returns the path of the log of audit events, one in a line; there is none if Config.Audit is not set.
func (s *Stack) AuditLog() string { return filepath.Join(s.dir, "audit.log") }

// configuration returns the path of a file that fieldperm-gen wrote.
func (s *Stack) configuration(name string) string {
	return filepath.Join(s.dir, "config", name)
}
