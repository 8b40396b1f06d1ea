//go:build integration

package plugin

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/test/cluster"
)

// podThatSaysOK stores a Pod with the label of fieldperm-webhook, whose program answers "ok" to everything.
func podThatSaysOK(t *testing.T, client kubernetes.Interface, address, namespace string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	must(t, err)
	program := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	must(t, program.Listener.Close())
	program.Listener = listener
	program.StartTLS()
	t.Cleanup(program.Close)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	pod, err := client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fieldperm-0", Labels: map[string]string{"app.kubernetes.io/name": "fieldperm"}},
		Spec: corev1.PodSpec{NodeName: "none", Containers: []corev1.Container{{
			Name: "fieldperm", Image: "fieldperm-webhook:test", Args: []string{"serve", "--api-servers=all"}, Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: int32(port)}}, //nolint:gosec // A port is less than 65536.
		}}},
	}, metav1.CreateOptions{})
	must(t, err)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	_, err = client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
}

// TestCluster_StatusDoesNotTakeAPodOfAnotherNamespaceForAReplica: kube-apiserver does not ask fieldperm-webhook, and a user that may create
// Pods in one namespace runs a program that says "ok".
func TestCluster_StatusDoesNotTakeAPodOfAnotherNamespaceForAReplica(t *testing.T) {
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has no address that Pods may have")
	}
	p := newPlane(t)
	client, err := kubernetes.NewForConfig(p.admin.Config)
	must(t, err)
	podThatSaysOK(t, client, address, "team")
	code, s := statusJSON(t, p.admin)
	if code == 0 || s.State == diagnosis.Proven || len(s.Proofs) > 0 || len(s.Replicas) > 0 {
		t.Errorf("exit code %d, %s: %s, proofs %+v", code, s.State, s.Reason, s.Proofs)
	}
	_, out, problems := statusOf(t, p.admin)
	if strings.Contains(out, "team/fieldperm-0") || !strings.Contains(problems, `"team/fieldperm-0"`) {
		t.Errorf("%s%s", out, problems)
	}
	// Where the replicas are expected, its answer counts: the test would not see otherwise that the program can be reached.
	podThatSaysOK(t, client, address, "fieldperm-system")
	if _, s = statusJSON(t, p.admin); len(s.Proofs) != 1 || s.Proofs[0].State != diagnosis.Proven {
		t.Errorf("%s: %s, proofs %+v, missing %+v", s.State, s.Reason, s.Proofs, s.Missing)
	}
}
