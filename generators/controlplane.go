package generators

import (
	"encoding/json"
	"net"
	"net/url"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	webhookadmissionv1 "k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const admissionComment = `# For kube-apiserver --admission-control-config-file. If that file exists already, add the plugin to it.
`

func admissionConfiguration(o Options) (string, string, []any, error) {
	configuration := webhookadmissionv1.WebhookAdmission{
		TypeMeta:       metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "WebhookAdmissionConfiguration"},
		KubeConfigFile: o.at(fileAdmissionKey),
	}
	if !o.REST {
		configuration.StaticManifestsDir = o.at(path.Dir(fileStatic))
	}
	plugin, err := json.Marshal(configuration)
	return fileAdmission, admissionComment, []any{apiserverv1.AdmissionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AdmissionConfiguration"},
		Plugins: []apiserverv1.AdmissionPluginConfiguration{{
			Name:          "ValidatingAdmissionWebhook",
			Configuration: &runtime.Unknown{Raw: plugin, ContentType: runtime.ContentTypeJSON},
		}},
	}}, err
}

const authorizationComment = `# For kube-apiserver --authorization-config. If that file exists already, add the authorizer to its end.
# fieldperm comes last: it is asked only where nothing else had an opinion, so holders of the generic
# permission never wait for it. It only ever allows, so that its failure is no opinion: denying would
# refuse nothing that is not refused anyway, and would cut the chain for others. The times are short,
# because an Allow is right only as long as admission looks at the request, and because a new grant
# works when a cached "no opinion" is gone. When fieldperm is removed, it goes on enforcing for the time
# of its --release-delay (90s by default). That must exceed authorizedTTL, kube-apiserver's
# --request-timeout (60s by default) and 13s for proofs and calls under way together, so raise neither
# alone. kube-apiserver reads this file again when it changes, but not the kubeconfig that it names. The
# conditions leave out what fieldperm has no say in, the
# checks in the webhooks' own match conditions (version "*", which no request has: with fieldperm
# hanging, holders of patch alone would wait for them), its own requests, and its own questions for the
# generic permission, which must not be answered by itself.
`

func authorizationConfiguration(o Options) (string, string, []any, error) {
	kubeconfig := o.at(fileAuthorizerKey)
	var conditions []apiserverv1.WebhookMatchCondition
	for _, expression := range webhooks.AuthorizerConditions(o.User) {
		conditions = append(conditions, apiserverv1.WebhookMatchCondition{Expression: expression})
	}
	return fileAuthorization, authorizationComment, []any{apiserverv1.AuthorizationConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AuthorizationConfiguration"},
		Authorizers: []apiserverv1.AuthorizerConfiguration{
			{Type: "Node", Name: "node"},
			{Type: "RBAC", Name: "rbac"},
			{Type: string(apiserverv1.TypeWebhook), Name: webhooks.AuthorizerName, Webhook: &apiserverv1.WebhookConfiguration{
				AuthorizedTTL:                            metav1.Duration{Duration: o.AuthorizedTTL},
				UnauthorizedTTL:                          metav1.Duration{Duration: o.UnauthorizedTTL},
				Timeout:                                  metav1.Duration{Duration: webhooks.AuthorizeTimeout},
				SubjectAccessReviewVersion:               "v1",
				MatchConditionSubjectAccessReviewVersion: "v1",
				FailurePolicy:                            apiserverv1.FailurePolicyNoOpinion,
				ConnectionInfo: apiserverv1.WebhookConnectionInfo{
					Type:           apiserverv1.AuthorizationWebhookConnectionInfoTypeKubeConfigFile,
					KubeConfigFile: &kubeconfig,
				},
				MatchConditions: conditions,
			}},
		},
	}}, nil
}

const admissionKubeconfigComment = `# What kube-apiserver shows to admission webhooks. The user is named after fieldperm's address, and no
# context is current, so that no other webhook is shown fieldperm's client certificate.
`

func admissionKubeconfig(o Options) (string, string, []any, error) {
	hostPort, err := o.hostPort()
	if err != nil {
		return fileAdmissionKey, "", nil, err
	}
	return fileAdmissionKey, admissionKubeconfigComment, []any{clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config",
		Clusters:  []clientcmdv1.NamedCluster{},
		Contexts:  []clientcmdv1.NamedContext{},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: hostPort, AuthInfo: o.clientCertificate()}},
	}}, nil
}

// hostPort returns the name under which kube-apiserver looks up its credentials for a webhook. kube-apiserver tries the name with the
// port, and without the port if that is 443.
func (o Options) hostPort() (string, error) {
	if o.Service != nil {
		return o.Service.HostPort(), nil
	}
	u, err := url.Parse(o.ServiceURL)
	if err != nil {
		return "", err
	}
	if u.Port() != "" {
		return u.Host, nil
	}
	return net.JoinHostPort(u.Hostname(), "443"), nil
}

const authorizerKubeconfigComment = `# How kube-apiserver reaches fieldperm's authorizer.
`

const authorizerOfServiceComment = `# An authorizer has an address and no Service: kube-apiserver's host must reach it, and a cluster IP must stay.
`

func authorizerKubeconfig(o Options) (string, string, []any, error) {
	comment := authorizerKubeconfigComment
	if o.Service != nil {
		comment += authorizerOfServiceComment
	}
	cluster := clientcmdv1.Cluster{Server: o.ServiceURL + "/authorize", TLSServerName: o.TLSServerName, CertificateAuthorityData: o.CABundle}
	return fileAuthorizerKey, comment, []any{clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config",
		Clusters:       []clientcmdv1.NamedCluster{{Name: "fieldperm", Cluster: cluster}},
		AuthInfos:      []clientcmdv1.NamedAuthInfo{{Name: "kube-apiserver", AuthInfo: o.clientCertificate()}},
		Contexts:       []clientcmdv1.NamedContext{{Name: "fieldperm", Context: clientcmdv1.Context{Cluster: "fieldperm", AuthInfo: "kube-apiserver"}}},
		CurrentContext: "fieldperm",
	}}, nil
}

func (o Options) clientCertificate() clientcmdv1.AuthInfo {
	return clientcmdv1.AuthInfo{ClientCertificate: o.ClientCertificateFile, ClientKey: o.ClientKeyFile}
}
