package generators

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// options returns valid options.
func options(t *testing.T) Options {
	return Options{
		Options:   webhooks.Options{ServiceURL: "https://127.0.0.1:9443", CABundle: read(t, "ca.crt")},
		ConfigDir: "/etc/kubernetes/fieldperm",
	}
}

// barriers are rules for Options.Uncovered.
func barriers() []v1alpha1.ResourceRule {
	return []v1alpha1.ResourceRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions", "customresourcedefinitions/status"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"widgets"}},
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
	named.ServiceURL, named.User = "https://fieldperm.example.com/", `o"dd user`
	named.ClientCertificateFile, named.ClientKeyFile = "/pki/client.pem", "/pki/client-key.pem"
	named.AuthorizedTTL, named.UnauthorizedTTL = time.Second, 2*time.Second
	rest := options(t)
	rest.REST = true
	service := rest
	service.ServiceURL, service.Service = "https://10.96.0.20", &webhooks.ServiceReference{Namespace: "fieldperm-system", Name: "fieldperm"}
	written := options(t)
	written.REST, written.Service, written.TLSServerName = true, &webhooks.ServiceReference{Namespace: "a", Name: "b", Port: 9443}, "fieldperm.example.com"
	written.Uncovered = barriers()
	written.CABundleUsers, written.AuthorizedTTL, written.ReleaseDelay = []string{"alice"}, 15*time.Second, 91*time.Second
	for name, o := range map[string]Options{"defaults": options(t), "named": named, "rest": rest, "service": service, "written": written} {
		t.Run(name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", "manifests", name), manifests(t, o))
		})
	}
}

// The files name each other by ConfigDir, so writing them there must give a working set.
func TestManifestsNameEachOther(t *testing.T) {
	for _, rest := range []bool{false, true} {
		o := options(t)
		o.ConfigDir, o.REST = t.TempDir(), rest
		checkManifests(t, o)
	}
}

