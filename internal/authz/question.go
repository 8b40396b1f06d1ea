package authz

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// questionOf is equal for two attributes only if an authorizer cannot tell them apart.
func questionOf(a authorizer.Attributes) (string, error) {
	fields, fieldsErr := a.GetFieldSelector()
	labels, labelsErr := a.GetLabelSelector()
	if len(fields) > 0 || len(labels) > 0 || fieldsErr != nil || labelsErr != nil {
		return "", fmt.Errorf("authorizer: question about %q has selectors: ask without", a.GetResource())
	}
	u := a.GetUser()
	if u == nil {
		u = &user.DefaultInfo{}
	}
	q := make(lengthed, 0, 512)
	q = q.texts(u.GetName(), u.GetUID()).list(u.GetGroups())
	extra := u.GetExtra()
	q = q.number(len(extra))
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		q = q.texts(key).list(extra[key])
	}
	q = strconv.AppendBool(q, a.IsResourceRequest())
	q = q.texts(a.GetVerb(), a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(), a.GetPath())
	return string(q), nil
}

// lengthed is texts with their lengths before them, so that no text can look like two, nor two like one.
type lengthed []byte

func (q lengthed) number(n int) lengthed { return append(strconv.AppendInt(q, int64(n), 10), ':') }

func (q lengthed) texts(texts ...string) lengthed {
	for _, text := range texts {
		q = append(q.number(len(text)), text...)
	}
	return q
}

func (q lengthed) list(texts []string) lengthed { return q.number(len(texts)).texts(texts...) }
