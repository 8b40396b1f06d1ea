package configfile

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// Types of authorizers other than apiserver.TypeWebhook, with kube-apiserver's names.
const (
	TypeRBAC apiserver.AuthorizerType = "RBAC"
	TypeNode apiserver.AuthorizerType = "Node"
)

// Authorization is a chain as described by a file.
type Authorization struct {
	// File is the name of the file in errors, and Data its content. Both are empty for a chain that no file describes.
	File          string
	Data          []byte
	Configuration *apiserver.AuthorizationConfiguration
	// Files are the kubeconfigs, and the certificate, key and token files that the kubeconfigs name. If the content of one changes,
	// the chain must be made again.
	Files []string
	// Conditions are the settings of the webhooks that return conditions, in the order of the file.
	Conditions []Conditions
	// Warnings are about settings that are valid but probably not intended, each with file, line and cure.
	Warnings []string
}

// LoadAuthorization reads an AuthorizationConfiguration: apiserver.config.k8s.io/v1, v1beta1 or v1alpha1. k8s.io/apiserver still
// accepts v1alpha1; it gives a warning. file is the name in errors. From disk, only the files that the configuration names are
// read. The error is Problems. An empty file is an error, although k8s.io/apiserver accepts it as a chain without
// authorizers.
func LoadAuthorization(file string, data []byte) (*Authorization, error) {
	d := read(file, data, false)
	out := &Authorization{File: file, Data: data}
	object := d.decode("AuthorizationConfiguration", "--authorization-config", reflect.TypeFor[authorizationFile](), func() bool {
		out.Conditions = takeConditions(d.tree)
		return out.Conditions != nil
	})
	configuration, ok := object.(*apiserver.AuthorizationConfiguration)
	if !ok {
		return nil, d.result()
	}
	out.Configuration = configuration
	errs := append(out.rules(), validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, configuration, known(), repeatable())...)
	for _, err := range errs {
		if strings.HasPrefix(err.Field, "authorizers[") && !inFile.MatchString(err.Field) {
			err.Field = strings.Replace(err.Field, "].", "].webhook.", 1)
		}
	}
	d.judge(errs)
	d.connections(out)
	if err := d.result(); err != nil {
		return nil, err
	}
	d.warnChain(out)
	out.Warnings = d.warnings
	return out, nil
}

// inFile matches the paths that k8s.io/apiserver's validation writes as they are in the file. It leaves .webhook out of the others.
var inFile = regexp.MustCompile(`^authorizers\[\d+\](\.(type|name|webhook)\b.*)?$`)

// Problem returns a Problem about a field of the authorizer at an index. If no authorizer has this index, it is about the whole list.
func (a *Authorization) Problem(index int, field, message, cure string) Problem {
	key := "authorizers"
	if index >= 0 {
		key = child(item(key, index), field)
	}
	return NewProblem(a.File, a.Data, key, message, cure)
}

func known() sets.Set[string] {
	return sets.New(string(apiserver.TypeWebhook), string(TypeRBAC), string(TypeNode))
}

func repeatable() sets.Set[string] { return sets.New(string(apiserver.TypeWebhook)) }

