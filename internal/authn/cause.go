package authn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/fieldperm/fieldperm/internal/shorten"
)

// explained wraps tokens so that the error of a refused token contains nothing of the token except its issuer. The messages of
// k8s.io/apiserver contain claims: audiences, times, and the values of required claims.
func explained(tokens authenticator.Token, entries []apiserver.JWTAuthenticator) authenticator.Token {
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		response, ok, err := tokens.AuthenticateToken(ctx, token)
		if ok && err == nil {
			return response, true, nil
		}
		return nil, false, refused(token, err, entries)
	})
}

// refused returns the error for a token that was not accepted. err is nil if the token's issuer is not in the file, whose entries are
// given.
func refused(token string, err error, entries []apiserver.JWTAuthenticator) error {
	issuer, readable := issuerOf(token)
	switch {
	case !readable:
		return errors.New("bearer token: is not a JWT")
	case err == nil:
		return fmt.Errorf("bearer token: issuer %q: is none of jwt[].issuer.url", issuer)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("bearer token: issuer %q: %w", issuer, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("bearer token: issuer %q: %w", issuer, context.Canceled)
	}
	text := cause(err.Error())
	for i := range entries {
		if entries[i].Issuer.URL == issuer {
			text = located(text, err.Error(), &entries[i])
		}
	}
	return fmt.Errorf("bearer token: issuer %q: %s", issuer, text)
}

// located adds to the cause what only the issuer's entry in the file tells: which expression of extra has failed, and that a failed
// mapping comes before rules that might have refused the token too. k8s.io/apiserver evaluates mappings first, and KEP-3331 rules first.
func located(text, message string, entry *apiserver.JWTAuthenticator) string {
	for i := range entry.ClaimMappings.Extra {
		one := &entry.ClaimMappings.Extra[i]
		// The texts are compared with those of the file. What follows them may contain claims.
		switch {
		case strings.HasPrefix(message, fmt.Sprintf("expression '%s' resulted in error: ", one.ValueExpression)):
			text = fmt.Sprintf("claimMappings.extra[%d].valueExpression (key %q): expression fails", i, one.Key)
		case message == extraMessage+one.ValueExpression+": "+listMessage:
			text = fmt.Sprintf("claimMappings.extra[%d].valueExpression (key %q): %s", i, one.Key, noList)
		default:
			continue
		}
		break
	}
	if strings.HasSuffix(message, costMessage) {
		text += ": it exceeds the cost limit of CEL"
	}
	if strings.HasPrefix(text, "claimMappings.") && len(entry.ClaimValidationRules) > 0 {
		text += "; claimValidationRules are evaluated after the mappings, and may refuse the token too"
	}
	return text
}

const (
	extraMessage = "oidc: error evaluating extra claim expression: "
	groupMessage = "oidc: error evaluating group claim expression: "
	costMessage  = "actual cost limit exceeded"
	listMessage  = "expression must return a string or a list of strings"
	// noList is the cause of listMessage. Reading the file finds most such expressions.
	noList = "expression yields neither a text nor a list of texts: map a list that comes from split or findAll with .map(g, g)"
)

// issuerOf returns the issuer of a token without verifying the token.
func issuerOf(token string) (string, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", false
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return "", false
	}
	return shorten.Text(claims.Issuer, longestText), true
}

// quoting lists messages of k8s.io/apiserver that quote the file, with the cause to report. The patterns are anchored: the text
// before a group is the library's, and a group matches only text from the file.
var quoting = []struct {
	message *regexp.Regexp
	cause   string
}{
	{regexp.MustCompile(`^oidc: error evaluating claim validation expression: validation expression '(.*)' failed: (.*)$`), "claimValidationRules: expression %q: %s"},
	{regexp.MustCompile(`^oidc: error evaluating user info validation rule: validation expression '(.*)' failed: (.*)$`), "userValidationRules: expression %q: %s"},
	{regexp.MustCompile(`^oidc: required claim (.+?) not present in ID token$`), "claimValidationRules: claim %q is missing"},
	{regexp.MustCompile(`^oidc: required claim (.+?) value does not match\. `), "claimValidationRules: claim %q has another value"},
	{regexp.MustCompile(`^oidc: parse username claims "(.+?)": `), "claimMappings.username: claim %q is missing or not a text"},
	{regexp.MustCompile(`^oidc: parse groups claim "(.+?)": `), "claimMappings.groups: claim %q is not a list of texts"},
	{regexp.MustCompile(`^oidc: parse uid claim "(.+?)": `), "claimMappings.uid: claim %q is missing or not a text"},
}

// beginnings lists the other messages by their first words, with the cause to report.
var beginnings = []struct{ message, cause string }{
	{"oidc: authenticator not initialized", "has not answered yet: the log says why"},
	{"oidc: verify token: oidc: malformed jwt", "is not a JWT"},
	{"oidc: verify token: oidc: id token not signed", "is not signed"},
	{"oidc: verify token: oidc: id token signed with unsupported algorithm", "is signed by an algorithm that is not accepted"},
	{"oidc: verify token: failed to verify signature: fetching keys", "the issuer's keys cannot be fetched"},
	{"oidc: verify token: failed to verify signature", "is signed by none of the issuer's keys"},
	{"oidc: verify token: oidc: token is expired", "is expired"},
	{"oidc: verify token: oidc: current time", "is not valid yet"},
	{"oidc: verify token: oidc: expected audience", "is for none of issuer.audiences"},
	{"oidc: verify token: oidc: failed to unmarshal claims", "has claims that are not of the types that JWT gives them"},
	{"oidc: could not expand distributed claims", "its distributed claims cannot be had"},
	{"oidc: email not verified", "claimMappings.username: the claim \"email\" is not verified"},
	{"oidc: parse 'email_verified' claim", "claimMappings.username: the claim \"email_verified\" is not a bool"},
	{"oidc: empty username via CEL expression", "claimMappings.username: expression is empty"},
	{groupMessage + listMessage, "claimMappings.groups: " + noList},
	{"oidc: error evaluating username claim expression", "claimMappings.username: expression fails"},
	{"oidc: error evaluating group claim expression", "claimMappings.groups: expression fails"},
	{"oidc: error evaluating uid claim expression", "claimMappings.uid: expression fails"},
	{"oidc: error evaluating extra claim expression", "claimMappings.extra: valueExpression fails"},
	{"oidc: error evaluating claim validation expression", "claimValidationRules: expression fails"},
	{"oidc: error evaluating user info validation rule", "userValidationRules: expression fails"},
}

// cause translates a message of k8s.io/apiserver to the terms of the file. An unknown message may contain claims, so its text is
// never returned.
func cause(message string) string {
	for _, one := range quoting {
		if groups := one.message.FindStringSubmatch(message); groups != nil {
			args := make([]any, 0, len(groups)-1)
			for _, group := range groups[1:] {
				args = append(args, group)
			}
			return fmt.Sprintf(one.cause, args...)
		}
	}
	for _, one := range beginnings {
		if strings.HasPrefix(message, one.message) {
			return one.cause
		}
	}
	return "is not accepted"
}
