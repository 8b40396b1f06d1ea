package configfile

import "github.com/fieldperm/fieldperm/internal/conditions/wire"

// cures are the cures of faults that validation finds, by path without the numbers of items.
func cures() map[string]string {
	const (
		webhook  = "authorizers[].webhook."
		ttl      = "write a duration above 0s, for example 30s; to keep no answers, write "
		https    = "write https://…, with nothing but a host, a port and a path, each once"
		prefixed = "write claim with prefix, or expression"
		prefix   = `write prefix: "oidc:", or prefix: "" for none; with expression, leave prefix out, and put it into the expression: "oidc:" + …`
		rule     = "write claim with requiredValue, or expression with message, each once"
		truth    = " that yields true or false, each once: == compares, and texts are in quotes"
		text     = "write CEL over claims that yields a string: string(…) converts, [0] takes an item of a list, .orValue('') ends an optional"
		texts    = "write CEL over claims that yields a string or a list of strings: append .map(g, g) to what split, findAll or getQuery returns; string(…) converts"
	)
	return map[string]string{
		"authorizers":                                        "write at least one, for example {type: RBAC, name: rbac}",
		"authorizers[]":                                      "move it before all authorizers without " + ConditionsDialect,
		"authorizers[].type":                                 "write Webhook, or once RBAC or Node; a Webhook with connectionInfo.type: InClusterConfig asks kube-apiserver's own chain, ABAC included",
		"authorizers[].name":                                 "write rbac for type RBAC, node for Node, and for each Webhook a name of its own, in lowercase letters, digits, - and .",
		"authorizers[].webhook":                              "write it for type: Webhook only, with timeout, subjectAccessReviewVersion, failurePolicy and connectionInfo",
		webhook + "timeout":                                  "write a duration above 0s and of at most 30s, for example timeout: 3s",
		webhook + "authorizedTTL":                            ttl + "cacheAuthorizedRequests: false",
		webhook + "unauthorizedTTL":                          ttl + "cacheUnauthorizedRequests: false",
		webhook + "subjectAccessReviewVersion":               "write subjectAccessReviewVersion: v1",
		webhook + "matchConditionSubjectAccessReviewVersion": "write matchConditionSubjectAccessReviewVersion: v1",
		webhook + "failurePolicy":                            "write failurePolicy: Deny, which refuses while the webhook fails, or failurePolicy: NoOpinion, which goes on to the next authorizer",
		webhook + "connectionInfo.type":                      "write type: KubeConfigFile with kubeConfigFile, or type: InClusterConfig, which asks kube-apiserver",
		webhook + "connectionInfo.kubeConfigFile":            "write the absolute path of a kubeconfig that exists, with type: KubeConfigFile",
		webhook + "matchConditions":                          "join some with &&",
		webhook + "matchConditions[].expression":             "write CEL over request (user, groups, uid, extra, resourceAttributes, nonResourceAttributes)" + truth,
		webhook + ConditionsContext:                          "write the context of the kubeconfig that connects to the endpoint of AuthorizationConditionsReviews",
		webhook + conditionsVersion:                          "write " + reviewVersion,
		webhook + ConditionsDialect:                          "write " + string(wire.ConditionsChain+", "+wire.ConditionSetChain+" or "+wire.ConditionalDecision),

		"jwt":                                         "drop some, or let one issuer vouch for the others",
		"jwt[].issuer.url":                            https + `, as it is in the token's claim "iss"; one entry may have several audiences, with audienceMatchPolicy: MatchAny`,
		"jwt[].issuer.discoveryURL":                   https + ", or leave it out: the default is the url with /.well-known/openid-configuration",
		"jwt[].issuer.audiences":                      `write audiences: with what tokens for fieldperm have in the claim "aud"`,
		"jwt[].issuer.audiences[]":                    "write each audience once, and none that is empty",
		"jwt[].issuer.audienceMatchPolicy":            "write audienceMatchPolicy: MatchAny",
		"jwt[].issuer.certificateAuthority":           "write the CA's certificates in PEM, indented below certificateAuthority: |, or leave it out to trust those of the system",
		"jwt[].issuer.egressSelectorType":             "leave it out: fieldperm asks issuers directly",
		"jwt[].claimValidationRules[]":                rule,
		"jwt[].claimValidationRules[].claim":          rule,
		"jwt[].claimValidationRules[].message":        rule,
		"jwt[].claimValidationRules[].requiredValue":  rule,
		"jwt[].claimValidationRules[].expression":     "write CEL over claims" + truth,
		"jwt[].claimMappings.username":                prefixed,
		"jwt[].claimMappings.username.prefix":         prefix,
		"jwt[].claimMappings.username.expression":     text + "; with claims.email, add to claimValidationRules: expression: claims.?email_verified.orValue(true) == true",
		"jwt[].claimMappings.groups":                  prefixed,
		"jwt[].claimMappings.groups.prefix":           prefix,
		"jwt[].claimMappings.groups.expression":       texts,
		"jwt[].claimMappings.uid":                     "write claim or expression",
		"jwt[].claimMappings.uid.expression":          text,
		"jwt[].claimMappings.extra[].key":             "write each key once, in lowercase, with a domain of your own, for example key: example.com/name",
		"jwt[].claimMappings.extra[].valueExpression": texts,
		"jwt[].userValidationRules[].expression":      "write CEL over user (username, uid, groups, extra)" + truth,
		"anonymous.conditions":                        "write enabled: true, or leave conditions out",
	}
}
