package interlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const (
	// probeTimeout bounds one probe. The response depends on fieldperm itself only.
	probeTimeout = 3 * time.Second
	// Name is the name of the object that a probe would create, and of its field manager, if the dry run were written.
	Name = "fieldperm-probe"
)

// Result is how a probe ended.
type Result string

// The results. NotEnforced is the worst: admission would not look at a write by a holder of the marker.
const (
	Enforced    Result = "enforced"
	NotEnforced Result = "not_enforced"
	Unproven    Result = "error"
)

var (
	// ErrNotFound means that the target names an object that does not exist.
	ErrNotFound = errors.New("there is no such object")
	// ErrOtherState means that a kube-apiserver does not have the webhook configuration that fieldperm writes as it is stored.
	ErrOtherState = errors.New("does not have the rules of the webhook configuration " + webhooks.UncoveredName)
	// errPassed means that nothing refused a probe.
	errPassed = errors.New("a probe passed admission, so that a holder of the marker could write any field: the webhook is missing, narrowed or ignored there: apply what fieldperm-gen manifests wrote again; with a static manifest see that --admission-control-config-file names it; or every user may write there: see that `kubectl auth can-i patch configmaps -n kube-system --as " + admission.ProbeUser + "` says no")
)

// Prober sends probes.
type Prober struct {
	Tokens *ProbeTokens
	// Observe is called for each probe.
	Observe func(server string, result Result, took time.Duration)
}

// Prove sends one probe to a server. A nil error is the proof. body is the object of a CREATE.
func (p *Prober) Prove(ctx context.Context, server Server, target Target, body map[string]any, mode Mode) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	nonces, answer, err := p.send(ctx, server, target, body, mode)
	if err != nil {
		return err
	}
	result, err := p.judge(target, nonces, answer)
	if p.Observe != nil && !errors.Is(err, ErrNotFound) {
		p.Observe(server.Address, result, time.Since(started))
	}
	if err != nil {
		return describe(server, target, err)
	}
	return nil
}

func describe(server Server, target Target, err error) error {
	return fmt.Errorf("kube-apiserver %s: %s of %s: %w", server.Address, strings.ToLower(string(target.Operation)), resourceName(target), err)
}

// Answer is the answer of a server to a probe that asks what it has loaded. The zero Answer says nothing.
type Answer struct {
	tokens  *ProbeTokens
	nonces  []string
	message string
}

func (a Answer) says(text string) bool {
	return a.tokens != nil && a.tokens.said(a.nonces, a.message, text)
}

// Loaded sends one probe to a server, and returns what it has loaded. The error wraps ErrOtherState if the server has no configuration of fieldperm with a
// webhook for this probe. Its text has nothing that others have written, so that it stays the same: cause has that.
func (p *Prober) Loaded(ctx context.Context, server Server, target Target) (answer Answer, err, cause error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	nonces, said, err := p.send(ctx, server, target, podTemplate(), ModeLoaded)
	if err != nil {
		return Answer{}, err, nil
	}
	switch result, err := p.judge(target, nonces, said); {
	case result == NotEnforced:
		return Answer{}, fmt.Errorf("kube-apiserver %s: %w: see that its admission plugin ValidatingAdmissionWebhook is on, and that it can watch webhook configurations; if other kube-apiservers have them, restart this one", server.Address, ErrOtherState), nil
	case apierrors.IsForbidden(said) && strings.Contains(said.Error(), "cannot create resource"):
		return Answer{}, fmt.Errorf("kube-apiserver %s: %q may not create podtemplates in kube-system: apply rbac.yaml of fieldperm-gen manifests again", server.Address, admission.ProbeUser), said
	case err != nil:
		own := strings.Replace(describe(server, target, err).Error(), " ("+said.Error()+")", ": the log has its answer", 1)
		return Answer{}, errors.New(own), said
	}
	return Answer{p.Tokens, nonces, said.Error()}, nil, nil
}

// granularProbe returns the target of the probes that take the way of a granular user: an object that every kube-apiserver creates when it starts.
func granularProbe() Target {
	return Target{Operation: admissionv1.Update, Version: "v1", Resource: webhooks.GranularProbed, Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}
}

// uncoveredProbe returns the target of the probe that asks which rules for barriers a server has loaded. rbac.yaml lets the user of probes create it, so that
// the probe needs no authorizer that asks fieldperm.
func uncoveredProbe() Target {
	return Target{Operation: admissionv1.Create, Version: "v1", Resource: webhooks.UncoveredProbed, Namespace: metav1.NamespaceSystem}
}

// podTemplate returns the object of uncoveredProbe.
func podTemplate() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"generateName": Name + "-", "namespace": metav1.NamespaceSystem}, // Nobody can be in its way.
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": Name, "image": Name}}}},
	}
}

