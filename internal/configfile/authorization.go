package configfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// Types of authorizers other than apiserver.TypeWebhook, with kube-apiserver's names.
const (
	TypeRBAC apiserver.AuthorizerType = "RBAC"
	TypeNode apiserver.AuthorizerType = "Node"
)

// mostConditions is k8s.io/apiserver's limit. With more conditions, its validation looks at none of them.
const mostConditions = 64

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
// read. The error is Problems, with all faults. An empty file is an error, although k8s.io/apiserver accepts it as a chain without
// authorizers.
func LoadAuthorization(file string, data []byte) (*Authorization, error) {
	r := newReading(file, data, matchConditions())
	if r.tree.value == nil {
		return nil, r.result()
	}
	plain, conditions := r.takeConditions(data)
	object := r.decode("AuthorizationConfiguration", "--authorization-config", plain)
	configuration, ok := object.(*apiserver.AuthorizationConfiguration)
	if !ok {
		return nil, r.result()
	}
	out := &Authorization{File: file, Data: data, Configuration: configuration, Conditions: conditions}
	c := chain{reading: r, configuration: configuration}
	c.authorizers()
	c.conditional(out)
	c.connections(out)
	r.judge(c.validate(), c.place, authorizerCures())
	if len(r.problems) == 0 {
		// The result is that of k8s.io/apiserver's loader, even if the checks above found faults.
		loaded, err := load.LoadFromData(plain)
		if err == nil {
			err = validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, loaded, known(), repeatable()).ToAggregate()
		}
		if err != nil {
			r.report("", err.Error(), "")
		}
		out.Configuration = loaded
	}
	if err := r.result(); err != nil {
		return nil, err
	}
	c.warn(out)
	out.Warnings = slices.Compact(r.warnings)
	return out, nil
}

// Problem returns a Problem about a field of the authorizer at an index. If no authorizer has this index, it is about the whole list.
func (a *Authorization) Problem(index int, field, message, cure string) Problem {
	key := "authorizers"
	if index >= 0 {
		key = fmt.Sprintf("%s.%s", item(key, index), field)
	}
	return NewProblem(a.File, a.Data, key, message, cure)
}

func known() sets.Set[string] {
	return sets.New(string(apiserver.TypeWebhook), string(TypeRBAC), string(TypeNode))
}

func repeatable() sets.Set[string] { return sets.New(string(apiserver.TypeWebhook)) }

// chain is an AuthorizationConfiguration during reading.
type chain struct {
	*reading
	configuration *apiserver.AuthorizationConfiguration
}

var belowAuthorizer = regexp.MustCompile(`^(authorizers\[\d+\])\.(.+)$`)

// place returns the path of a field in the file. k8s.io/apiserver leaves .webhook out of it.
func (c chain) place(path string) string {
	found := belowAuthorizer.FindStringSubmatch(path)
	if found == nil {
		return path
	}
	switch first, _, _ := strings.Cut(found[2], "."); first {
	case "type", "name", "webhook":
		return path
	}
	return found[1] + ".webhook." + found[2]
}

// validate returns the faults that k8s.io/apiserver's validation finds. That validation stops at an authorizer of an unknown type,
// and at too many conditions. Here it gets a corrected copy, so that it checks the rest too.
func (c chain) validate() field.ErrorList {
	mended := c.configuration.DeepCopy()
	var errs field.ErrorList
	for i := range mended.Authorizers {
		one := &mended.Authorizers[i]
		if one.Webhook == nil {
			continue
		}
		if !known().Has(string(one.Type)) {
			errs = append(errs, c.typeFault(i)...)
			one.Type = apiserver.TypeWebhook
		}
		if n := len(one.Webhook.MatchConditions); n > mostConditions {
			errs = append(errs, field.TooMany(field.NewPath("authorizers").Index(i).Child("webhook", "matchConditions"), n, mostConditions))
			one.Webhook.MatchConditions = one.Webhook.MatchConditions[:mostConditions]
		}
	}
	return append(errs, validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, mended, known(), repeatable())...)
}

