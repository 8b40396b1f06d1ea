package interlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	Name = "fieldperm-canary"
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
	// ErrUnbarred means that nothing refused a probe of ModeBar.
	ErrUnbarred = errors.New("was not refused: barriers do not hold there, because the webhook \"" + webhooks.UncoveredWebhookName + "\" is not asked: see that the admission plugin ValidatingAdmissionWebhook is on in that kube-apiserver and that it can watch webhook configurations; if other kube-apiservers ask for the same endpoint, restart this one")
	// errPassed means that nothing refused a probe.
	errPassed = errors.New("a probe passed admission, so that a holder of the marker could write any field: the webhook is missing, narrowed or ignored there: apply what fieldperm-gen manifests wrote again; with a static manifest see that --admission-control-config-file names it; or every user may write there: see that `kubectl auth can-i patch configmaps -n kube-system --as " + admission.CanaryUser + "` says no")
)

// Prober sends probes.
type Prober struct {
	Tokens *ProbeTokens
	// Observe is called for each probe.
	Observe func(server string, result Result, took time.Duration)
}

// Prove sends one probe to a server. A nil error is the proof. body is the object of a CREATE.
func (p *Prober) Prove(ctx context.Context, server Server, target Target, body map[string]any, mode Mode) error {
	return p.prove(ctx, server, target, body, mode, func(error) bool { return true })
}

// TryToProve is Prove for a probe that other policies of a cluster may well refuse. That it came to no result is not observed.
func (p *Prober) TryToProve(ctx context.Context, server Server, target Target) error {
	return p.prove(ctx, server, target, nil, ModeDeny, func(err error) bool { return err == nil || errors.Is(err, errPassed) })
}

func (p *Prober) prove(ctx context.Context, server Server, target Target, body map[string]any, mode Mode, isObserved func(error) bool) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	nonces, answer, err := p.send(ctx, server, target, body, mode)
	if err != nil {
		return err
	}
	result, err := p.judge(target, nonces, answer)
	if p.Observe != nil && !errors.Is(err, ErrNotFound) && isObserved(err) {
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

// Bars sends one probe to a server, and returns the barriers by which /admit/uncovered refused it. The error is ErrUnbarred if
// nothing refused it, and ErrNotFound if the target names an object that does not exist. Any other error says why it is unknown
// whether the write would be refused.
func (p *Prober) Bars(ctx context.Context, server Server, target Target, body map[string]any, barriers []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	nonces, answer, err := p.send(ctx, server, target, body, ModeBar)
	if err != nil {
		return nil, err
	}
	switch _, err := p.judge(target, nonces, answer); {
	case errors.Is(err, errPassed):
		return nil, describe(server, target, ErrUnbarred)
	case err != nil:
		return nil, describe(server, target, err)
	}
	return slices.DeleteFunc(slices.Clone(barriers), func(barrier string) bool { return !p.Tokens.Barred(nonces, answer.Error(), barrier) }), nil
}

// foundNothing reports whether err says that the Pod of a Binding or of a connection does not exist.
func foundNothing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "pods" && details.Name == Name
}

// send sends one probe. answer is the API server's response. err is set if no probe was sent.
func (p *Prober) send(ctx context.Context, server Server, target Target, body map[string]any, mode Mode) (nonces []string, answer, err error) {
	bound := target
	if target.Operation == admissionv1.Create {
		bound.Name = ""
	}
	nonces = p.Tokens.Mint(bound, mode)
	if len(nonces) == 0 {
		return nil, nil, errors.New("there is no serving key to make nonces with: see that the serving certificate is loaded")
	}
	request, err := compose(server.Client, target, body)
	if err != nil {
		return nil, nil, err
	}
	if target.Operation != admissionv1.Connect {
		// A connection cannot be a dry run.
		request = request.Param("dryRun", "All").Param("fieldManager", Name)
	}
	return nonces, request.
		SetHeader(authenticationv1.ImpersonateUserHeader, admission.CanaryUser).
		SetHeader(authenticationv1.ImpersonateUserExtraHeaderPrefix+strings.ReplaceAll(admission.CanaryKey, "/", "%2F"), nonces...).
		Do(ctx).Error(), nil
}

// judge returns the result of a probe from the API server's response.
func (p *Prober) judge(target Target, nonces []string, err error) (Result, error) {
	switch {
	case err == nil, (target.Operation == admissionv1.Create || target.Operation == admissionv1.Connect) && foundNothing(err):
		// Admission runs before the API server looks for the Pod, so admission let the probe pass.
		return NotEnforced, errPassed
	case p.Tokens.Proven(nonces, err.Error()):
		return Enforced, nil
	case (target.Operation == admissionv1.Update || target.Operation == admissionv1.Delete) && apierrors.IsNotFound(err):
		return Unproven, ErrNotFound
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate"):
		return Unproven, fmt.Errorf("fieldperm may not impersonate %q: apply rbac.yaml of fieldperm-gen manifests again (%w)", admission.CanaryUser, err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "User \""+admission.CanaryUser+"\" cannot"):
		return Unproven, fmt.Errorf("its authorization let no probe through: see that --authorization-config has fieldperm there and that fieldperm answers (%w)", err)
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "/authorize?"):
		return Unproven, fmt.Errorf("its authorizer cannot ask fieldperm: see that fieldperm answers, and address, CA and client certificate in authorizer.kubeconfig there (%w)", err)
	case apierrors.IsInternalError(err) && (strings.Contains(err.Error(), calling(webhooks.GranularWebhook)) || strings.Contains(err.Error(), calling(webhooks.UncoveredWebhookName))):
		return Unproven, fmt.Errorf("its webhook cannot call fieldperm: see that fieldperm answers, and address and CA in the webhook configuration, and the client certificate in admission.kubeconfig there (%w)", err)
	}
	// An error without a status does not come from the API server.
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return Unproven, fmt.Errorf("no answer to a probe: see that it can be reached from here (%w)", err)
	}
	return Unproven, fmt.Errorf("what refused the probe was not fieldperm: see that it answers, and that no other webhook or policy refuses %q first (%w)", admission.CanaryUser, err)
}

// calling returns the beginning of kube-apiserver's message when it cannot call a webhook.
func calling(webhook string) string { return fmt.Sprintf("failed calling webhook %q", webhook) }

// compose returns the request of a probe: an empty patch, which changes nothing, the creation of body, a deletion, or a connection. If the
// resource serves none of them, it is a PUT.
func compose(client rest.Interface, target Target, body map[string]any) (*rest.Request, error) {
	path := resourcePath(target)
	switch {
	case target.Operation == admissionv1.Delete:
		return client.Delete().AbsPath(path...), nil
	case target.Operation == admissionv1.Connect:
		return client.Post().AbsPath(path...).Param("command", "true").Param("stdout", "true"), nil
	case target.Operation == admissionv1.Update && target.put():
		body = map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": target.Name}, "spec": map[string]any{"finalizers": []any{"kubernetes"}}}
	case target.Operation == admissionv1.Update:
		return client.Patch(types.MergePatchType).AbsPath(path...).Body([]byte("{}")), nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("probe of %s: %w", resourceName(target), err)
	}
	request := client.Post()
	if target.Operation == admissionv1.Update {
		request = client.Put()
	}
	return request.AbsPath(path...).SetHeader("Content-Type", "application/json").Body(raw), nil
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