// send sends one probe. answer is the API server's response. err is set if no probe was sent.
func (p *Prober) send(ctx context.Context, server Server, target Target, body map[string]any, mode Mode) (nonces []string, answer, err error) {
	nonces = p.Tokens.Mint(target, mode)
	if len(nonces) == 0 {
		return nil, nil, errors.New("there is no serving key to make nonces with: see that the serving certificate is loaded")
	}
	request, err := compose(server.Client, target, body)
	if err != nil {
		return nil, nil, err
	}
	return nonces, request.
		Param("dryRun", "All").
		Param("fieldManager", Name).
		SetHeader(authenticationv1.ImpersonateUserHeader, admission.ProbeUser).
		SetHeader(authenticationv1.ImpersonateUserExtraHeaderPrefix+strings.ReplaceAll(admission.ProbeKey, "/", "%2F"), nonces...).
		Do(ctx).Error(), nil
}

// judge returns the result of a probe from the API server's response.
func (p *Prober) judge(target Target, nonces []string, err error) (Result, error) {
	switch {
	case err == nil:
		return NotEnforced, errPassed
	case p.Tokens.Proven(nonces, err.Error()):
		return Enforced, nil
	case target.Operation == admissionv1.Update && apierrors.IsNotFound(err):
		return Unproven, ErrNotFound
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate"):
		return Unproven, fmt.Errorf("fieldperm may not impersonate %q: apply rbac.yaml of fieldperm-gen manifests again (%w)", admission.ProbeUser, err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "User \""+admission.ProbeUser+"\" cannot"):
		return Unproven, fmt.Errorf("its authorization let no probe through: see that --authorization-config has fieldperm there and that fieldperm answers (%w)", err)
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "/authorize?"):
		return Unproven, fmt.Errorf("its authorizer cannot ask fieldperm: see that fieldperm answers, and address, CA and client certificate in authorizer.kubeconfig there (%w)", err)
	case apierrors.IsInternalError(err) && (strings.Contains(err.Error(), calling(webhooks.GranularWebhook)) || strings.Contains(err.Error(), calling(webhooks.ProbeWebhook))):
		return Unproven, fmt.Errorf("its webhook cannot call fieldperm: see that fieldperm answers, and address and CA in the webhook configuration, and the client certificate in admission.kubeconfig there (%w)", err)
	}
	// An error without a status does not come from the API server.
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return Unproven, fmt.Errorf("no answer to a probe: see that it can be reached from here (%w)", err)
	}
	return Unproven, fmt.Errorf("what refused the probe was not fieldperm: see that it answers, and that no other webhook or policy refuses %q first (%w)", admission.ProbeUser, err)
}

// calling returns the beginning of kube-apiserver's message when it cannot call a webhook.
func calling(webhook string) string { return fmt.Sprintf("failed calling webhook %q", webhook) }

// compose returns the request of a probe: an empty patch, which changes nothing, or the creation of body.
func compose(client rest.Interface, target Target, body map[string]any) (*rest.Request, error) {
	path := resourcePath(target)
	if target.Operation == admissionv1.Update {
		return client.Patch(types.MergePatchType).AbsPath(path...).Body([]byte("{}")), nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("probe of %s: %w", resourceName(target), err)
	}
	return client.Post().AbsPath(path...).SetHeader("Content-Type", "application/json").Body(raw), nil
}

func resourcePath(t Target) []string {
	path := []string{"apis", t.Group, t.Version}
	if t.Group == "" {
		path = []string{"api", t.Version}
	}
	if t.Namespace != "" {
		path = append(path, "namespaces", t.Namespace)
	}
	path = append(path, t.Resource)
	if t.Operation != admissionv1.Create || t.Subresource != "" {
		path = append(path, t.Name)
	}
	if t.Subresource != "" {
		path = append(path, t.Subresource)
	}
	return path
}

func resourceName(t Target) string {
	name := t.Resource
	if t.Subresource != "" {
		name += "/" + t.Subresource
	}
	if t.Group != "" {
		name += "." + t.Group
	}
	return name
}

// newClient returns a client that makes no retries and decodes only errors.
func newClient(config *rest.Config) (rest.Interface, error) {
	out := rest.CopyConfig(config)
	out.QPS, out.Burst, out.RateLimiter = -1, 0, nil
	out.ContentType, out.AcceptContentTypes = "application/json", "application/json"
	// Samples of workloads cause warnings, and no one reads them here.
	out.WarningHandlerWithContext = rest.NoWarnings{}
	out.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(out)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", config.Host, err)
	}
	return client, nil
}