// typeFault returns the fault of k8s.io/apiserver's validation for the type of an authorizer.
func (c chain) typeFault(i int) field.ErrorList {
	path := field.NewPath("authorizers").Index(i).Child("type")
	if given := string(c.configuration.Authorizers[i].Type); given != "" {
		return field.ErrorList{field.NotSupported(path, given, sets.List(known()))}
	}
	return field.ErrorList{field.Required(path, "")}
}

// authorizers checks rules that k8s.io/apiserver does not check: the types that may occur, and their names. kube-apiserver requires
// the same names.
func (c chain) authorizers() {
	for i, one := range c.configuration.Authorizers {
		path := item("authorizers", i)
		switch one.Type {
		case apiserver.TypeWebhook:
			continue
		case TypeRBAC, TypeNode:
			if want := strings.ToLower(string(one.Type)); one.Name == "" {
				c.report(child(path, "name"), "is missing", "write name: "+want)
			} else if one.Name != want {
				c.report(child(path, "name"), fmt.Sprintf("%s is not the name of type %s", quoted(one.Name), one.Type), "write name: "+want)
			}
		case "ABAC":
			c.report(child(path, "type"), `"ABAC" is not offered`, "leave it out: write an entry of type Webhook with connectionInfo.type: InClusterConfig, which asks kube-apiserver's own chain, its ABAC included")
		case "AlwaysAllow":
			c.report(child(path, "type"), `"AlwaysAllow" is not offered, since it would let everyone change every field`, "leave it out, and grant what is meant in RBAC")
		case "AlwaysDeny":
			c.report(child(path, "type"), `"AlwaysDeny" is not offered`, "leave it out: what no authorizer allows is denied")
		}
	}
}

func authorizerCures() map[string]cure {
	ttl := "write a duration above 0s, for example 30s; to keep no answers, write "
	return map[string]cure{
		"authorizers":                                                    {missing: "write at least one, for example {type: RBAC, name: rbac}"},
		"authorizers[].type":                                             {missing: "write Webhook, RBAC or Node", other: "write Webhook, RBAC or Node", twice: "leave it out: only Webhook may be there several times"},
		"authorizers[].name":                                             {missing: "write a name of its own: metrics and answers are told apart by it", other: "write it in lowercase letters, digits, - and .", twice: "write a name of its own"},
		"authorizers[].webhook":                                          {missing: "write webhook: with timeout, subjectAccessReviewVersion, failurePolicy and connectionInfo", other: "leave webhook out, or write type: Webhook"},
		"authorizers[].webhook.timeout":                                  {missing: "write a duration above 0s and of at most 30s, for example timeout: 3s"},
		"authorizers[].webhook.authorizedTTL":                            {missing: ttl + "cacheAuthorizedRequests: false"},
		"authorizers[].webhook.unauthorizedTTL":                          {missing: ttl + "cacheUnauthorizedRequests: false"},
		"authorizers[].webhook.subjectAccessReviewVersion":               {missing: "write subjectAccessReviewVersion: v1"},
		"authorizers[].webhook.matchConditionSubjectAccessReviewVersion": {missing: "write matchConditionSubjectAccessReviewVersion: v1"},
		"authorizers[].webhook.failurePolicy":                            {missing: "write failurePolicy: Deny, which refuses while the webhook fails, or failurePolicy: NoOpinion, which goes on to the next authorizer"},
		"authorizers[].webhook.connectionInfo.type":                      {missing: "write type: KubeConfigFile with kubeConfigFile, or type: InClusterConfig", other: "write KubeConfigFile or InClusterConfig"},
		"authorizers[].webhook.connectionInfo.kubeConfigFile":            {missing: "write the absolute path of a kubeconfig", other: "write the absolute path of a regular file that exists, with type: KubeConfigFile"},
		"authorizers[].webhook.matchConditions":                          {missing: "join some with &&"},
		"authorizers[].webhook.matchConditions[].expression":             {missing: "write a CEL expression, for example has(request.resourceAttributes)", other: "leave one of the two out"},
	}
}
