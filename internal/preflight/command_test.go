package preflight

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

const (
	chain = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: RBAC, name: rbac}
- type: Webhook
  name: cluster
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}
`
	issuers = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://a.example, audiences: [a]}
  claimMappings: {username: {claim: sub, prefix: "a:"}}
`
	mice = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: mice.example.com
spec:
  group: example.com
  scope: Cluster
  names: {plural: mice, singular: mouse, kind: Mouse}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size: {type: integer, x-kubernetes-permission-verb: size, x-kubernetes-permission-excluded: true}
`
	fragment = `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: priority}
spec:
  fragment: podSpec
  permissions:
  - {path: .priority, verb: priority, excluded: true}
`
	kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`
)

func files(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"chain": chain, "issuers": issuers, "mice.yaml": mice, "fragment.yaml": fragment, "kubeconfig": kubeconfig,
		"bad-chain":   strings.ReplaceAll(strings.Replace(chain, "rbac}", "roles}", 1), "3s", "31s"),
		"bad-issuers": strings.Replace(issuers, "https:", "http:", 1),
		"bad.yaml":    strings.Replace(mice, "verb: size", "verb: Si-ze", 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(probes Probes, dir string, args ...string) (stdout string, err error) {
	var out, errs bytes.Buffer
	command := NewCommand(probes)
	command.SilenceErrors = true
	command.SetOut(&out)
	command.SetErr(&errs)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$DIR", dir)
	}
	command.SetArgs(args)
	err = command.Execute()
	return strings.ReplaceAll(out.String()+errs.String(), dir, "$DIR"), err
}

func TestSummary(t *testing.T) {
	got, err := run(Probes{}, files(t), "--authorization-config=$DIR/chain", "--authentication-config=$DIR/issuers", "--permission-schemas=$DIR/mice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"authorizers of $DIR/chain, in their order:\n  1. rbac (RBAC), decides in process, from the cluster's roles and bindings\n  2. cluster (Webhook), asks the SubjectAccessReview API of kube-apiserver in v1, failurePolicy Deny, timeout 3s, allowed kept 5m0s, not allowed kept 30s, no conditions\n" +
			"  warning: $DIR/chain:7: authorizers[1].webhook.authorizedTTL: is 5m0s: a verb that is revoked may count for so long: ",
		"issuers of $DIR/issuers:\n  https://a.example, trusts the system's CAs, audience a, username from claim \"sub\" behind \"a:\", groups from nothing, uid from nothing, no rules\n",
		"permission schemas of $DIR/mice.yaml:\n  example.com/v1 Mouse: verbs granular:*, ",
		"granular:size",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

// Every fault of every file is reported, each on a line of its own, and nothing else is printed.
func TestFaults(t *testing.T) {
	dir := files(t)
	got, err := run(Probes{}, dir, "--authorization-config=$DIR/bad-chain", "--authentication-config=$DIR/bad-issuers", "--permission-schemas=$DIR/bad.yaml")
	if err == nil || got != "" {
		t.Fatalf("%v, printed %q", err, got)
	}
	lines := strings.Split(strings.ReplaceAll(err.Error(), dir, "$DIR"), "\n")
	if len(lines) != 5 || lines[0] != "configuration has 4 faults:" {
		t.Errorf("said %q", lines)
	}
	for _, want := range []string{"$DIR/bad-chain:4: authorizers[0].name: ", "$DIR/bad-chain:7: authorizers[1].webhook.timeout: ", "$DIR/bad-issuers:4: jwt[0].issuer.url: ", "$DIR/bad.yaml:17: /spec/versions/0/"} {
		if !strings.Contains(strings.ReplaceAll(err.Error(), dir, "$DIR"), "\n"+want) {
			t.Errorf("lacks %q: %v", want, err)
		}
	}
	var problem configfile.Problem
	if !errors.As(err, &problem) || problem.Line != 4 {
		t.Errorf("the first is %+v", problem)
	}
}

func TestBadCommandLines(t *testing.T) {
	dir := files(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no file to check: give --authorization-config, "},
		{[]string{"file"}, `argument "file": check-config takes flags only: `},
		{[]string{"--kubeconfig=x", "--authorization-config=$DIR/chain"}, "--kubeconfig has no meaning without --probe"},
		{[]string{"--authorization-config=$DIR/none"}, "configuration has 1 fault:\n--authorization-config: open "},
		{[]string{"--authentication-config=$DIR/none"}, "configuration has 1 fault:\n--authentication-config: open "},
		{[]string{"--permission-schemas=$DIR/none"}, "configuration has 1 fault:\n" + dir + "/none:"},
		{[]string{"--authorization-config=$DIR/chain", "--probe"}, "--probe: webhooks cannot be asked by this program"},
		{[]string{"--authentication-config=$DIR/issuers", "--probe"}, "--probe: issuers cannot be asked by this program"},
	} {
		if _, err := run(Probes{}, dir, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestProbe(t *testing.T) {
	dir := files(t)
	var asked []string
	faulty := false
	probes := Probes{
		Webhooks: func(_ context.Context, loaded *configfile.Authorization, cluster *rest.Config) []error {
			asked = append(asked, loaded.Configuration.Authorizers[1].Name+" "+cluster.Host)
			if faulty {
				return []error{errors.New(`authorizer "cluster": is down: start it`)}
			}
			return nil
		},
		Issuers: func(_ context.Context, configuration *apiserver.AuthenticationConfiguration) []error {
			asked = append(asked, configuration.JWT[0].Issuer.URL)
			return nil
		},
	}
	args := []string{"--authorization-config=$DIR/chain", "--authentication-config=$DIR/issuers", "--kubeconfig=$DIR/kubeconfig", "--probe"}
	if _, err := run(probes, dir, args[:2]...); err != nil || len(asked) != 0 {
		t.Errorf("without --probe: %v, asked %q", err, asked)
	}
	if _, err := run(probes, dir, args...); err != nil || strings.Join(asked, ", ") != "cluster https://127.0.0.1:1, https://a.example" {
		t.Errorf("%v, asked %q", err, asked)
	}
	faulty = true
	if got, err := run(probes, dir, args...); err == nil || got != "" || !strings.HasSuffix(err.Error(), ":\nauthorizer \"cluster\": is down: start it") {
		t.Errorf("a webhook that is down: %v, printed %q", err, got)
	}
	args[2] = "--kubeconfig=$DIR/none"
	if _, err := run(probes, dir, args...); err == nil || !strings.Contains(err.Error(), "--kubeconfig: ") {
		t.Errorf("a kubeconfig that does not exist: %v", err)
	}
}

// TestCommand_SaysWhereAFragmentIs, and which other fields the API server fills the guarded one from.
func TestCommand_SaysWhereAFragmentIs(t *testing.T) {
	got, err := run(Probes{}, files(t), "--permission-schemas=$DIR/fragment.yaml")
	if want := "fragment.yaml: fragment podSpec, in 13 kinds\n"; err != nil || !strings.Contains(got, want) || !strings.Contains(got, "fills it from .spec.priorityClassName") {
		t.Errorf("%v, %q", err, got)
	}
}
