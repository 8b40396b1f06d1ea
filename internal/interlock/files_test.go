package interlock

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// testFiles are the files of a control plane, as fieldperm-gen manifests writes them.
type testFiles struct {
	*Manifests
	manifest string // the generated file
}

// servingCertificate is shared by all tests, because making one is slow.
var servingCertificate = sync.OnceValues(func() ([]byte, error) {
	serving, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	return serving, err
})

func newFiles(t *testing.T) *testFiles {
	t.Helper()
	serving, err := servingCertificate()
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := cert.ParseCertsPEM(serving)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.EncodeCertificates(certificates[len(certificates)-1])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := generators.Manifests(generators.Options{ConfigDir: dir, Options: webhooks.Options{ServiceURL: "https://127.0.0.1:9443", CABundle: ca}})
	if err != nil {
		t.Fatal(err)
	}
	out := &testFiles{Manifests: &Manifests{
		Directory: filepath.Join(dir, "admission"), AuthorizationConfig: filepath.Join(dir, "authorization-configuration.yaml"),
		Certificate: func() []byte { return serving },
		LongestTTL:  webhooks.LongestTTL(webhooks.DefaultReleaseDelay),
	}}
	for _, file := range files {
		path := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out.manifest = filepath.Join(out.Directory, "fieldperm.yaml")
	return out
}

// hashes returns the hashes that a server publishes when it has loaded the current files.
func (f *testFiles) hashes(t *testing.T) Hashes {
	t.Helper()
	hashes, _, err := f.Read(begin())
	if hashes == (Hashes{}) {
		t.Fatal(err)
	}
	return hashes
}

// replace edits a file. It fails if the file does not contain old.
func replace(t *testing.T, path, old, by string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), old) {
		t.Fatalf("%s: has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), old, by, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// another returns a webhook that is not fieldperm's, or that only has its name.
func another(name, url string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: another.static.k8s.io}
webhooks:
- name: ` + name + `
  clientConfig: {url: "` + url + `"}
  admissionReviewVersions: [v1]
  sideEffects: None
`
}

func TestA5_GeneratedManifestsAreProof(t *testing.T) {
	f := newFiles(t)
	if _, _, err := f.Read(begin()); err != nil {
		t.Fatal(err)
	}
	// granular may be the only webhook, and there may be webhooks of others.
	raw, err := os.ReadFile(f.manifest)
	if err != nil {
		t.Fatal(err)
	}
	alone, _, found := strings.Cut(string(raw), "- admissionReviewVersions:\n  - v1\n  clientConfig:\n    caBundle: ")
	if !found {
		t.Fatal("the file is another than this test knows")
	}
	rest := string(raw)[len(alone):]
	if at := strings.Index(rest[1:], "- admissionReviewVersions:"); at >= 0 {
		rest = rest[:at+1]
	}
	add(t, f.manifest, alone+rest)
	add(t, filepath.Join(f.Directory, "others.yaml"), another("policy.example.com", "https://policy.example.com/admit"))
	add(t, filepath.Join(f.Directory, "README"), "no manifest")
	if _, _, err := f.Read(begin()); err != nil {
		t.Error(err)
	}
}

func TestA5_WeakerFilesAreNoProof(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *testFiles)
		says   string
	}{
		"failurePolicy": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "failurePolicy: Fail", "failurePolicy: Ignore")
		}, "failurePolicy"},
		"no failurePolicy": {func(t *testing.T, f *testFiles) { replace(t, f.manifest, "  failurePolicy: Fail\n", "") }, "failurePolicy"},
		"matchPolicy": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "matchPolicy: Equivalent", "matchPolicy: Exact")
		}, "matchPolicy"},
		"sideEffects": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "sideEffects: None", "sideEffects: NoneOnDryRun")
		}, "sideEffects"},
		"a group": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "apiGroups:\n    - '*'", "apiGroups:\n    - apps")
		}, "every resource"},
		"a version": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "apiVersions:\n    - '*'", "apiVersions:\n    - v1")
		}, "every resource"},
		"a resource":   {func(t *testing.T, f *testFiles) { replace(t, f.manifest, "- '*/*'", "- '*'") }, "every resource"},
		"a scope":      {func(t *testing.T, f *testFiles) { replace(t, f.manifest, "scope: '*'", "scope: Namespaced") }, "every resource"},
		"an operation": {func(t *testing.T, f *testFiles) { replace(t, f.manifest, "    - CREATE\n", "") }, "CREATE"},
		"an object": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "  matchConditions:\n", "  matchConditions:\n  - expression: request.name != 'spared'\n    name: spared\n")
		}, "match condition"},
		"a selector": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "  matchPolicy: Equivalent\n", "  matchPolicy: Equivalent\n  objectSelector: {matchLabels: {a: b}}\n")
		}, "objectSelector"},
		"another host": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, "https://127.0.0.1:9443/admit/granular", "https://127.0.0.2:9443/admit/granular")
		}, "does not lead to"},
		"another path": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, ":9443/admit/granular", ":9443/admit/granular/x")
		}, "does not call"},
		"a query": {func(t *testing.T, f *testFiles) {
			replace(t, f.manifest, ":9443/admit/granular", ":9443/x?/admit/granular")
		}, "URL"},
		"another CA": {func(t *testing.T, f *testFiles) {
			serving, _, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
			must(t, err)
			f.Certificate = func() []byte { return serving }
		}, "does not lead to"},
		"a decoy": {func(t *testing.T, f *testFiles) {
			add(t, filepath.Join(f.Directory, "decoy.yaml"), another("decoy.example.com", "https://127.0.0.1:9443/admit//granular"))
		}, "is for the webhook"},
		"a decoy for uncovered": {func(t *testing.T, f *testFiles) {
			add(t, filepath.Join(f.Directory, "decoy.yaml"), another("decoy.example.com", "https://127.0.0.1:9443/admit/uncovered"))
		}, "is for the webhook"},
		"a second": {func(t *testing.T, f *testFiles) {
			add(t, filepath.Join(f.Directory, "a.yaml"), another(webhooks.GranularWebhook, "https://127.0.0.1:9443/admit/granular"))
		}, "two webhooks"},
		"an empty directory": {func(t *testing.T, f *testFiles) { must(t, os.Remove(f.manifest)) }, "there is no webhook"},
		"no directory":       {func(t *testing.T, f *testFiles) { must(t, os.RemoveAll(f.Directory)) }, "mount"},
		"a faulty manifest":  {func(t *testing.T, f *testFiles) { replace(t, f.manifest, "failurePolicy", "failurepolicy") }, "unknown field"},
		"no chain":           {func(t *testing.T, f *testFiles) { must(t, os.Remove(f.AuthorizationConfig)) }, "mount"},
		"a faulty chain":     {func(t *testing.T, f *testFiles) { add(t, f.AuthorizationConfig, "a: b") }, "AuthorizationConfiguration"},
		"another is last": {func(t *testing.T, f *testFiles) {
			replace(t, f.AuthorizationConfig, "authorizers:\n", "authorizers:\n")
			raw, err := os.ReadFile(f.AuthorizationConfig)
			must(t, err)
			head, tail, found := strings.Cut(string(raw), "kind: AuthorizationConfiguration")
			if !found {
				t.Fatal("the file is another than this test knows")
			}
			add(t, f.AuthorizationConfig, head+"- name: always\n  type: AlwaysAllow\nkind: AuthorizationConfiguration"+tail)
		}, "not the last"},
		"not in the chain": {func(t *testing.T, f *testFiles) {
			replace(t, f.AuthorizationConfig, "name: fieldperm\n", "name: other\n")
		}, "no authorizer"},
		"an Allow for long": {func(t *testing.T, f *testFiles) {
			replace(t, f.AuthorizationConfig, "authorizedTTL: 10s", "authorizedTTL: 5m0s")
		}, "authorizedTTL"},
		"an Allow by default": {func(t *testing.T, f *testFiles) { replace(t, f.AuthorizationConfig, "    authorizedTTL: 10s\n", "") }, "authorizedTTL"},
		"its own questions": {func(t *testing.T, f *testFiles) {
			replace(t, f.AuthorizationConfig, "request.user != ", "request.user == ")
		}, "match condition"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t)
			c.change(t, f)
			if _, _, err := f.Read(begin()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want an error that says %q", err, c.says)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
