package authz

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestP8_QuestionsThatDifferAreNotOne is here because test/mutation broke the code and nothing else
// noticed: two questions that share an answer though they differ are a grant to the wrong one.
func TestP8_QuestionsThatDifferAreNotOne(t *testing.T) {
	type question struct {
		user.DefaultInfo
		authorizer.AttributesRecord
	}
	key := func(change func(*question)) string {
		q := question{
			user.DefaultInfo{Name: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
			authorizer.AttributesRecord{Verb: "update", Namespace: "n", APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Subresource: "scale", Name: "web", ResourceRequest: true},
		}
		change(&q)
		q.User = &q.DefaultInfo
		out, err := questionOf(q.AttributesRecord)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	as := key(func(*question) {})
	if key(func(*question) {}) != as {
		t.Error("the same question is two")
	}
	for what, change := range map[string]func(*question){
		"user":          func(q *question) { q.DefaultInfo.Name = "v" },
		"uid":           func(q *question) { q.UID = "2" },
		"groups":        func(q *question) { q.Groups = nil },
		"extra":         func(q *question) { q.Extra = map[string][]string{"k": {"v"}, "fieldperm.dev/generic-only": {"true"}} },
		"values":        func(q *question) { q.Extra = map[string][]string{"k": {"w"}} },
		"verb":          func(q *question) { q.Verb = "granular" },
		"namespace":     func(q *question) { q.Namespace = "" },
		"group":         func(q *question) { q.APIGroup = "" },
		"version":       func(q *question) { q.APIVersion = "v2" },
		"resource":      func(q *question) { q.Resource = "pods" },
		"subresource":   func(q *question) { q.Subresource = "" },
		"name":          func(q *question) { q.AttributesRecord.Name = "" },
		"path":          func(q *question) { q.Path = "/x" },
		"resource kind": func(q *question) { q.ResourceRequest = false },
	} {
		if key(change) == as {
			t.Errorf("questions that differ in %s are one", what)
		}
	}
}

// TestA4_AGenericQuestionWaitsForNoOther: questions that are one while they are on their way have one answer.
func TestA4_AGenericQuestionWaitsForNoOther(t *testing.T) {
	of := &identity{user: "u", AttributesRecord: authorizer.AttributesRecord{Resource: "pods", ResourceRequest: true}}
	seen := map[string]bool{}
	for _, c := range []*check{{of, "update", true}, {of, "update", false}, {of, "patch", true}, {of, "patch", false}} {
		q, err := questionOf(c)
		if err != nil || seen[q] {
			t.Errorf("verb %q, generic %t: is another question, or %v", c.verb, c.generic, err)
		}
		seen[q] = true
	}
}
