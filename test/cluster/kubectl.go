package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Kubectl is the real kubectl as one user.
type Kubectl struct {
	path       string
	home       string
	kubeconfig string
}

// Kubectl returns kubectl for a user of this cluster.
func (c *Cluster) Kubectl(user *User) *Kubectl {
	return &Kubectl{path: filepath.Join(c.assets, "kubectl"), home: filepath.Join(c.dir, "home"), kubeconfig: user.Kubeconfig}
}

// Run runs kubectl with args and stdin, and returns its output. The error is nil if kubectl exits with 0, holds an [exec.ExitError] if it
// exits otherwise, and ctx's error if ctx ended first.
func (k *Kubectl) Run(ctx context.Context, stdin string, args ...string) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig=" + k.kubeconfig}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	// Caches and preferences are in the cluster's directory, not in that of the user that runs the test.
	cmd.Env = append(os.Environ(), "HOME="+k.home, "KUBECACHEDIR="+filepath.Join(k.home, "cache"), "KUBECONFIG=", "KUBERC=off")
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), err
}
