package grammar_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]grammar.Marker{
		// As KEP-3617 writes them.
		` +permission-verb:"specification"`:                       {Key: grammar.Verb, Value: "specification", Offset: 1, ValueOffset: 18},
		` +permission-parameter-source:"label-key"`:               {Key: grammar.Source, Value: "label-key", Offset: 1, ValueOffset: 30},
		` +permission-parameterized-by:"label-key"`:               {Key: grammar.By, Value: "label-key", Offset: 1, ValueOffset: 30},
		` +permission-parameter-treatment:slash-delimited-prefix`: {Key: grammar.Treatment, Value: "slash-delimited-prefix", Offset: 1, ValueOffset: 33},
		` +permission-include:"podTemplate"`:                      {Key: grammar.Include, Value: "podTemplate", Offset: 1, ValueOffset: 21},
		// As kubebuilder writes them.
		`+permission-verb=color`:                                   {Key: grammar.Verb, Value: "color", ValueOffset: 17},
		"+permission-verb=`example.com/color`":                     {Key: grammar.Verb, Value: "example.com/color", ValueOffset: 17},
		"\t+permission-verb: color \t":                             {Key: grammar.Verb, Value: "color", Offset: 1, ValueOffset: 19},
		`+permission-excluded`:                                     {Key: grammar.Excluded, Value: "true", ValueOffset: 20},
		`+permission-excluded=true`:                                {Key: grammar.Excluded, Value: "true", ValueOffset: 21},
		`+permission-excluded-when:"self == 'a\"b'"`:               {Key: grammar.When, Value: `self == 'a"b'`, ValueOffset: 26},
		"+permission-excluded-when=`self == \"a\"`":                {Key: grammar.When, Value: `self == "a"`, ValueOffset: 26},
		`+permission-excluded-when: self == true || oldSelf == 1 `: {Key: grammar.When, Value: `self == true || oldSelf == 1`, ValueOffset: 27},
		`+permission-parameter-expression=self.split('/')[0]`:      {Key: grammar.Expression, Value: `self.split('/')[0]`, ValueOffset: 33},
		// A no-break space: controller-gen removes it.
		"\u00a0+permission-verb:x": {Key: grammar.Verb, Value: "x", Offset: 2, ValueOffset: 19},
		// As openapi-gen writes them.
		` +k8s:openapi-gen=x-kubernetes-permission-verb:color`:                     {Key: grammar.Verb, Form: grammar.OpenAPI, Value: "color", Offset: 1, ValueOffset: 47},
		`+k8s:openapi-gen=x-kubernetes-permission-excluded-when:self == ['a:b=c']`: {Key: grammar.When, Form: grammar.OpenAPI, Value: `self == ['a:b=c']`, ValueOffset: 55},
		`+k8s:openapi-gen=x-kubernetes-permission-excluded-when:self == 'a\\b'`:    {Key: grammar.When, Form: grammar.OpenAPI, Value: `self == 'a\b'`, ValueOffset: 55},
		`+k8s:openapi-gen=x-kubernetes-permission-excluded:true`:                   {Key: grammar.Excluded, Form: grammar.OpenAPI, Value: "true", ValueOffset: 50},
	} {
		got, found, err := grammar.Parse(line)
		if got != want || !found || err != nil {
			t.Errorf("%q: got %+v, %v, %v; want %+v", line, got, found, err, want)
		}
		if f := grammar.Suspect(line); f != nil {
			t.Errorf("%q: a correct marker is suspicious: %v", line, f)
		}
	}
}

