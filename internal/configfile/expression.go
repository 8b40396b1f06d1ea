package configfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/fieldperm/fieldperm/internal/spelling"
)

// language describes the expressions of a configuration: CEL with some variables.
type language struct {
	// compiles reports whether an expression is valid for any of the fields with expressions.
	compiles func(expression string) bool
	mistakes []mistake
	// fields are the names that may follow a dot.
	fields []string
	// variables describes the variables, for messages.
	variables string
}

// mistake is a common mistake and its correction.
type mistake struct {
	wrong *regexp.Regexp
	right string
}

// operators returns the operators of other languages, with CEL's. Quoted text is not changed.
func operators() []mistake {
	return []mistake{
		{regexp.MustCompile(`(^|[^=!<>])=($|[^=~])`), "${1}==${2}"},
		{regexp.MustCompile(`(?i)(\s)and(\s)`), "${1}&&${2}"},
		{regexp.MustCompile(`(?i)(\s)or(\s)`), "${1}||${2}"},
		{regexp.MustCompile(`(^|[\s(])not\s+`), "${1}!"},
	}
}

// matchConditions returns the language of match conditions, which are about a SubjectAccessReview, not about an admission request.
func matchConditions() language {
	compiler := authorizationcel.NewDefaultCompiler()
	return language{
		compiles: func(expression string) bool {
			_, err := compiler.CompileCELExpression(&authorizationcel.SubjectAccessReviewMatchCondition{Expression: expression})
			return err == nil
		},
		mistakes: append(operators(),
			mistake{regexp.MustCompile(`\brequest\.user(?:Info)?\.(groups|uid|extra)\b`), "request.$1"},
			mistake{regexp.MustCompile(`\brequest\.(?:user\.(?:user)?name|userInfo\.username|username)\b`), "request.user"},
			mistake{regexp.MustCompile(`\bresourceAttributes\.resource\.(resource|group|version)\b`), "resourceAttributes.$1"},
			mistake{regexp.MustCompile(`\brequest\.resource\.(resource|group|version)\b`), "request.resourceAttributes.$1"},
			mistake{regexp.MustCompile(`\brequest\.(namespace|verb|group|version|resource|subresource|name)\b`), "request.resourceAttributes.$1"},
			mistake{regexp.MustCompile(`(^|[^.\w])(resourceAttributes|nonResourceAttributes)\b`), "${1}request.$2"},
			mistake{regexp.MustCompile(`\bresourceAttributes\.apiGroup\b`), "resourceAttributes.group"},
			mistake{regexp.MustCompile(`\bresourceAttributes\.apiVersion\b`), "resourceAttributes.version"},
		),
		fields: []string{"user", "groups", "uid", "extra", "resourceAttributes", "nonResourceAttributes", "namespace", "verb",
			"group", "version", "resource", "subresource", "name", "fieldSelector", "labelSelector", "path", "rawSelector", "requirements"},
		variables: "request, which has user, groups, uid, extra, resourceAttributes and nonResourceAttributes",
	}
}

// claimsAndUsers returns the language of expressions about a token's claims and about the user that they are mapped to.
func claimsAndUsers(compiler authenticationcel.Compiler) language {
	return language{
		compiles: func(expression string) bool {
			_, claims := compiler.CompileClaimsExpression(&authenticationcel.ClaimMappingExpression{Expression: expression})
			_, rule := compiler.CompileClaimsExpression(&authenticationcel.ClaimValidationCondition{Expression: expression})
			_, user := compiler.CompileUserExpression(&authenticationcel.UserValidationCondition{Expression: expression})
			return claims == nil || rule == nil || user == nil
		},
		mistakes: append(operators(),
			mistake{regexp.MustCompile(`\buser\.(?:name|user)\b`), "user.username"},
			mistake{regexp.MustCompile(`\buser\.group\b`), "user.groups"},
			mistake{regexp.MustCompile(`(^|[^.\w])(?:claim|token)\.`), "${1}claims."},
		),
		fields:    []string{"username", "uid", "groups", "extra"},
		variables: "claims in claimValidationRules and claimMappings, and user (username, uid, groups, extra) in userValidationRules",
	}
}

var stringLiteral = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)

// rewritten returns an expression with the known mistakes corrected. If the result does not compile either, it returns the
// original.
func (l language) rewritten(expression string) string {
	var out strings.Builder
	rest := 0
	code := func(text string) {
		for _, m := range l.mistakes {
			text = m.wrong.ReplaceAllString(text, m.right)
		}
		out.WriteString(text)
	}
	for _, at := range stringLiteral.FindAllStringIndex(expression, -1) {
		code(expression[rest:at[0]])
		out.WriteString(expression[at[0]:at[1]])
		rest = at[1]
	}
	code(expression[rest:])
	if len(expression) > longestText || !l.compiles(out.String()) {
		return expression
	}
	return out.String()
}

var (
	celError     = regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): (.*)`)
	undefined    = regexp.MustCompile(`undefined field '([^']*)'`)
	listNoise    = regexp.MustCompile(` expecting \{.*\}| \(in container ''\)`)
	badReturn    = regexp.MustCompile(`must evaluate to`)
	groupsAsText = regexp.MustCompile(`(request|user)\.groups\s*==\s*("[^"]*"|'[^']*')`)
)

// explain returns, on one line, why an expression does not compile, and the cure.
func (l language) explain(expression, detail string) (text, cure string) {
	var reasons []string
	for _, found := range celError.FindAllStringSubmatch(detail, -1) {
		place := "column " + found[2]
		if found[1] != "1" {
			place = "line " + found[1] + " " + place
		}
		reasons = append(reasons, place+": "+listNoise.ReplaceAllString(found[3], ""))
	}
	// After a syntax error, CEL continues and reports errors that follow from the first. Only the first is useful.
	text = strings.TrimPrefix(detail, "compilation failed: ")
	if len(reasons) > 0 {
		text = reasons[0]
	}
	if n := len(reasons) - 1; n > 0 {
		text = fmt.Sprintf("%s (and %d more)", text, n)
	}
	text = quoted(expression) + " is refused by CEL: " + text
	if better := l.rewritten(expression); better != expression {
		return text, "write " + better
	}
	switch found := undefined.FindStringSubmatch(detail); {
	case found != nil && !slices.Contains(l.fields, found[1]) && spelling.Nearest(found[1], l.fields) != "":
		cure = "write " + spelling.Nearest(found[1], l.fields)
	case groupsAsText.MatchString(expression):
		cure = "write " + groupsAsText.ReplaceAllString(expression, "$2 in $1.groups")
	case badReturn.MatchString(detail):
		cure = "write an expression of that type"
		if strings.Contains(detail, "bool") {
			cure = `compare it with something, for example == "alice"`
		}
	case strings.Contains(detail, "undeclared reference"):
		cure = "the variables are " + l.variables + "; put texts in quotes"
	case strings.Contains(detail, "undefined field"):
		cure = "the variables are " + l.variables
	case strings.Contains(detail, "Syntax error"):
		cure = "check quotes, parentheses and operators (==, !=, &&, ||, !, in)"
	default:
		cure = "the variables are " + l.variables
	}
	return text, cure
}
