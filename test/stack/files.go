package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// authenticationFile is kube-apiserver's AuthenticationConfiguration.
const authenticationFile = "authentication-configuration.yaml"

// writeFiles creates the certificates and the configuration files of kube-apiserver.
func (s *Stack) writeFiles(ctx context.Context) error {
	for _, dir := range []string{"config", "pids"} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o700); err != nil {
			return fmt.Errorf("stack: %w", err)
		}
	}
	var err error
	if s.authority, err = cluster.NewAuthority("fieldperm-local"); err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	if err := writeCertificates(s.configuration(""), s.authority); err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	args := []string{
		"manifests",
		"--out", s.configuration(""), "--config-dir", s.configuration(""),
		"--url", s.url, "--ca-file", s.configuration(caFile), "--user", User,
	}
	if s.config.Topology == REST {
		args = append(args, "--rest")
	}
	for flag, ttl := range map[string]time.Duration{"--authorized-ttl": s.config.AuthorizedTTL, "--unauthorized-ttl": s.config.UnauthorizedTTL} {
		if ttl != 0 {
			args = append(args, flag, ttl.String())
		}
	}
	if _, err := s.Generate(ctx, args...); err != nil {
		return err
	}
	for name, content := range s.config.Webhooks {
		if s.config.Topology == Static {
			name = filepath.Join("admission", name)
		}
		if err := os.WriteFile(s.configuration(name), content, 0o600); err != nil {
			return fmt.Errorf("stack: %w", err)
		}
	}
	if s.config.Authentication != nil {
		if err := os.WriteFile(s.configuration(authenticationFile), s.config.Authentication, 0o600); err != nil {
			return fmt.Errorf("stack: %w", err)
		}
	}
	if s.config.Prepare == nil {
		return nil
	}
	arguments, err := s.config.Prepare(s.configuration(""))
	if err != nil {
		return fmt.Errorf("stack: prepare: %w", err)
	}
	s.config.Arguments = append(s.config.Arguments[:len(s.config.Arguments):len(s.config.Arguments)], arguments...)
	return nil
}

// Generate runs fieldperm-gen and returns what it wrote to its standard output.
func (s *Stack) Generate(ctx context.Context, args ...string) (string, error) {
	return s.GenerateIn(ctx, "", args...)
}

// GenerateIn runs fieldperm-gen in a directory, such as that of a module with Go types. "" is the working directory.
func (s *Stack) GenerateIn(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.config.Bin, "fieldperm-gen"), args...) //nolint:gosec // Our own binary.
	var stdout, stderr strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("fieldperm-gen %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