func TestParse_Errors(t *testing.T) {
	for line, want := range map[string]struct {
		offset int
		text   string
	}{
		`+permission-verb`:                                       {16, `marker "+permission-verb" has no value: write +permission-verb:"example.com/color"`},
		`+permission-verb:`:                                      {17, `has no value`},
		`+permission-verb: `:                                     {17, `has no value`},
		`+permission-verb:""`:                                    {17, `has an empty value`},
		"+permission-excluded-when=`  `":                         {26, `has an empty value`},
		`+permission-verb "x"`:                                   {16, `has no colon before its value`},
		`+permission-verb"x"`:                                    {16, `has no colon before its value`},
		`+permission-verb :"x"`:                                  {16, `has no colon before its value`},
		`+permission-verb:"x`:                                    {17, `quotes do not end`},
		`+permission-verb:"\q"`:                                  {17, `escapes are wrong`},
		`+permission-verb:'x'`:                                   {17, `other quotes`},
		`+permission-verb:x y`:                                   {18, `has text after its value, "y"`},
		`+permission-verb:"x" // for the color`:                  {20, `has text after its value, "// for the color"`},
		`+permission-verb:"x" +optional`:                         {20, `has text after its value, "+optional"`},
		`+permission-excluded-when:"a" == self`:                  {29, `put a value that has quotes between backquotes`},
		`+permission-excluded=false`:                             {21, `has the value "false": write true, or leave the marker out`},
		`+permission-excluded when a is set`:                     {20, `has no colon`},
		`+k8s:openapi-gen=x-kubernetes-permission-verb`:          {45, `write +k8s:openapi-gen=x-kubernetes-permission-verb:example.com/color`},
		`+k8s:openapi-gen=x-kubernetes-permission-verb=x`:        {45, `has no colon`},
		`+k8s:openapi-gen=x-kubernetes-permission-verb:`:         {46, `has no value`},
		`+k8s:openapi-gen=x-kubernetes-permission-verb: x`:       {46, `a space before its value`},
		`+k8s:openapi-gen=x-kubernetes-permission-verb:"x"`:      {46, `write no double quote and no single backslash, or use +permission-verb`},
		`+k8s:openapi-gen=x-kubernetes-permission-verb:x y`:      {46, `with white space`},
		`+k8s:openapi-gen=x-kubernetes-permission-excluded:yes`:  {50, `write true`},
		`+k8s:openapi-gen=x-kubernetes-permission-excluded-when`: {54, `has no colon`},
		"\t+k8s:openapi-gen=x-kubernetes-permission-verb:x":      {0, `openapi-gen ignores it`},
	} {
		_, found, err := grammar.Parse(line)
		var fault *grammar.Fault
		if !found || !errors.As(err, &fault) || fault.Offset != want.offset || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: found %v, fault %+v; want one at %d with %q", line, found, fault, want.offset, want.text)
		}
	}
}