// rules returns the faults by rules that k8s.io/apiserver does not have: kube-apiserver's names of authorizers, what it serves as a
// webhook, and settings of conditions. Webhooks that return conditions come first, so that the order of the file is that of decisions.
func (a *Authorization) rules() (errs field.ErrorList) {
	plain := false
	for i, one := range a.Configuration.Authorizers {
		path := field.NewPath("authorizers").Index(i)
		webhook := path.Child("webhook")
		if want := strings.ToLower(string(one.Type)); (one.Type == TypeRBAC || one.Type == TypeNode) && one.Name != "" && one.Name != want {
			errs = append(errs, field.Invalid(path.Child("name"), one.Name, "must be "+want+" for type "+string(one.Type)))
		}
		inCluster := one.Webhook != nil && one.Webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster
		c := a.ConditionsOf(i)
		if one.Webhook != nil && one.Webhook.SubjectAccessReviewVersion == "v1beta1" && (inCluster || c != nil) {
			errs = append(errs, field.Invalid(webhook.Child("subjectAccessReviewVersion"), "", "is not served by kube-apiserver, and has no conditions"))
		}
		if c == nil {
			plain = true
			continue
		}
		if plain {
			errs = append(errs, field.Forbidden(path, "returns conditions, and comes after an authorizer that returns none"))
		}
		if inCluster {
			errs = append(errs, field.Invalid(webhook.Child("connectionInfo", "type"), "", "asks kube-apiserver, which returns no conditions"))
		}
		if c.Context == "" {
			errs = append(errs, field.Required(webhook.Child(ConditionsContext), ""))
		}
		if c.version != reviewVersion {
			errs = append(errs, field.Invalid(webhook.Child(conditionsVersion), c.version, "is not a version of AuthorizationConditionsReview"))
		}
		if _, err := wire.Parse(string(c.Dialect)); err != nil {
			errs = append(errs, field.Invalid(webhook.Child(ConditionsDialect), string(c.Dialect), "is not a form of conditions"))
		}
	}
	return errs
}

// connections checks the kubeconfigs in which validation found no fault, and collects the files that they name.
func (d *document) connections(a *Authorization) {
	type connection struct{ file, context string }
	seen := map[connection]bool{}
	for i, one := range a.Configuration.Authorizers {
		at := child(item("authorizers", i), "webhook.connectionInfo.kubeConfigFile")
		if one.Type != apiserver.TypeWebhook || one.Webhook == nil || one.Webhook.ConnectionInfo.Type != apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile ||
			one.Webhook.ConnectionInfo.KubeConfigFile == nil || d.covered(at) {
			continue
		}
		all := []connection{{*one.Webhook.ConnectionInfo.KubeConfigFile, ""}}
		if c := a.ConditionsOf(i); c != nil {
			all = append(all, connection{all[0].file, c.Context})
		}
		for _, c := range all {
			if !seen[c] {
				seen[c] = true
				a.Files = append(a.Files, d.kubeconfig(at, c.file, c.context)...)
			}
		}
	}
	slices.Sort(a.Files)
	a.Files = slices.Compact(a.Files)
}

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

// authorizationFile is an AuthorizationConfiguration of any version, with the settings of conditions.
type authorizationFile struct {
	metav1.TypeMeta
	Authorizers []struct {
		apiserverv1.AuthorizerConfiguration
		Webhook *struct {
			apiserverv1.WebhookConfiguration
			Context string `json:"conditionsEndpointKubeConfigContext"`
			Version string `json:"authorizationConditionsReviewVersion"`
			Dialect string `json:"conditionsDialect"`
		} `json:"webhook"`
	} `json:"authorizers"`
}

// Conditions are the settings of a webhook that returns conditions.
type Conditions struct {
	// Index is the position of the webhook in the configuration.
	Index int
	// Context is the context of the webhook's kubeconfig that connects to the endpoint of AuthorizationConditionsReviews.
	Context string
	Dialect wire.Dialect
	version string
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

// takeConditions takes these settings out of a tree.
func takeConditions(tree map[string]any) (out []Conditions) {
	authorizers, _ := tree["authorizers"].([]any)
	for i, one := range authorizers {
		fields, _ := one.(map[string]any)
		webhook, _ := fields["webhook"].(map[string]any)
		all := len(webhook)
		take := func(key string) string {
			text, _ := webhook[key].(string)
			delete(webhook, key)
			return text
		}
		c := Conditions{Index: i, Context: take(ConditionsContext), Dialect: wire.Dialect(take(ConditionsDialect)), version: take(conditionsVersion)}
		if len(webhook) < all {
			out = append(out, c)
		}
	}
	return out
}
