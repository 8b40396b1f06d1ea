//go:build integration

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// statusOf runs the command as a user.
func statusOf(t *testing.T, u *cluster.User, args ...string) (code int, stdout, problems string) {
	t.Helper()
	var out, warnings bytes.Buffer
	cmd := NewStatusCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append(args, "--kubeconfig", u.Kubeconfig, "--cache-dir", t.TempDir()))
	err := cmd.ExecuteContext(t.Context())
	return ExitCode(err), out.String(), warnings.String()
}

func statusJSON(t *testing.T, u *cluster.User) (code int, s diagnosis.Status) {
	t.Helper()
	code, out, problems := statusOf(t, u, "-o", "json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v: %s %s", err, out, problems)
	}
	return code, s
}

// replicaPod stores the Pod of a fieldperm-webhook that runs on this machine, so that the Pod proxy leads to it.
func replicaPod(t *testing.T, s *stack.Stack, address string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.Admin())
	must(t, err)
	at, err := url.Parse(s.WebhookURL())
	must(t, err)
	var port int32
	_, err = fmt.Sscan(at.Port(), &port)
	must(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fieldperm-system"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.CoreV1().ServiceAccounts("fieldperm-system").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	pod, err := client.CoreV1().Pods("fieldperm-system").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fieldperm-0", Labels: map[string]string{"app.kubernetes.io/name": "fieldperm"}},
		Spec: corev1.PodSpec{NodeName: "none", Containers: []corev1.Container{{
			Name: "fieldperm", Image: "fieldperm-webhook:test", Args: []string{"serve", "--api-servers=all"}, Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: port}},
		}}},
	}, metav1.CreateOptions{})
	must(t, err)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	_, err = client.CoreV1().Pods("fieldperm-system").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
}

