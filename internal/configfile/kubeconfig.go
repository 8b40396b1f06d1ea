package configfile

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// kubeconfig checks a context of a kubeconfig that an authorizer names, "" for the current one. It returns the kubeconfig and the
// files that the context names. Faults are reported with their position in the kubeconfig.
func (d *document) kubeconfig(at, file, context string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		d.report(at, "cannot be read: "+err.Error(), "let fieldperm's user read it")
		return nil
	}
	k := read(file, data, true)
	files := append([]string{file}, k.inUse(context)...)
	d.problems = append(d.problems, k.problems...)
	for _, warning := range k.warnings {
		if !slices.Contains(d.warnings, warning) { // Another context of the file has the same.
			d.warnings = append(d.warnings, warning)
		}
	}
	return files
}

// inUse checks a context with its cluster and user, and nothing of the others. It returns the files that these name.
func (d *document) inUse(name string) []string {
	if d.tree == nil {
		return nil
	}
	d.fit(reflect.TypeFor[clientcmdv1.Config](), func(path, cure string) {
		d.warn(path, "is not a field of a kubeconfig, and is ignored", cure)
	})
	config, err := clientcmd.LoadFromFile(d.file)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(config)
	}
	if err != nil {
		if len(d.problems) == 0 {
			d.report("", "is not a kubeconfig: "+err.Error(), "write one with apiVersion: v1 and kind: Config")
		}
		return nil
	}
	from := "current-context"
	if name != "" {
		from, config.CurrentContext = "contexts", name
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.CurrentContext == "" {
		d.report(from, "no context has the name "+quoted(config.CurrentContext), "write the name of one of the contexts, here or in "+ConditionsContext)
		return nil
	}
	files, contextAt := map[string]string{}, d.entry("contexts", config.CurrentContext)+".context"
	if cluster := config.Clusters[context.Cluster]; cluster == nil {
		d.report(contextAt+".cluster", "no cluster has the name "+quoted(context.Cluster), "write the name of one of the clusters")
	} else {
		at := d.entry("clusters", context.Cluster) + ".cluster"
		files[at+".certificate-authority"] = cluster.CertificateAuthority
		if !strings.HasPrefix(cluster.Server, "https://") {
			d.report(at+".server", quoted(cluster.Server)+" is not https", "write the webhook's address, https://…: questions about rights must be encrypted")
		}
		if cluster.InsecureSkipTLSVerify {
			d.warn(at+".insecure-skip-tls-verify", "is true: an attacker in the network can answer in place of the webhook", "name its CA in certificate-authority instead")
		}
	}
	if user := config.AuthInfos[context.AuthInfo]; user == nil && context.AuthInfo != "" {
		d.report(contextAt+".user", "no user has the name "+quoted(context.AuthInfo), "write the name of one of the users, or leave user out")
	} else if user != nil {
		at := d.entry("users", context.AuthInfo) + ".user"
		files[at+".client-certificate"], files[at+".client-key"], files[at+".tokenFile"] = user.ClientCertificate, user.ClientKey, user.TokenFile
		if user.Exec != nil {
			d.warn(at+".exec", "runs the program "+quoted(user.Exec.Command)+" on each node", "use a client certificate or tokenFile if the program is not sure to be there")
		}
		if user.AuthProvider != nil {
			d.warn(at+".auth-provider", "is deprecated", "use a client certificate, tokenFile or exec")
		}
	}
	maps.DeleteFunc(files, func(_, file string) bool { return file == "" })
	for at, file := range files {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			d.report(at, quoted(file)+" is no regular file that exists", "write the path of a file; a relative one starts at the kubeconfig's directory")
		}
	}
	if len(d.problems) == 0 {
		d.usable(contextAt, config)
	}
	return slices.Collect(maps.Values(files))
}

// entry returns the path of the item with a name in a list, or of the first.
func (d *document) entry(list, name string) string {
	items, _ := d.tree[list].([]any)
	return item(list, max(0, slices.IndexFunc(items, func(one any) bool {
		fields, _ := one.(map[string]any)
		return fields["name"] == name
	})))
}

// usable reports what else client-go finds: invalid certificates, keys that do not match them, credentials that exclude each other.
func (d *document) usable(at string, config *clientcmdapi.Config) {
	client, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err == nil && client.AuthProvider == nil {
		plain := rest.CopyConfig(client)
		plain.ExecProvider = nil
		// Otherwise client-go would read the files only at the first request.
		if err = rest.LoadTLSFiles(plain); err == nil {
			_, err = rest.TLSConfigFor(plain)
		}
	}
	if err != nil {
		d.report(at, "cannot be used: "+err.Error(), "name a CA in PEM for its cluster, and for its user a certificate in PEM and the key that belongs to it, or one other credential")
	}
}
