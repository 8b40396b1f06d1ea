package authz

import (
	"fmt"
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// keyOf returns the key of a question about a verb.
func keyOf(spec authorizationv1.SubjectAccessReviewSpec, verb string, generic bool) key {
	if spec.ResourceAttributes == nil {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{}
	}
	return forReview(nil, &spec).check(verb, generic).key()
}

// Different questions have different keys, even if their texts look like separators or run into each other.
func TestP8_CacheKeysAreDistinctForAllAttributes(t *testing.T) {
	type extra = map[string]authorizationv1.ExtraValue
	type object = authorizationv1.ResourceAttributes
	seen := map[key]int{}
	for i, q := range []authorizationv1.SubjectAccessReviewSpec{
		{User: "a", UID: "b"},
		{User: "ab"},
		{User: "a1:b"},
		{Groups: []string{"a", "b"}},
		{Groups: []string{"ab"}},
		{Groups: []string{"a1:b"}},
		{Groups: []string{"b", "a"}},
		{Groups: []string{"a"}, Extra: extra{"b": nil}},
		{Extra: extra{"a": {"b", "c"}}},
		{Extra: extra{"a": {"b"}, "c": nil}},
		{Extra: extra{"a": nil, "b": {"c"}}},
		{ResourceAttributes: &object{Resource: "a", Subresource: "b"}},
		{ResourceAttributes: &object{Resource: "a", Name: "b"}},
		{ResourceAttributes: &object{Resource: "a1:b"}},
		{ResourceAttributes: &object{Resource: "a:b"}},
		{ResourceAttributes: &object{Resource: "a", Subresource: "b:"}},
		{ResourceAttributes: &object{Resource: "1:a0:"}},
		{},
	} {
		k := keyOf(q, "", false)
		if other, ok := seen[k]; ok {
			t.Errorf("questions %d and %d are one", other, i)
		}
		seen[k] = i
	}
	many := authorizationv1.SubjectAccessReviewSpec{Extra: extra{"a": {"1"}, "b": {"2"}, "c": {"3"}, "d": {"4"}}}
	first := keyOf(many, "", false)
	for range 20 {
		if keyOf(many, "", false) != first {
			t.Fatal("the order of a map makes two questions of one")
		}
	}
}

// TestP8_KeysAreShort: the caches hold thousands of keys. A user in many groups could fill the memory with them.
func TestP8_KeysAreShort(t *testing.T) {
	seen := map[key]bool{}
	var groups []string
	for i := range 1500 {
		for _, name := range []string{"x", "y"} {
			k := keyOf(authorizationv1.SubjectAccessReviewSpec{User: name, Groups: groups}, "update", false)
			if n := len(fmt.Sprintf("%v", k)); n > 200 {
				t.Fatalf("%d groups: a key of %d digits", i, n)
			}
			seen[k] = true
		}
		groups = append(groups, strconv.Itoa(i))
	}
	if len(seen) != 2*1500 {
		t.Errorf("%d keys for %d users", len(seen), 2*1500)
	}
}

// A question with selectors has no key. Those of a chain have none.
func TestP8_QuestionWithSelectorsIsRefused(t *testing.T) {
	s, w := chainOf(t, "hook", noObserver{}, nil)
	if decision, _, err := w.Authorize(t.Context(), authorizer.AttributesRecord{Verb: "list", ResourceRequest: true}); decision != authorizer.DecisionDeny || err == nil {
		t.Errorf("got %v, %v", decision, err)
	}
	c := forReview(s, &authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Resource: "pods", FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "metadata.name=web"},
	}}).check("list", false)
	if selector, err := c.GetFieldSelector(); len(selector) > 0 || err != nil {
		t.Errorf("asks with %v, %v", selector, err)
	}
}

// If two different questions shared an answer, one of them could be allowed by mistake.
func TestP8_DifferentAttributesAreDifferentKeys(t *testing.T) {
	type question struct {
		authorizationv1.SubjectAccessReviewSpec
		verb    string
		generic bool
	}
	changed := func(change func(*question)) key {
		q := question{authorizationv1.SubjectAccessReviewSpec{
			User: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "n", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Name: "web"},
		}, "update", false}
		change(&q)
		return keyOf(q.SubjectAccessReviewSpec, q.verb, q.generic)
	}
	as := changed(func(*question) {})
	if changed(func(*question) {}) != as {
		t.Error("the same question is two")
	}
	for what, change := range map[string]func(*question){
		"user":        func(q *question) { q.User = "v" },
		"uid":         func(q *question) { q.UID = "2" },
		"groups":      func(q *question) { q.Groups = nil },
		"extra":       func(q *question) { q.Extra["l"] = nil },
		"values":      func(q *question) { q.Extra["k"] = authorizationv1.ExtraValue{"w"} },
		"A4's key":    func(q *question) { q.generic = true },
		"verb":        func(q *question) { q.verb = "granular" },
		"namespace":   func(q *question) { q.ResourceAttributes.Namespace = "" },
		"group":       func(q *question) { q.ResourceAttributes.Group = "" },
		"version":     func(q *question) { q.ResourceAttributes.Version = "v2" },
		"resource":    func(q *question) { q.ResourceAttributes.Resource = "pods" },
		"subresource": func(q *question) { q.ResourceAttributes.Subresource = "" },
		"name":        func(q *question) { q.ResourceAttributes.Name = "" },
	} {
		if changed(change) == as {
			t.Errorf("questions that differ in %s are one", what)
		}
	}
}

// TestA4_AGenericCheckIsNotShared: equal questions in progress share one answer; a generic question shares with no granular
// one.
func TestA4_AGenericCheckIsNotShared(t *testing.T) {
	seen := map[key]bool{}
	for _, verb := range []string{"update", "patch"} {
		for _, generic := range []bool{true, false} {
			k := keyOf(authorizationv1.SubjectAccessReviewSpec{User: "u"}, verb, generic)
			if seen[k] {
				t.Errorf("verb %q, generic %t: is another question", verb, generic)
			}
			seen[k] = true
		}
	}
}
