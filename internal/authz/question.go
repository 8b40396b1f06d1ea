package authz

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// key is the cache key of a question. Two questions have the same key only if an authorizer cannot tell them apart.
type key struct {
	// identity is the text of the user and the object.
	identity string
	verb     string
	// generic is true if the user's extra has A4's key in addition to the keys in identity.
	generic bool
}

// keyOf returns the key of a question. A question with selectors is an error.
func keyOf(a authorizer.Attributes) (key, error) {
	if c, ok := a.(*check); ok {
		return c.key(), nil
	}
	fields, fieldsErr := a.GetFieldSelector()
	labels, labelsErr := a.GetLabelSelector()
	if len(fields) > 0 || len(labels) > 0 || fieldsErr != nil || labelsErr != nil {
		return key{}, fmt.Errorf("authorizer: question about %q has selectors: ask without", a.GetResource())
	}
	u := a.GetUser()
	if u == nil {
		u = &user.DefaultInfo{}
	}
	return key{identity: identityOf(u, sortedExtra(u.GetExtra()), a), verb: a.GetVerb()}, nil
}

// questionOf returns a key as one text. Two questions have the same text only if an authorizer cannot tell them apart.
func questionOf(a authorizer.Attributes) (string, error) {
	k, err := keyOf(a)
	if err != nil {
		return "", err
	}
	q := strconv.AppendBool(make(lengthed, 0, len(k.identity)+len(k.verb)+16), k.generic)
	return string(append(lengthed(q).texts(k.verb), k.identity...)), nil
}

// identityOf encodes all of a question except the verb. extra is the user's extra, sorted by key.
func identityOf(u user.Info, extra []extraValues, a authorizer.Attributes) string {
	q := make(lengthed, 0, 1024)
	q = q.texts(u.GetName(), u.GetUID()).list(u.GetGroups())
	q = q.number(len(extra))
	for _, e := range extra {
		q = q.texts(e.key).list(e.values)
	}
	q = strconv.AppendBool(q, a.IsResourceRequest())
	q = q.texts(a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(), a.GetPath())
	return string(q)
}

// extraValues is one key of a user's extra with its values.
type extraValues struct {
	key    string
	values []string
}

// sortedExtra returns a user's extra, sorted by key.
func sortedExtra[V ~[]string](extra map[string]V) []extraValues {
	out := make([]extraValues, 0, len(extra))
	for key, values := range extra {
		out = append(out, extraValues{key, values})
	}
	slices.SortFunc(out, func(a, b extraValues) int { return strings.Compare(a.key, b.key) })
	return out
}

// lengthed encodes texts with a length before each text, so that different lists of texts never have the same encoding.
type lengthed []byte

func (q lengthed) number(n int) lengthed { return append(strconv.AppendInt(q, int64(n), 10), ':') }

func (q lengthed) texts(texts ...string) lengthed {
	for _, text := range texts {
		q = append(q.number(len(text)), text...)
	}
	return q
}

func (q lengthed) list(texts []string) lengthed { return q.number(len(texts)).texts(texts...) }
