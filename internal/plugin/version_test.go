package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// versionOf runs the version command against an API server that answers with a code and a configuration.
func versionOf(t *testing.T, code int, configuration string, args ...string) (stdout string, err error) {
	t.Helper()
	api := fakeapi.Plain(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"major":"1","minor":"37","gitVersion":"v1.37.2"}`))
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(configuration))
	}))
	var out bytes.Buffer
	cmd := NewVersionCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	cmd.SetArgs(append([]string{"--kubeconfig", api.Kubeconfig(t), "--cache-dir", t.TempDir()}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersion(t *testing.T) {
	const found = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"fieldperm-uncovered","annotations":{"fieldperm.dev/written-by":"v1.2.3"}}}`
	const status = `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"no","reason":"`
	for name, c := range map[string]struct {
		code          int
		configuration string
		want          string
		unread        bool
	}{
		"installed":     {http.StatusOK, found, "\nServer Version: v1.2.3\nKubernetes Version: v1.37.2\n", false},
		"no version":    {http.StatusOK, strings.Replace(found, "written-by", "other", 1), "\nServer Version: unknown (it was built without a version)\n", false},
		"not installed": {http.StatusNotFound, status + `NotFound","code":404}`, "\nServer Version: unknown: there is no webhook configuration \"fieldperm-uncovered\": fieldperm is not installed, or has never run\nKubernetes", true},
		"not readable":  {http.StatusForbidden, status + `Forbidden","code":403}`, "allow to get it\nKubernetes", true},
	} {
		got, err := versionOf(t, c.code, c.configuration)
		if !strings.HasPrefix(got, "Client Version: ") || !strings.Contains(got, c.want) || errors.Is(err, ErrUnread) != c.unread || err != nil && !c.unread {
			t.Errorf("%s: %v: %s", name, err, got)
		}
		var asJSON map[string]string
		got, err = versionOf(t, c.code, c.configuration, "-o", "json")
		if json.Unmarshal([]byte(got), &asJSON) != nil || asJSON["kubernetesVersion"] != "v1.37.2" || (asJSON["missing"] != "") != c.unread || errors.Is(err, ErrUnread) != c.unread {
			t.Errorf("%s: %v: %s", name, err, got)
		}
	}
	if got, err := versionOf(t, http.StatusOK, found, "--client"); err != nil || strings.Contains(got, "Server") {
		t.Errorf("--client: %v: %s", err, got)
	}
	if _, err := versionOf(t, http.StatusOK, found, "-o", "table"); ExitCode(err) != 2 {
		t.Errorf("-o table: %v", err)
	}
}
