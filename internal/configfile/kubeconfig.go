package configfile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// connections checks the connections of webhooks, and collects their files. Each kubeconfig is read once, even if several webhooks
// name it.
func (c chain) connections(out *Authorization) {
	seen := map[string]bool{}
	for i, one := range c.configuration.Authorizers {
		if one.Webhook == nil {
			continue
		}
		path := child(item("authorizers", i), "webhook")
		info := one.Webhook.ConnectionInfo
		switch info.Type {
		case apiserver.AuthorizationWebhookConnectionInfoTypeInCluster:
			if one.Webhook.SubjectAccessReviewVersion == "v1beta1" {
				c.report(child(path, "subjectAccessReviewVersion"), `"v1beta1" is not served by kube-apiserver, which connectionInfo.type InClusterConfig asks`, "write subjectAccessReviewVersion: v1")
			}
		case apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile:
			at := child(path, "connectionInfo.kubeConfigFile")
			if info.KubeConfigFile == nil || !regular(*info.KubeConfigFile) || c.covered(at) {
				// k8s.io/apiserver's validation reports this fault.
				continue
			}
			if file := *info.KubeConfigFile; !seen[file] {
				seen[file] = true
				out.Files = append(out.Files, c.kubeconfig(at, file, "")...)
			}
		default:
			if strings.EqualFold(info.Type, "KubeConfig") {
				c.report(child(path, "connectionInfo.type"), quoted(info.Type)+" is not supported", "write KubeConfigFile")
			}
		}
	}
	slices.Sort(out.Files)
	out.Files = slices.Compact(out.Files)
}

func regular(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && filepath.IsAbs(file)
}

// kubeconfig checks a context of a kubeconfig that an authorizer names, "" for the current one. It returns the kubeconfig and the files that the
// context names. Faults are reported with their position in the kubeconfig.
func (c chain) kubeconfig(at, file, context string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		c.report(at, "cannot be read: "+err.Error(), "let fieldperm's user read it")
		return nil
	}
	k := &kubeconfig{reading: newReading(file, data, language{compiles: func(string) bool { return false }})}
	files := append([]string{file}, k.check(data, context)...)
	c.problems = append(c.problems, k.problems...)
	c.warnings = append(c.warnings, k.warnings...)
	return files
}

// kubeconfig is a kubeconfig during reading.
type kubeconfig struct{ *reading }

func (k *kubeconfig) check(data []byte, context string) []string {
	if k.tree.value == nil {
		k.hide()
		return nil
	}
	unknown := map[string]string{}
	k.healed, _ = shape{
		report:  k.report,
		unknown: func(path, _, cure string) { unknown[path] = cure },
	}.fit(k.tree.value, "", reflect.TypeFor[clientcmdv1.Config]())
	k.hide()
	for path, cure := range unknown {
		k.warn(path, "is not a field of a kubeconfig, and is ignored", cure)
	}
	slices.Sort(k.warnings)
	config, err := clientcmd.Load(data)
	if err != nil {
		if len(k.problems) == 0 {
			k.report("", "is not a kubeconfig: "+err.Error(), "write one with apiVersion: v1 and kind: Config")
		}
		return nil
	}
	for _, one := range config.Clusters {
		one.LocationOfOrigin = k.file
	}
	for _, one := range config.AuthInfos {
		one.LocationOfOrigin = k.file
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		k.report("", err.Error(), "")
		return nil
	}
	if context != "" {
		if config.Contexts[context] == nil {
			k.report("contexts", "no context has the name "+quoted(context), "add it, or correct "+ConditionsContext)
			return nil
		}
		config.CurrentContext = context
	}
	return k.current(config)
}

// hide removes quoted values from faults if they may be credentials, because faults are logged and shown.
func (k *kubeconfig) hide() {
	for i := range k.problems {
		if p := &k.problems[i]; strings.HasPrefix(p.Key, "users") {
			p.Message, p.Cure = "is not what belongs there; it may be a credential, and is not shown", "see that the file is YAML and the value a text in quotes, as kubectl config view has it"
		}
	}
}

