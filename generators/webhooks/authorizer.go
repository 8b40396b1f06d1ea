package webhooks

import (
	"regexp"
	"strconv"
	"time"

	"github.com/fieldperm/fieldperm/admission"
)

// AuthorizeTimeout is the timeout of one call of /authorize, which itself asks the API server for the marker.
const AuthorizeTimeout = 3 * time.Second

// DefaultReleaseDelay is the default of fieldperm-webhook serve --release-delay.
const DefaultReleaseDelay = 90 * time.Second

// RequestTimeout is kube-apiserver's default limit for the duration of a request after its authorization.
const RequestTimeout = 60 * time.Second

// ProofLife is how long another replica may still allow requests because of a proof from before the deletion: twice the default of
// fieldperm-webhook serve --proof-interval, and the running call.
const ProofLife = 10*time.Second + AuthorizeTimeout

// LongestTTL returns the limit for the lifetime of a cached Allow: the lifetime must be shorter than the result, so that the release
// delay covers it.
func LongestTTL(releaseDelay time.Duration) time.Duration {
	return releaseDelay - RequestTimeout - ProofLife
}

// These are the match conditions of the authorizer.
const (
	onlyWrites     = `has(request.resourceAttributes) && request.resourceAttributes.verb in ['create', 'update', 'patch', 'delete', 'deletecollection']`
	onlyRequests   = `!has(request.resourceAttributes.version) || request.resourceAttributes.version != '*'`
	notUser        = `request.user != `
	notGenericOnly = `!has(request.extra) || !('` + admission.GenericOnlyKey + `' in request.extra)`
)

// AuthorizerConditionPatterns returns patterns of the authorizer's match conditions that match for any name of fieldperm's user.
func AuthorizerConditionPatterns() []*regexp.Regexp {
	whole := func(expression string) *regexp.Regexp { return regexp.MustCompile("^(?:" + expression + ")$") }
	return []*regexp.Regexp{
		whole(regexp.QuoteMeta(onlyWrites)), whole(regexp.QuoteMeta(onlyRequests)), whole(regexp.QuoteMeta(notUser) + `"[^"]+"`), whole(regexp.QuoteMeta(notGenericOnly)),
	}
}

// AuthorizerConditions returns the match conditions of the authorizer for a name of fieldperm's user.
func AuthorizerConditions(user string) []string {
	return []string{onlyWrites, onlyRequests, notUser + strconv.Quote(user), notGenericOnly}
}
