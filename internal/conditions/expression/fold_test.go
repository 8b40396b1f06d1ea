package expression

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestK4_Fold shows what is left of an expression for an update by alice. "-" is a residual that equals its expression.
func TestK4_Fold(t *testing.T) {
	_, known := update()
	outcomes := map[string]Outcome{"true": True, "false": False, "error": Failed}
	for source, want := range map[string]string{
		`request.verb == "create" && object.a == "b"`:                                   "false",
		`object.a == "b" && request.verb == "create"`:                                   "false",
		`object.a == "b" || request.verb == "update"`:                                   "true",
		`request.verb == "update" && object.a == "b"`:                                   `object.a == "b"`,
		`object.a == "b" && (request.verb == "update" || object.c)`:                     `object.a == "b"`,
		`!(request.verb == "create") || object.a`:                                       "true",
		`request.verb in ["create", "update"] ? object.a == "b" : false`:                `object.a == "b"`,
		`object.spec.owner == request.userInfo.username`:                                `object.spec.owner == "alice"`,
		`request.userInfo.groups.exists(g, g == "dev")`:                                 "true",
		`object.spec.team in request.userInfo.extra["example.com/team"]`:                `object.spec.team in ["blue"]`,
		`request.userInfo.extra["no"][0] == "x"`:                                        "error",
		`object.a && request.userInfo.extra["no"][0] == "x"`:                            `object.a && {"": false}["error: no such key: no"]`,
		`request.userInfo.extra["no"][0] == "x" && request.verb == "create"`:            "false",
		`request.operation == "UPDATE"`:                                                 "-",
		`request.dryRun`:                                                                "-",
		`request.kind.kind == "Widget"`:                                                 "-",
		`request.name == "w" && request.namespace == "default"`:                         "true",
		`request.resource.group + "/" + request.resource.resource == object.apiVersion`: `"example.com/widgets" == object.apiVersion`,
		`has(request.subResource)`:                                                      "false",
		`object.x in []`:                                                                "-",
		`changes.all(c, c.path == request.verb)`:                                        `changes.all(c, c.path == "update")`,
		`object.m.all(k, k == request.userInfo.username && request.verb == "create")`:   `object.m.all(k, false)`,
		`object.spec.x.matches("^" + request.userInfo.username + "$")`:                  `object.spec.x.matches("^alice$")`,
		`object.n <= (request.verb == "create" ? 3 : 10)`:                               `object.n <= 10`,
		`dyn(object.a && request.verb == "update") == "x"`:                              `dyn(object.a && true) == "x"`,
		`dyn(1)`:             "error",
		`dyn(1) || object.a`: `{"": false}["error: the value is int: make it yield bool"] || object.a`,
		`request.userInfo.groups.map(g, g + "-" + object.suffix).exists(g, g == "dev-1")`: `["dev", "system:authenticated"].map(g, g + "-" + object.suffix).exists(g, g == "dev-1")`,
	} {
		folded := compile(t, source).Fold(context.Background(), known)
		if outcome, ok := outcomes[want]; ok {
			if folded.Outcome != outcome || (folded.Err != nil) != (outcome == Failed) {
				t.Errorf("%s: outcome %d, error %v, residual %v, want %s", source, folded.Outcome, folded.Err, folded.Residual, want)
			}
			continue
		}
		if want == "-" {
			want = source
		}
		if folded.Outcome != Residual || folded.Residual.String() != want {
			t.Errorf("%s: outcome %d, error %v, residual %v, want %s", source, folded.Outcome, folded.Err, folded.Residual, want)
		}
	}
}

// TestK4_OnlyWhatAdmissionSeesTooIsKnown goes through the verbs: what an update, a patch or a collection can become stays unknown.
func TestK4_OnlyWhatAdmissionSeesTooIsKnown(t *testing.T) {
	fields := []string{"verb", "operation", "name", "namespace", "subResource", "userInfo.username", "resource.version", "kind.kind", "dryRun"}
	for name, tt := range map[string]struct {
		verb, subresource, name, namespace, version string
		known                                       string
	}{
		"create":             {verb: "create", namespace: "n", version: "v1", known: "verb operation namespace subResource userInfo.username resource.version"},
		"create with a name": {verb: "create", name: "w", namespace: "n", version: "v1", known: "verb operation namespace subResource userInfo.username resource.version"},
		"create at a name":   {verb: "create", name: "w", subresource: "binding", namespace: "n", version: "v1", known: "verb name namespace subResource userInfo.username resource.version"},
		"update":             {verb: "update", name: "w", namespace: "n", version: "v1", known: "verb name namespace subResource userInfo.username resource.version"},
		"patch":              {verb: "patch", name: "w", namespace: "n", version: "v1", known: "verb name namespace subResource userInfo.username resource.version"},
		"delete":             {verb: "delete", name: "w", namespace: "n", version: "v1", known: "verb operation name namespace subResource userInfo.username resource.version"},
		"deletecollection":   {verb: "deletecollection", name: "w", namespace: "n", version: "v1", known: "verb operation namespace subResource userInfo.username resource.version"},
		"connect":            {verb: "get", name: "w", subresource: "proxy", namespace: "n", version: "v1", known: "verb name namespace subResource userInfo.username resource.version"},
		"no namespace":       {verb: "delete", name: "w", version: "*", known: "verb operation name subResource userInfo.username"},
		"anything":           {verb: "delete", name: "*", subresource: "*", namespace: "*", known: "verb userInfo.username"},
	} {
		known := Known{User: &user.DefaultInfo{Name: "alice"}, Verb: tt.verb, Version: tt.version, Resource: "widgets", Subresource: tt.subresource, Namespace: tt.namespace, Name: tt.name}
		var got []string
		for _, field := range fields {
			if known.isKnown(strings.Split(field, ".")) {
				got = append(got, field)
			}
		}
		if strings.Join(got, " ") != tt.known {
			t.Errorf("%s: %q are known, want %q", name, got, tt.known)
		}
	}
}