func checkManifests(t *testing.T, o Options) {
	t.Helper()
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
	checkAdmission(t, filepath.Join(o.ConfigDir, fileAdmission), !o.REST)
	for _, name := range []string{fileAuthorizerKey, fileAdmissionKey} {
		if _, err := clientcmd.LoadFromFile(filepath.Join(o.ConfigDir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManifestsClientCertificateGoesToFieldpermOnly(t *testing.T) {
	service := &webhooks.ServiceReference{Namespace: "a", Name: "b"}
	for _, c := range []struct {
		url     string
		service *webhooks.ServiceReference
		user    string
	}{
		{"https://127.0.0.1:9443", nil, "127.0.0.1:9443"},
		{"https://[::1]:9443", nil, "[::1]:9443"},
		{"https://fieldperm.example.com", nil, "fieldperm.example.com:443"},
		{"https://10.96.0.20:9443", service, "b.a.svc:443"},
		{"https://10.96.0.20", &webhooks.ServiceReference{Namespace: "a", Name: "b", Port: 8443}, "b.a.svc:8443"},
	} {
		url, user := c.url, c.user
		o := options(t)
		o.ServiceURL, o.Service, o.REST = url, c.service, c.service != nil
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
		var inDefault rbacv1.RoleBinding
		var flow flowcontrolv1.FlowSchema
		for raw, into := range map[string]any{string(documents[0]): &role, string(documents[1]): &binding, string(documents[3]): &inDefault, string(file(t, files, fileFlowSchema)): &flow} {
			if err := yaml.UnmarshalStrict([]byte(raw), into); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(inDefault.Subjects, binding.Subjects) {
			t.Errorf("user %q: bound to %v, in default to %v", user, binding.Subjects, inDefault.Subjects)
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
	}
}

// Every rule that permits changes is for named objects, for reviews, or for a status.
func TestManifestsOwnUserMayDoLittle(t *testing.T) {
	o := options(t)
	for _, rest := range []bool{false, true} {
		o.REST, o.Uncovered = rest, nil
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(bytes.Split(file(t, manifests(t, o), fileRBAC), []byte("---\n"))[0], &role); err != nil {
			t.Fatal(err)
		}
		var writes []string
		for _, rule := range role.Rules {
			if verbs := strings.Join(rule.Verbs, ","); verbs != "get,list,watch" && verbs != "list,watch" {
				writes = append(writes, verbs+" "+strings.Join(append(rule.Resources, rule.NonResourceURLs...), ",")+" "+strings.Join(rule.ResourceNames, ","))
			}
		}
		want := []string{
			"create subjectaccessreviews ", "patch permissionschemas/status,uncoveredpermissionsets/status,conditionalpolicies/status,permissionobservations/status ",
			"impersonate users fieldperm:probe", "impersonate userextras/fieldperm.dev/probe ",
		}
		if rest {
			want = append(want, "update,patch validatingwebhookconfigurations fieldperm", "create,update,patch,delete validatingwebhookconfigurations fieldperm-uncovered")
		} else {
			want = append(want, "get /metrics ", "create,update,patch validatingwebhookconfigurations fieldperm-uncovered")
		}
		want = append(want, "create,update,patch validatingwebhookconfigurations fieldperm-observed")
		if !slices.Equal(writes, want) {
			t.Errorf("REST %t: fieldperm's user may %q, want %q", rest, writes, want)
		}
	}
}

// In-process RBAC watches all four kinds, and needs only the verbs of an informer.
func TestKEP3221_OwnUserMayFollowRBAC(t *testing.T) {
	o := options(t)
	for _, rest := range []bool{false, true} {
		o.REST, o.Uncovered = rest, nil
		raw := file(t, manifests(t, o), fileRBAC)
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(bytes.Split(raw, []byte("---\n"))[0], &role); err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if slices.Contains(rule.APIGroups, rbacv1.GroupName) {
					got[resource] = append(got[resource], rule.Verbs...)
				}
			}
		}
		if len(got) != 4 {
			t.Errorf("REST %t: the rules of RBAC are %v", rest, got)
		}
		for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
			if !slices.Equal(got[resource], []string{"list", "watch"}) {
				t.Errorf("REST %t: fieldperm's user may %q %s", rest, got[resource], resource)
			}
		}
		if !bytes.Contains(raw, []byte("#   roles, rolebindings, ")) || !bytes.Contains(raw, []byte("drop the rule.")) {
			t.Errorf("REST %t: no comment gives the purpose of the rule and the user that may delete it", rest)
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
		"TTL of the release":  {func(o *Options) { o.AuthorizedTTL = 17 * time.Second }, "authorized TTL 17s: with the 1m0s that a request may take"},
		"short release":       {func(o *Options) { o.ReleaseDelay = 80 * time.Second }, "make it shorter than 7s"},
		"service":             {func(o *Options) { o.Service = &webhooks.ServiceReference{Namespace: "a", Name: "b"} }, "choose the REST configuration"},
		"service's name":      {func(o *Options) { o.REST, o.Service = true, &webhooks.ServiceReference{Namespace: "a", Name: "B"} }, `service "B" in namespace "a"`},
		"server name":         {func(o *Options) { o.REST, o.TLSServerName = true, "x" }, `TLS server name "x": is for the authorizer alone`},
		"bad server name": {func(o *Options) {
			o.REST, o.Service, o.TLSServerName = true, &webhooks.ServiceReference{Namespace: "a", Name: "b"}, "x:1"
		}, `TLS server name "x:1": is not a DNS name`},
		"CA users":      {func(o *Options) { o.CABundleUsers = []string{"alice"} }, "fieldperm itself writes the CA bundle"},
		"empty CA user": {func(o *Options) { o.REST, o.CABundleUsers = true, []string{""} }, `user "": is empty`},
		"empty rule":    {func(o *Options) { o.REST, o.Uncovered = true, []v1alpha1.ResourceRule{{}} }, "uncovered rule 0"},
		"static rules":  {func(o *Options) { o.Uncovered = barriers() }, "are kept by fieldperm itself"},
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
