package authz

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Different questions have different keys, even if their texts look like separators or run into each other.
func TestP8_CacheKeysAreDistinctForAllAttributes(t *testing.T) {
	ask := func(u user.DefaultInfo, a authorizer.AttributesRecord) string {
		t.Helper()
		a.User = &u
		key, err := questionOf(a)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	seen := map[string]int{}
	for i, q := range []struct {
		user       user.DefaultInfo
		attributes authorizer.AttributesRecord
	}{
		{user.DefaultInfo{Name: "a", UID: "b"}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Name: "ab"}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Name: "a1:b"}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Groups: []string{"a", "b"}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Groups: []string{"ab"}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Groups: []string{"a1:b"}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Groups: []string{"b", "a"}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Groups: []string{"a"}, Extra: map[string][]string{"b": nil}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Extra: map[string][]string{"a": {"b", "c"}}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Extra: map[string][]string{"a": {"b"}, "c": nil}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{Extra: map[string][]string{"a": nil, "b": {"c"}}}, authorizer.AttributesRecord{}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{Resource: "a", Subresource: "b"}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{Resource: "a", Name: "b"}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{Resource: "a1:b"}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{Resource: "a:b"}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{Resource: "a", Subresource: "b:"}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{Resource: "1:a0:"}},
		{user.DefaultInfo{}, authorizer.AttributesRecord{}},
	} {
		key := ask(q.user, q.attributes)
		if other, ok := seen[key]; ok {
			t.Errorf("questions %d and %d are one: %q", other, i, key)
		}
		seen[key] = i
	}
	many := map[string][]string{"a": {"1"}, "b": {"2"}, "c": {"3"}, "d": {"4"}}
	first := ask(user.DefaultInfo{Extra: many}, authorizer.AttributesRecord{})
	for range 20 {
		if ask(user.DefaultInfo{Extra: many}, authorizer.AttributesRecord{}) != first {
			t.Fatal("the order of a map makes two questions of one")
		}
	}
}

// TestP8_KeysAreShort: the caches hold thousands of keys. A user in many groups could fill the memory with them.
func TestP8_KeysAreShort(t *testing.T) {
	seen := map[string]int{}
	for groups := range 1500 {
		u := user.DefaultInfo{Name: "a"}
		for i := range groups {
			u.Groups = append(u.Groups, strconv.Itoa(i))
		}
		for _, name := range []string{"x", "y"} {
			key := identityOf(&u, nil, authorizer.AttributesRecord{Name: name})
			if len(key) > longestIdentity {
				t.Fatalf("%d groups: a key of %d bytes", groups, len(key))
			}
			seen[key]++
		}
	}
	if len(seen) != 2*1500 {
		t.Errorf("%d keys for %d identities", len(seen), 2*1500)
	}
}

func TestP8_QuestionWithSelectorsIsRefused(t *testing.T) {
	selector, err := fields.ParseSelector("metadata.name=web")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := questionOf(authorizer.AttributesRecord{FieldSelectorRequirements: selector.Requirements()}); err == nil || key != "" {
		t.Errorf("got %q, %v", key, err)
	}
}

// If two different questions shared an answer, one of them could be allowed by mistake.
func TestP8_DifferentAttributesAreDifferentKeys(t *testing.T) {
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

// TestA4_AGenericCheckIsNotShared: equal questions in progress share one answer; a generic question shares with no granular
// one.
func TestA4_AGenericCheckIsNotShared(t *testing.T) {
	of := &newRequestAuthorizer(nil, authorizer.AttributesRecord{Resource: "pods", ResourceRequest: true}, "u", "", nil, nil).of
	seen := map[string]bool{}
	for _, c := range []*check{{of, "update", true}, {of, "update", false}, {of, "patch", true}, {of, "patch", false}} {
		q, err := questionOf(c)
		if err != nil || seen[q] {
			t.Errorf("verb %q, generic %t: is another question, or %v", c.verb, c.generic, err)
		}
		seen[q] = true
	}
}
