package authz

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Texts that run into each other, or look like what is between them, make no two questions one.
func TestP8_QuestionsAreToldApartWhateverIsInThem(t *testing.T) {
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

func TestP8_QuestionWithSelectorsIsRefused(t *testing.T) {
	selector, err := fields.ParseSelector("metadata.name=web")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := questionOf(authorizer.AttributesRecord{FieldSelectorRequirements: selector.Requirements()}); err == nil || key != "" {
		t.Errorf("got %q, %v", key, err)
	}
}
