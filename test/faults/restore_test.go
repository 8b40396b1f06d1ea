//go:build integration

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// inProcess is a chain of RBAC in process only.
const inProcess = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: RBAC, name: rbac}
`

// levels is a barrier on one key of ConfigMaps, as an object.
const levels = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: levels}
spec:
  uncoveredPermissions: [granular:datum(level)]
  resources: [{apiGroups: [""], resources: [configmaps]}]
`

const (
	// relisted limits the time from the return of the API server until fieldperm has listed again. The longest delay of client-go between two
	// attempts is one minute.
	relisted = 90 * time.Second
	// steady is longer than one second: client-go itself lists again after a watch that was shorter and had no event.
	steady = 3 * time.Second
	// noticed is the time in which fieldperm notices that the API server has ended: its watches end, and the next ones are refused.
	noticed = time.Second
	// reconnected is the time in which fieldperm reaches the restored API server, which is still behind the versions that fieldperm knows.
	reconnected = 10 * time.Second
	// ahead is the number of writes between the backup and the changes that the restore undoes. An API server writes fewer at its start.
	ahead = 200
	// stays is the time for which the state after the restore is watched.
	stays = 5 * time.Second
)

// TestFaults_EtcdIsRestored: etcd is restored from a backup, fieldperm reaches the API server again, and new writes pass the last resource
// version that fieldperm has seen. A grant and the deletion of a barrier, both later than the backup, have never happened then: fieldperm
// must know neither. The test freezes fieldperm while the API server starts, because one that is not ready refuses watches with errors after
// which client-go itself lists again.
func TestFaults_EtcdIsRestored(t *testing.T) {
	config := configuration(t, stack.Static)
	config.Schemas, config.Replicas, config.Proxied = nil, 0, false
	config.Prepare = func(dir string) ([]string, error) {
		file := filepath.Join(dir, "chain.yaml")
		return []string{"--authorization-config", file}, os.WriteFile(file, []byte(inProcess), 0o600)
	}
	s, err := stack.Start(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("fieldperm's log ends in:\n" + s.WebhookLogTail())
		}
	})
	c := &scene{Stack: s}
	c.admin, err = kubernetes.NewForConfig(s.Admin())
	must(t, err)
	ctx := t.Context()
	c.installKinds(t)
	c.kubectl(t, levels, "apply", "--server-side", "-f", "-")
	object, err := c.admin.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "levelled"}, Data: map[string]string{"level": "1"}}, metav1.CreateOptions{})
	must(t, err)
	at := "/api/v1/namespaces/default/configmaps/" + object.Name
	c.role(t, "everything", "granular:*")
	alice, bob := c.holder(t, "alice", "granular"), c.holder(t, "bob", "update", "patch")

	write := func(client *rest.RESTClient) error {
		_, err := patch(at, `{"data":{"level":"$N"}}`)(ctx, client, int(sequence.Add(1)))
		return err
	}
	refused := func() error {
		var errs []error
		for name, client := range map[string]*rest.RESTClient{"alice, without a verb of the field,": alice, "bob, behind the barrier,": bob} {
			if err := write(client); !apierrors.IsForbidden(err) {
				errs = append(errs, fmt.Errorf("%s is not refused: %w", name, orNone(err)))
			}
		}
		return errors.Join(errs...)
	}
	await(t, recoverWithin, refused)
	backup := c.backup(t)
	await(t, relisted, refused)

	c.advance(t, "before", version(t, object.ResourceVersion)+ahead)
	c.bind(t, "everything", "alice")
	must(t, c.admin.RESTClient().Delete().AbsPath("/apis/fieldperm.dev/v1alpha1/uncoveredpermissionsets/levels").Do(ctx).Error())
	await(t, recoverWithin, func() error { return errors.Join(write(alice), write(bob)) })
	object, err = c.admin.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, object.Name, metav1.GetOptions{})
	must(t, err)

	time.Sleep(steady)
	c.restoreEtcd(t, backup)
	began := time.Now()
	time.Sleep(reconnected)
	c.advance(t, "after", version(t, object.ResourceVersion))
	await(t, relisted, refused)
	t.Logf("the restored state counts after %s", time.Since(began).Round(100*time.Millisecond))
	for began = time.Now(); time.Since(began) < stays; {
		must(t, refused())
	}
}

// holder makes a user that may get ConfigMaps and holds the verbs on them, and returns its client.
func (c *scene) holder(t *testing.T, name string, verbs ...string) *rest.RESTClient {
	t.Helper()
	c.role(t, name, append(verbs, "get")...)
	c.bind(t, name, name)
	user, err := c.User(name)
	must(t, err)
	client, err := rawClient(user.Config)
	must(t, err)
	return client
}

// role makes a ClusterRole with verbs on ConfigMaps.
func (c *scene) role(t *testing.T, name string, verbs ...string) {
	t.Helper()
	_, err := c.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// bind grants a user a ClusterRole.
func (c *scene) bind(t *testing.T, role, user string) {
	t.Helper()
	_, err := c.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{})
	must(t, err)
}

// stopped runs f while neither etcd nor kube-apiserver runs.
func (c *scene) stopped(t *testing.T, f func() error) {
	t.Helper()
	must(t, c.Shutdown(cluster.APIServer))
	must(t, c.Shutdown(cluster.Etcd))
	must(t, f())
	ctx := context.WithoutCancel(t.Context())
	must(t, c.Boot(ctx, cluster.Etcd))
	must(t, c.Boot(ctx, cluster.APIServer))
}

// backup copies the data of etcd and returns the directory of the copy.
func (c *scene) backup(t *testing.T) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "etcd")
	c.stopped(t, func() error { return os.CopyFS(copied, os.DirFS(c.EtcdData())) })
	return copied
}

// restoreEtcd replaces the data of etcd by a copy. fieldperm notices that the API server ends, and is frozen until the next one is ready.
func (c *scene) restoreEtcd(t *testing.T, copied string) {
	t.Helper()
	c.stopped(t, func() error {
		time.Sleep(noticed)
		return errors.Join(c.SignalReplica(0, syscall.SIGSTOP), os.RemoveAll(c.EtcdData()), os.CopyFS(c.EtcdData(), os.DirFS(copied)))
	})
	must(t, c.SignalReplica(0, syscall.SIGCONT))
}

// advance creates a Lease and writes it until its resource version is higher than limit, which the API server must not have reached.
func (c *scene) advance(t *testing.T, name string, limit int) {
	t.Helper()
	leases := c.admin.CoordinationV1().Leases(metav1.NamespaceDefault)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	if is := version(t, lease.ResourceVersion); is > limit {
		t.Fatalf("the API server is at %d, which is not before %d", is, limit)
	}
	for version(t, lease.ResourceVersion) <= limit {
		lease.Labels = map[string]string{"write": lease.ResourceVersion}
		lease, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		must(t, err)
	}
}

func version(t *testing.T, text string) int {
	t.Helper()
	out, err := strconv.Atoi(text)
	must(t, err)
	return out
}
