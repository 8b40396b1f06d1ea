package configfile

import (
	"encoding/json"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// Settings of a webhook that returns conditions. The first two have the names of KEP-5681. k8s.io/apiserver does not know them yet.
const (
	// ConditionsContext is the key of Conditions.Context.
	ConditionsContext = "conditionsEndpointKubeConfigContext"
	conditionsVersion = "authorizationConditionsReviewVersion"
	// ConditionsDialect is the key of Conditions.Dialect.
	ConditionsDialect = "conditionsDialect"
)

// reviewVersion is the only version of AuthorizationConditionsReview.
const reviewVersion = "v1alpha1"

// Conditions are the settings of a webhook that returns conditions.
type Conditions struct {
	// Index is the position of the webhook in the configuration.
	Index int
	// Context is the context of the webhook's kubeconfig that connects to the endpoint of AuthorizationConditionsReviews.
	Context string
	Dialect wire.Dialect
}

// ConditionsOf returns the settings of the authorizer at an index, nil if it returns no conditions.
func (a *Authorization) ConditionsOf(index int) *Conditions {
	for i := range a.Conditions {
		if a.Conditions[i].Index == index {
			return &a.Conditions[i]
		}
	}
	return nil
}

// takeConditions takes these settings out of the tree, because the strict decoder of k8s.io/apiserver does not know them. It returns the file
// without them, which is data if there are none.
func (r *reading) takeConditions(data []byte) ([]byte, []Conditions) {
	root, _ := r.tree.value.(map[string]any)
	authorizers, _ := root["authorizers"].([]any)
	var out []Conditions
	for i, one := range authorizers {
		fields, _ := one.(map[string]any)
		webhook, _ := fields["webhook"].(map[string]any)
		at := child(item("authorizers", i), "webhook")
		if c, found := r.takeFrom(webhook, at); found {
			c.Index = i
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return data, nil
	}
	rest, err := json.Marshal(root)
	if err != nil {
		r.report("", "cannot be read: "+err.Error(), "")
		return data, nil
	}
	return rest, out
}

func (r *reading) takeFrom(webhook map[string]any, at string) (Conditions, bool) {
	given := map[string]string{}
	found := false
	for _, key := range []string{ConditionsContext, conditionsVersion, ConditionsDialect} {
		value, there := webhook[key]
		if !there {
			continue
		}
		found = true
		delete(webhook, key)
		text, ok := value.(string)
		if !ok {
			r.report(child(at, key), "is "+described(value)+", must be a text", "write it in quotes")
		}
		given[key] = text
	}
	if !found {
		return Conditions{}, false
	}
	if given[ConditionsContext] == "" {
		r.report(child(at, ConditionsContext), "is missing", "write the context of the kubeconfig that connects to the endpoint of AuthorizationConditionsReviews")
	}
	if given[conditionsVersion] != reviewVersion {
		r.report(child(at, conditionsVersion), quoted(given[conditionsVersion])+" is not a version of AuthorizationConditionsReview", "write "+reviewVersion)
	}
	dialect, err := wire.Parse(given[ConditionsDialect])
	if err != nil {
		_, cure, _ := strings.Cut(err.Error(), ": ")
		r.report(child(at, ConditionsDialect), quoted(given[ConditionsDialect])+" is not a form of conditions", cure)
	}
	return Conditions{Context: given[ConditionsContext], Dialect: dialect}, true
}

// conditional checks the webhooks that return conditions. They come first, so that the order of the file is the order of decisions.
func (c chain) conditional(out *Authorization) {
	plain := false
	for i, one := range c.configuration.Authorizers {
		path := item("authorizers", i)
		settings := out.ConditionsOf(i)
		if settings == nil {
			plain = true
			continue
		}
		if plain {
			c.report(path, "returns conditions, and comes after an authorizer that returns none", "move it before all authorizers without "+ConditionsDialect)
		}
		webhook := one.Webhook
		switch {
		case one.Type != apiserver.TypeWebhook || webhook == nil:
			c.report(child(path, "webhook"), "has conditions, and the type is not Webhook", "write type: Webhook")
		case webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster:
			c.report(child(path, "webhook.connectionInfo.type"), "InClusterConfig asks kube-apiserver, which returns no conditions", "write KubeConfigFile, with the kubeconfig of the webhook")
		case webhook.SubjectAccessReviewVersion == "v1beta1":
			c.report(child(path, "webhook.subjectAccessReviewVersion"), `"v1beta1" has no conditions`, "write subjectAccessReviewVersion: v1")
		case webhook.ConnectionInfo.KubeConfigFile != nil && regular(*webhook.ConnectionInfo.KubeConfigFile) && settings.Context != "":
			out.Files = append(out.Files, c.kubeconfig(child(path, "webhook.connectionInfo.kubeConfigFile"), *webhook.ConnectionInfo.KubeConfigFile, settings.Context)...)
		}
	}
}
