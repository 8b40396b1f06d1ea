package review

import (
	"context"
	"maps"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/admission"
)

// subject returns the user that the question is about: the caller, or the user in the question.
func (a API) subject(ctx context.Context, caller user.Info, named authenticationv1.UserInfo) (authenticationv1.UserInfo, error) {
	own := userInfo(caller)
	nobody := authenticationv1.UserInfo{}
	if own.Username == admission.ProbeUser || named.Username == admission.ProbeUser {
		return nobody, refusef(http.StatusForbidden, "user %q is fieldperm's own and is refused whatever it sends: ask as and about another user", admission.ProbeUser)
	}
	if named.Username == "" {
		if named.UID != "" || len(named.Groups) > 0 || len(named.Extra) > 0 {
			return nobody, refusef(http.StatusBadRequest, "admission request: .request.userInfo has no username: send one, or leave userInfo out to ask about yourself")
		}
		return own, nil
	}
	if sameUser(own, named) {
		return own, nil
	}
	allowed := false
	if a.MayReview != nil {
		var err error
		if allowed, err = a.MayReview(ctx, caller); err != nil {
			return nobody, refusef(http.StatusInternalServerError, "whether the caller may ask about others: %w: try again, or leave .request.userInfo out to ask about yourself", err)
		}
	}
	if !allowed {
		return nobody, refusef(http.StatusForbidden,
			"user %q may not ask about anyone else, nor about itself with other groups, uid or extra: needs create on subjectaccessreviews.authorization.k8s.io; leave .request.userInfo out to ask about yourself",
			clipped(own.Username))
	}
	return named, nil
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	return out
}

// sameUser compares everything that an authorizer may look at. The order of groups has no meaning.
func sameUser(a, b authenticationv1.UserInfo) bool {
	groups := func(u authenticationv1.UserInfo) []string {
		return slices.Compact(slices.Sorted(slices.Values(u.Groups)))
	}
	return a.Username == b.Username && a.UID == b.UID && slices.Equal(groups(a), groups(b)) &&
		maps.EqualFunc(a.Extra, b.Extra, slices.Equal)
}
