package generators

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// options are valid ones, with a barrier.
func options(t *testing.T) Options {
	return Options{
		ServiceURL: "https://127.0.0.1:9443",
		CABundle:   read(t, "ca.crt"),
		ConfigDir:  "/etc/kubernetes/fieldperm",
		Uncovered: []v1alpha1.ResourceRule{
			{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions", "customresourcedefinitions/status"}},
			{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}},
		},
	}
}

func manifests(t *testing.T, o Options) []File {
	t.Helper()
	files, err := Manifests(o)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// file returns one of the generated files.
func file(t *testing.T, files []File, name string) []byte {
	t.Helper()
	for _, f := range files {
		if f.Name == name {
			return f.Data
		}
	}
	t.Fatalf("no file %q", name)
	return nil
}

func TestManifestsGolden(t *testing.T) {
	named := options(t)
	named.ServiceURL, named.User, named.Uncovered = "https://fieldperm.example.com/", `o"dd user`, nil
	named.ClientCertificateFile, named.ClientKeyFile = "/pki/client.pem", "/pki/client-key.pem"
	named.AuthorizedTTL, named.UnauthorizedTTL = time.Second, 2*time.Second
	for name, o := range map[string]Options{"defaults": options(t), "named": named} {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", "manifests", name), manifests(t, o))
		})
	}
}

// The files name each other by ConfigDir, so writing them there must give a working set.
func TestManifestsNameEachOther(t *testing.T) {
	o := options(t)
	o.ConfigDir = t.TempDir()
	files := manifests(t, o)
	for _, f := range files {
		path := filepath.Join(o.ConfigDir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checkAuthorization(t, filepath.Join(o.ConfigDir, fileAuthorization))
	checkAdmission(t, filepath.Join(o.ConfigDir, fileAdmission))
	for _, name := range []string{fileAuthorizerKey, fileAdmissionKey} {
		if _, err := clientcmd.LoadFromFile(filepath.Join(o.ConfigDir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManifestsClientCertificateGoesToFieldpermOnly(t *testing.T) {
	for url, user := range map[string]string{
		"https://127.0.0.1:9443": "127.0.0.1:9443", "https://[::1]:9443": "[::1]:9443",
		"https://fieldperm.example.com": "fieldperm.example.com:443",
	} {
		o := options(t)
		o.ServiceURL = url
		config, err := clientcmd.Load(file(t, manifests(t, o), fileAdmissionKey))
		if err != nil {
			t.Fatal(err)
		}
		if config.CurrentContext != "" || len(config.AuthInfos) != 1 || config.AuthInfos[user] == nil {
			t.Errorf("%s: context %q, users %v: want no context and only %q", url, config.CurrentContext, config.AuthInfos, user)
		}
	}
}

func TestManifestsOwnUser(t *testing.T) {
	for user, subject := range map[string]string{
		"":                            "ServiceAccount fieldperm-system/fieldperm",
		"system:serviceaccount:a:b":   "ServiceAccount a/b",
		"system:serviceaccount:a":     "User system:serviceaccount:a",
		"system:serviceaccount:a:b:c": "User system:serviceaccount:a:b:c",
		"fieldperm":                   "User fieldperm",
	} {
		o := options(t)
		o.User = user
		files := manifests(t, o)
		documents := bytes.Split(file(t, files, fileRBAC), []byte("---\n"))
		var role rbacv1.ClusterRole
		var binding rbacv1.ClusterRoleBinding
		var flow flowcontrolv1.FlowSchema
		for raw, into := range map[string]any{string(documents[0]): &role, string(documents[1]): &binding, string(file(t, files, fileFlowSchema)): &flow} {
			if err := yaml.UnmarshalStrict([]byte(raw), into); err != nil {
				t.Fatal(err)
			}
		}
		if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 {
			t.Errorf("user %q: binding of %q to %v", user, binding.RoleRef.Name, binding.Subjects)
		}
		bound := binding.Subjects[0]
		got := bound.Kind + " " + strings.TrimPrefix(bound.Namespace+"/"+bound.Name, "/")
		if got != subject {
			t.Errorf("user %q: bound to %q, want %q", user, got, subject)
		}
		from := flow.Spec.Rules[0].Subjects[0]
		if string(from.Kind) != bound.Kind {
			t.Errorf("user %q: flow schema for %v", user, from)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				if verb != "get" && verb != "list" && verb != "watch" && (verb != "create" || rule.Resources[0] != "subjectaccessreviews") {
					t.Errorf("role allows %s %v: it must not write anything", verb, rule.Resources)
				}
			}
		}
	}
}

func TestManifestsBadOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"zero value":  {func(o *Options) { *o = Options{} }, `service URL ""`},
		"plain HTTP":  {func(o *Options) { o.ServiceURL = "http://127.0.0.1:9443" }, "is not of the form https://host:port"},
		"path":        {func(o *Options) { o.ServiceURL += "/admit" }, "is not of the form https://host:port"},
		"query":       {func(o *Options) { o.ServiceURL += "?timeout=1s" }, "is not of the form https://host:port"},
		"credentials": {func(o *Options) { o.ServiceURL = "https://a:b@127.0.0.1:9443" }, "is not of the form https://host:port"},
		"no host":     {func(o *Options) { o.ServiceURL = "https://:9443" }, "is not of the form https://host:port"},
		"no URL":      {func(o *Options) { o.ServiceURL = "https://127.0.0.1:x" }, "write it as https://host:port"},
		"no CA":       {func(o *Options) { o.CABundle = nil }, "CA bundle: has no certificate"},
		"CA no PEM":   {func(o *Options) { o.CABundle = []byte("certificate") }, "CA bundle: has text that is no PEM block"},
		"CA with key": {func(o *Options) {
			o.CABundle = []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
		}, `block of type "PRIVATE KEY"`},
		"CA no certificate": {func(o *Options) {
			o.CABundle = []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		}, "CA bundle: certificate 1"},
		"relative directory":  {func(o *Options) { o.ConfigDir = "fieldperm" }, `configuration directory "fieldperm": is not absolute`},
		"relative client key": {func(o *Options) { o.ClientCertificateFile, o.ClientKeyFile = "/a", "b" }, `client key file "b": is not absolute`},
		"half a client":       {func(o *Options) { o.ClientCertificateFile = "/a" }, `client key file "": is not absolute`},
		"user":                {func(o *Options) { o.User = "a\nb" }, `user "a\nb"`},
		"TTL":                 {func(o *Options) { o.AuthorizedTTL = -1 }, "is negative"},
		"empty rule":          {func(o *Options) { o.Uncovered = []v1alpha1.ResourceRule{{}} }, "uncovered rule 0"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			c.change(&o)
			files, err := Manifests(o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
			if files != nil {
				t.Error("files in spite of the error")
			}
		})
	}
}