func TestSuspect(t *testing.T) {
	for line, want := range map[string]struct{ fix, text string }{
		` +permission-verbs:"x"`:                               {"+permission-verb", `marker "+permission-verbs" is unknown: write +permission-verb`},
		`+permision-verb:"x"`:                                  {"+permission-verb", ""},
		`+permissionVerb="x"`:                                  {"+permission-verb", ""},
		`+permission_verb=x`:                                   {"+permission-verb", ""},
		`+permission.verb=x`:                                   {"+permission-verb", ""},
		`+Permission-verb:"x"`:                                 {"+permission-verb", ""},
		"+permission\u2011verb:x":                              {"+permission-verb", ""},
		` + permission-verb:"x"`:                               {"+permission-verb", `marker "+ permission-verb" is unknown`},
		`++permission-verb:x`:                                  {"+permission-verb", `marker "++permission-verb" is unknown`},
		`+kubernetes:permission-verb:"x"`:                      {"+permission-verb", `marker "+kubernetes:permission-verb" is unknown`},
		`+kubebuilder:permission-verb=x`:                       {"+permission-verb", ""},
		`+optional,permission-verb="x"`:                        {"+permission-verb", `marker "+optional,permission-verb" is unknown`},
		`+fieldperm.dev:permission-excluded`:                   {"+permission-excluded", ""},
		`+x-kubernetes-permission-verb:x`:                      {"+permission-verb", ""},
		`+permission-parameter-sources:x`:                      {"+permission-parameter-source", ""},
		`+permission-parametrized-by:x`:                        {"+permission-parameterized-by", ""},
		`+permission-exclude`:                                  {"+permission-excluded", ""},
		`+permission-excludedWhen=self`:                        {"+permission-excluded-when", ""},
		`+permission-wibble`:                                   {"", "use one of +permission-verb, +permission-parameter-source"},
		`+permission:verb=x`:                                   {"", "is unknown: use one of"},
		`permission-verb:"x"`:                                  {"+permission-verb", `marker "permission-verb" has no +: write +permission-verb`},
		`permission-verb=x`:                                    {"+permission-verb", ""},
		`@permission-verb:"x"`:                                 {"+permission-verb", ""},
		`permision-verb: x`:                                    {"+permission-verb", ""},
		`permission-excluded`:                                  {"+permission-excluded", ""},
		`permission-excluded-when: self == true`:               {"+permission-excluded-when", ""},
		`/ +permission-verb:"x"`:                               {" ", `stands after "/ "`},
		` * +permission-verb:"x"`:                              {" ", `stands after " * "`},
		"\u200b+permission-verb:x":                             {" ", "stands after"},
		`+k8s:openapi-gen=x-kubernetes-permission-verbs:x`:     {"+k8s:openapi-gen=x-kubernetes-permission-verb", ""},
		`+k8s:openapi-gen=x-kubernetes-permision-verb:x`:       {"+k8s:openapi-gen=x-kubernetes-permission-verb", ""},
		`+k8s:openapigen=x-kubernetes-permission-verb:x`:       {"+k8s:openapi-gen=x-kubernetes-permission-verb", ""},
		`+ k8s:openapi-gen=x-kubernetes-permission-verb:x`:     {"+k8s:openapi-gen=x-kubernetes-permission-verb", ""},
		`+k8s:openapi-gen=x-kubernetes-permission-wibble:x`:    {"", "+k8s:openapi-gen=x-kubernetes-permission-verb, +k8s"},
		`+k8s:openapi-gen= x-kubernetes-permission-verb:x`:     {"", "is unknown: write +k8s:openapi-gen"},
		`+k8s:openapi-gen=true,x-kubernetes-permission-verb:x`: {"", "is unknown: write +k8s:openapi-gen"},
		`k8s:openapi-gen=x-kubernetes-permission-verb:x`:       {"+", "has no +"},
		`+optional +permission-verb:"x"`:                       {"", "does not start its line"},
		`+optional +permission-verb:"x" +nullable`:             {"", "does not start its line"},
		`Color is the color. +permission-verb:"x"`:             {"", "put it on a line of its own, or between backquotes"},
		`TODO: +permission-excluded`:                           {"", "does not start its line"},
	} {
		f := grammar.Suspect(line)
		if f == nil || f.Fix != want.fix || !strings.Contains(f.Message, want.text) || f.Offset > f.End || f.End > len(line) {
			t.Errorf("%q: got %+v, want the fix %q and %q", line, f, want.fix, want.text)
		}
	}
}

func TestSuspect_ProseAndOtherMarkers(t *testing.T) {
	for _, line := range []string{
		"", " ", "+", " + ", "+ +", "/", "***", "permission", "Permission to change the color.",
		" The marker +permission-verb names the verb.",
		" Write `+permission-verb:\"x\"`",
		` Write "+permission-verb=x"`,
		` permission-verb: the verb that covers the field.`,
		` permission-verb is the verb.`,
		` permission-excluded-when: a condition on the value.`,
		` Permissions: read and write`,
		" Permission: x",
		" 1 + permission",
		" a+b", " Description: x", "+optional", "+kubebuilder:validation:Pattern=`^a+$`", `+kubebuilder:validation:XValidation:rule="self.verb == 'permission-verb'"`,
		`+k8s:openapi-gen=true`, `+k8s:openapi-gen=x-kubernetes-list-type:map`, `+k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object`,
		`+listType=map`, `+listMapKey=permission`, `+kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;granular:scale`, `+versionName=v1`, `+required`, `+enum`,
		`+kubebuilder:printcolumn:name="Verb",type=string,JSONPath=".spec.verb"`,
	} {
		if m, found, err := grammar.Parse(line); found {
			t.Errorf("%q is read as %+v, %v", line, m, err)
		}
		if f := grammar.Suspect(line); f != nil {
			t.Errorf("%q is suspicious: %+v", line, f)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, key := range grammar.Keys() {
		for _, line := range []string{key.Marker() + `:"true"`, key.Marker() + "=true", "+k8s:openapi-gen=" + key.Extension() + ":true"} {
			if m, found, err := grammar.Parse(line); !found || err != nil || m.Key != key || m.Value != "true" {
				t.Errorf("%q: got %+v, %v, %v", line, m, found, err)
			}
		}
		if f := grammar.Suspect(key.Marker() + "x:y"); f == nil || f.Fix != key.Marker() {
			t.Errorf("a misspelling of %s: got %+v", key.Marker(), f)
		}
	}
}