// TestK4_FoldFailsClosed: what is no value of the expression is an error.
func TestK4_FoldFailsClosed(t *testing.T) {
	_, known := update()
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	noUser, noVerb, anyVerb := known, known, known
	noUser.User, noVerb.Verb, anyVerb.Verb = nil, "", "*"
	loop := compile(t, `[1, 2, 3].all(x, x > 0) || object.a`)
	for name, folded := range map[string]Folded{
		"the zero expression": (&Expression{}).Fold(context.Background(), known),
		"no expression":       (*Expression)(nil).Fold(context.Background(), known),
		"no user":             loop.Fold(context.Background(), noUser),
		"no verb":             loop.Fold(context.Background(), noVerb),
		"any verb":            loop.Fold(context.Background(), anyVerb),
		"no resource":         loop.Fold(context.Background(), Known{User: known.User, Verb: "update"}),
		"a stopped context":   loop.Fold(stopped, known),
	} {
		if folded.Outcome != Failed || folded.Err == nil {
			t.Errorf("%s: outcome %d, error %v, want an error", name, folded.Outcome, folded.Err)
		}
	}
}

// TestK4_ALargeValueStaysAReference: a residual has no long lists of groups, and a name that is no pattern does not break it.
func TestK4_ALargeValueStaysAReference(t *testing.T) {
	_, known := update()
	groups := make([]string, 2000)
	for i := range groups {
		groups[i] = "group-of-people"
	}
	known.User = &user.DefaultInfo{Name: "a(b", Groups: groups}
	for source, want := range map[string]string{
		`object.team in request.userInfo.groups && request.verb == "update"`:            `object.team in request.userInfo.groups`,
		`object.a.matches(request.userInfo.username) || object.b == request.verb`:       `object.a.matches(request.userInfo.username) || object.b == "update"`,
		`object.b == request.verb + "d" || object.a.matches(request.userInfo.username)`: `object.b == "updated" || object.a.matches(request.userInfo.username)`,
	} {
		folded := compile(t, source).Fold(context.Background(), known)
		if folded.Outcome != Residual || folded.Residual.String() != want {
			t.Errorf("%s: outcome %d, error %v, residual %v, want %s", source, folded.Outcome, folded.Err, folded.Residual, want)
		}
	}
}

// TestK4_TheChangesAreComputedOnceAndOnlyIfRead holds the laziness of changes, and that their error is an error.
func TestK4_TheChangesAreComputedOnceAndOnlyIfRead(t *testing.T) {
	r, _ := update()
	calls := 0
	count := func() (ChangeList, error) {
		calls++
		return listed{{Path: ".spec.replicas", Operation: "modified", Verbs: []string{"scale"}}}, nil
	}
	in := NewInput(r, "update", count)
	only := compile(t, `changes.all(c, c.path == ".spec.replicas" && c.operation == "modified" && "scale" in c.verbs) && object.spec.replicas <= 10`)
	other := compile(t, `object.spec.replicas == 3 || changes.size() == 0`)
	if ok, err := other.Evaluate(context.Background(), in); !ok || err != nil || calls != 0 {
		t.Errorf("%s: %t, %v, after %d computations of the changes", other, ok, err, calls)
	}
	for range 2 {
		if ok, err := only.Evaluate(context.Background(), in); !ok || err != nil || calls != 1 {
			t.Errorf("%s: %t, %v, after %d computations of the changes", only, ok, err, calls)
		}
	}
	broken := errors.New("no schema")
	if ok, err := only.Evaluate(context.Background(), NewInput(r, "", func() (ChangeList, error) { return nil, broken })); ok || err == nil || !strings.Contains(err.Error(), "no schema") {
		t.Errorf("the changes fail: %t, %v, want their error", ok, err)
	}
	if ok, err := only.Evaluate(context.Background(), r); ok || err == nil {
		t.Errorf("no changes: %t, %v, want an error", ok, err)
	}
	if !only.Uses(Changes) || !only.NeedsObject() || compile(t, `request.name == "x"`).NeedsObject() || compile(t, `has(options.dryRun)`).Uses(Object) {
		t.Error("Uses and NeedsObject do not say what the expressions read")
	}
}