// TestCluster_StatusOfFieldpermInTheCluster: proven by the replica and by the answers of kube-apiserver; then not proven, because the webhook
// configuration is loose; then not proven, because kube-apiserver does not get an answer.
func TestCluster_StatusOfFieldpermInTheCluster(t *testing.T) {
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has no address that endpoints may have")
	}
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{
		Bin: bin, Topology: stack.REST, Address: address, Arguments: []string{"--bind-address", "0.0.0.0"}, UnauthorizedTTL: 1, AuthorizedTTL: 1,
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	none, err := s.User("none")
	must(t, err)
	p := &plane{t: t, cluster: s.Cluster, admin: admin}
	p.kubectl("", "create", "clusterrole", "scaler", "--verb=get,granular,granular:scale", "--resource=deployments.apps")
	p.kubectl("", "create", "clusterrolebinding", "scaler", "--clusterrole=scaler", "--user=scaler")
	replicaPod(t, s, address)
	must(t, s.AwaitGrants(t.Context()))

	var now diagnosis.Status
	p.await("enforcement is proven", func(context.Context) (bool, error) {
		var code int
		code, now = statusJSON(t, admin)
		return code == 0, nil
	})
	if now.State != diagnosis.Proven || len(now.Proofs) != 1 || now.Proofs[0].State != diagnosis.Proven || len(now.Servers) != 1 || now.Since == nil || len(now.Missing) > 0 {
		t.Errorf("%+v", now)
	}
	if now.Answer == nil || now.Answer.State != diagnosis.Proven || now.Answer.Servers != 1 {
		t.Errorf("answer: %+v", now.Answer)
	}
	var versions bytes.Buffer
	cmd := NewVersionCommand(genericiooptions.IOStreams{Out: &versions, ErrOut: &versions})
	cmd.SetArgs([]string{"--kubeconfig", admin.Kubeconfig})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(versions.String(), "\nServer Version: ") || !strings.Contains(versions.String(), "\nKubernetes Version: v1.") {
		t.Errorf("version: %v: %s", err, &versions)
	}
	code, out, _ := statusOf(t, admin)
	if code != 0 || !strings.HasPrefix(out, "ENFORCEMENT: proven\n") {
		t.Errorf("exit code %d, %s", code, out)
	}

	// A user without permissions learns what it may not read, and no proof.
	code, nothing := statusJSON(t, none)
	if code != 2 || nothing.State != diagnosis.Unknown || len(nothing.Missing) < 2 || nothing.Causes == nil {
		t.Errorf("without permissions: exit code %d, %+v", code, nothing)
	}

	p.kubectl("", "delete", "validatingadmissionpolicybinding", "fieldperm-guard")
	p.await("the guard is gone, and the webhook configuration is loose", func(context.Context) (bool, error) {
		_, _, err := s.Kubectl(admin).Run(t.Context(), "", "patch", "validatingwebhookconfiguration", "fieldperm", "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
		return err == nil, nil
	})
	p.await("the replica knows it", func(context.Context) (bool, error) {
		_, now = statusJSON(t, admin)
		return len(now.Proofs) == 1 && now.Proofs[0].State == diagnosis.NotProven, nil
	})
	code, out, _ = statusOf(t, admin)
	if code != 1 || !strings.HasPrefix(out, "ENFORCEMENT: not proven\n") || !strings.Contains(out, "has not failurePolicy Fail") || !strings.Contains(out, "apply it again") {
		t.Errorf("loose: exit code %d, %s", code, out)
	}
	// What the user is told leads back to the proof, not to a grant.
	scaler, err := s.User("scaler")
	must(t, err)
	_, told, _ := s.Kubectl(scaler).Run(t.Context(), "", "create", "deployment", "web", "--image=web")
	if code, answers := whyOf(t, scaler, told); code != 0 || len(answers) != 1 || !answers[0].NotProven || answers[0].Grant != nil {
		t.Errorf("%s: exit code %d, %+v", told, code, answers)
	}
	if now.Answer.State != diagnosis.NotProven || !strings.Contains(now.Answer.Message, "has not failurePolicy Fail") {
		t.Errorf("answer: %+v", now.Answer)
	}
}

// TestCluster_StatusOfAProcessWithStaticManifests: there is no Pod, nobody holds the marker, and it is proven.
func TestCluster_StatusOfAProcessWithStaticManifests(t *testing.T) {
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Topology: stack.Static})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	code, out, problems := statusOf(t, admin)
	if code != 0 || !strings.HasPrefix(out, "ENFORCEMENT: proven\n") || problems != "" {
		t.Errorf("exit code %d, %s%s", code, out, problems)
	}
}

// TestCluster_StatusOfFieldpermThatIsNotCalled: fieldperm-webhook runs and kube-apiserver does not ask it. The conditions of objects say what
// compiles.
func TestCluster_StatusOfFieldpermThatIsNotCalled(t *testing.T) {
	p := newPlane(t)
	p.grant(map[string][]string{"marked": {"granular"}, "nobody": {"get"}})
	p.kubectl(`
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: good}, spec: {group: batch, kind: Job, permissions: [{path: .spec.suspend, verb: example.com/rest}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: faulty}, spec: {group: batch, kind: Job, permissions: [{path: .spec.suspended, verb: example.com/rest}]}}
`, "create", "-f", "-")
	var code int
	var s diagnosis.Status
	states := map[string]string{}
	p.await("the conditions are written", func(context.Context) (bool, error) {
		code, s = statusJSON(t, p.admin)
		for _, o := range s.Sources {
			states[o.Name] = o.Compiled
		}
		return states["good"] == "True" && states["faulty"] == "False", nil
	})
	if code != 1 || s.State != diagnosis.NotProven || len(s.Causes) != 3 || !strings.Contains(s.Reason, "does not ask fieldperm who may write") {
		t.Errorf("exit code %d, %+v", code, s)
	}
	for _, o := range s.Sources {
		if o.Name == "faulty" && (!strings.Contains(o.Message, ".spec.suspended") || o.InForce != lastForm) {
			t.Errorf("%+v", o)
		}
	}
	if states["gadgets.example.com"] != "True" || states["broken.example.com"] != "False" {
		t.Errorf("annotations: %v", states)
	}
	_, out, _ := statusOf(t, p.admin)
	t.Log(out)
}
