package webhooks

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// A configuration says in its own webhook for probes in which state it is: the path ends in the UID of the object, the generation that it has with this path,
// and a random text. An API server loads an object as a whole, so the path that it calls says which version of the object it has. It says nothing of other
// objects: an API server may keep an earlier version of one object while it acts on a later change of another.

// These are the resources with whose writes fieldperm asks an API server for the state of a configuration. Each has one of its own, because the API server
// returns the refusal of one webhook only.
const (
	// GranularProbed is written by the probe of RESTName.
	GranularProbed = "configmaps"
	// UncoveredProbed is written by the probe of UncoveredName. Nearly nobody creates these, and no controller reads them.
	UncoveredProbed = "podtemplates"
)

// State returns the state that a configuration names, "" if it was written since, is another object, or names none.
func State(c *admissionregistrationv1.ValidatingWebhookConfiguration) string {
	if c == nil {
		return ""
	}
	at := slices.IndexFunc(c.Webhooks, isProbe)
	if at < 0 {
		return ""
	}
	path := pathOf(&c.Webhooks[at].ClientConfig)
	state := path[strings.LastIndex(path, "/")+1:]
	if !strings.HasSuffix(path, ProbePath+state) || !strings.HasPrefix(state, stateAt(c, c.Generation)) {
		return ""
	}
	return state
}

// InState returns a copy of a configuration that is in a state. client is how API servers call ProbePath, and probed the resource of the probe.
func InState(
	c *admissionregistrationv1.ValidatingWebhookConfiguration, client admissionregistrationv1.WebhookClientConfig, probed, state string,
) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := c.DeepCopy()
	out.Webhooks = slices.DeleteFunc(out.Webhooks, isProbe)
	called, _ := ClientConfigFor(&client, ProbePath, ProbePath+state)
	probe := webhook(ProbeWebhook, called, []v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{probed}}},
		admissionregistrationv1.MatchCondition{Name: "probe", Expression: forProbes()})
	out.Webhooks = append(out.Webhooks, probe)
	return out
}

// forProbes is the match condition of the webhook for probes.
func forProbes() string { return "request.userInfo.username == '" + admission.ProbeUser + "'" }

// NewState returns the state of what replaces a stored configuration. The API server gives the next generation to it, so that any other write shows.
func NewState(stored *admissionregistrationv1.ValidatingWebhookConfiguration) string {
	return stateAt(stored, stored.Generation+1) + rand.Text()
}

// stateAt is the beginning of the states of one generation of an object.
func stateAt(c *admissionregistrationv1.ValidatingWebhookConfiguration, generation int64) string {
	return fmt.Sprintf("%s-%d-", c.UID, generation)
}

func isProbe(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == ProbeWebhook }

// pathOf returns the path that API servers call, or the URL that ends in it.
func pathOf(c *admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case c.Service != nil && c.Service.Path != nil:
		return *c.Service.Path
	case c.URL != nil:
		return *c.URL
	}
	return ""
}