// current checks only the context in use.
func (k *kubeconfig) current(config *clientcmdapi.Config) []string {
	context := config.Contexts[config.CurrentContext]
	switch {
	case config.CurrentContext == "":
		k.report("current-context", "is missing", "write the name of one of the contexts")
		return nil
	case context == nil:
		k.report("current-context", "no context has the name "+quoted(config.CurrentContext), "write the name of one of the contexts")
		return nil
	}
	at := child(k.named("contexts", config.CurrentContext), "context")
	cluster := config.Clusters[context.Cluster]
	if cluster == nil {
		k.report(child(at, "cluster"), "no cluster has the name "+quoted(context.Cluster), "write the name of one of the clusters")
	}
	user := config.AuthInfos[context.AuthInfo]
	if context.AuthInfo != "" && user == nil {
		k.report(child(at, "user"), "no user has the name "+quoted(context.AuthInfo), "write the name of one of the users, or leave user out")
	}
	files := k.cluster(child(k.named("clusters", context.Cluster), "cluster"), cluster)
	files = append(files, k.user(child(k.named("users", context.AuthInfo), "user"), user)...)
	if len(k.problems) == 0 {
		k.usable(config)
	}
	return files
}

// named returns the path of the item with a name in a list.
func (k *kubeconfig) named(list, name string) string {
	items, _ := k.value(list).([]any)
	for i, one := range items {
		if fields, ok := one.(map[string]any); ok && fields["name"] == name {
			return item(list, i)
		}
	}
	return list
}

func (k *kubeconfig) cluster(at string, cluster *clientcmdapi.Cluster) []string {
	if cluster == nil {
		return nil
	}
	switch server := child(at, "server"); {
	case cluster.Server == "":
		k.report(server, "is missing", "write the webhook's address, https://…")
	case !strings.HasPrefix(cluster.Server, "https://"):
		k.report(server, quoted(cluster.Server)+" is not https", "write https://…: questions about rights must be encrypted")
	}
	if cluster.InsecureSkipTLSVerify {
		k.warn(child(at, "insecure-skip-tls-verify"), "is true: an attacker in the network can answer in place of the webhook", "name its CA in certificate-authority instead")
	}
	return k.exist(map[string]string{child(at, "certificate-authority"): cluster.CertificateAuthority})
}

func (k *kubeconfig) user(at string, user *clientcmdapi.AuthInfo) []string {
	if user == nil {
		return nil
	}
	if user.Exec != nil {
		k.warn(child(at, "exec"), "runs the program "+quoted(user.Exec.Command)+" on each node", "use a client certificate or tokenFile if the program is not sure to be there")
	}
	if user.AuthProvider != nil {
		k.warn(child(at, "auth-provider"), "is deprecated", "use a client certificate, tokenFile or exec")
	}
	return k.exist(map[string]string{
		child(at, "client-certificate"): user.ClientCertificate,
		child(at, "client-key"):         user.ClientKey,
		child(at, "tokenFile"):          user.TokenFile,
	})
}

// exist reports files that do not exist. It returns all files that are named.
func (k *kubeconfig) exist(files map[string]string) []string {
	var out []string
	for at, file := range files {
		if file == "" {
			continue
		}
		out = append(out, file)
		info, err := os.Stat(file)
		switch {
		case err != nil:
			k.report(at, err.Error(), "write the path of a file that exists; a relative one starts at the kubeconfig's directory")
		case !info.Mode().IsRegular():
			k.report(at, quoted(file)+" is not a regular file", "write the path of a regular file")
		}
	}
	return out
}

// usable reports other faults that client-go finds: invalid certificates, keys that do not match them, credentials that exclude
// each other.
func (k *kubeconfig) usable(config *clientcmdapi.Config) {
	client, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err == nil && client.AuthProvider == nil {
		plain := rest.CopyConfig(client)
		plain.ExecProvider = nil
		// Otherwise client-go would read the files only at the first request.
		if err = rest.LoadTLSFiles(plain); err == nil {
			_, err = rest.TLSConfigFor(plain)
		}
	}
	if err == nil {
		return
	}
	at := "users"
	if text := err.Error(); strings.Contains(text, "root certificates") || strings.Contains(text, "authority") {
		at = "clusters"
	}
	context := config.Contexts[config.CurrentContext]
	at = k.named(at, map[string]string{"clusters": context.Cluster, "users": context.AuthInfo}[at])
	k.report(at, fmt.Sprintf("cannot be used: %v", err), cmp.Or(map[bool]string{true: "name a PEM file with the certificates of the webhook's CA"}[strings.HasPrefix(at, "clusters")], "name a certificate in PEM and the key that belongs to it, or one other credential"))
}
