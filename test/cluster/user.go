package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// mastersGroup is the group whose requests pass before the authorization chain.
const mastersGroup = "system:masters"

// User is a user of a cluster with a client certificate.
type User struct {
	Name   string
	Groups []string

	// Config has the certificate, and no client-side rate limit.
	Config *rest.Config

	// Kubeconfig is the path of a file with the same content, in the cluster's directory.
	Kubeconfig string
}

// User returns the user of that name and groups, and issues the certificate on the first call. It may be any
// name: "system:serviceaccount:shop:robot" with its groups is that service account to the API server.
func (c *Cluster) User(name string, groups ...string) (*User, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range c.users {
		if user.Name == name && slices.Equal(user.Groups, groups) {
			return user, nil
		}
	}

	issued, err := c.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("user %q: certificate: %w", name, err)
	}
	kubeconfig, err := issued.KubeConfig()
	if err != nil {
		return nil, fmt.Errorf("user %q: kubeconfig: %w", name, err)
	}
	path, err := c.kubeconfigPath(name)
	if err != nil {
		return nil, fmt.Errorf("user %q: %w", name, err)
	}
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("user %q: kubeconfig: %w", name, err)
	}
	user := &User{Name: name, Groups: slices.Clone(groups), Config: issued.Config(), Kubeconfig: path}
	c.users = append(c.users, user)
	return user, nil
}

// kubeconfigPath returns a free file name that contains the user's name. It has no colon, which separates the files in $KUBECONFIG.
func (c *Cluster) kubeconfigPath(name string) (string, error) {
	base := filepath.Join(c.dir, "kubeconfigs", regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(name, "-"))
	path := base + ".kubeconfig"
	for n := 2; ; n++ {
		_, err := os.Lstat(path)
		if os.IsNotExist(err) {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		path = fmt.Sprintf("%s-%d.kubeconfig", base, n)
	}
}
