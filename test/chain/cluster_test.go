//go:build integration

package chain

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/issuer"
)

// TestKEP3331_ClaimsBecomeUserGroupsAndExtra: kube-apiserver maps the claims of a token as the file says.
func TestKEP3331_ClaimsBecomeUserGroupsAndExtra(t *testing.T) {
	s := on(t, broken)
	answer, err := s.wire(t, person{name: "ann", groups: []string{scalers, "staff"}, team: "payments"}).Do(t.Context(), http.MethodPost,
		"/apis/authentication.k8s.io/v1/selfsubjectreviews", nil, "application/json",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
	must(t, err)
	expect(t, answer, http.StatusCreated)
	var review authenticationv1.SelfSubjectReview
	must(t, json.Unmarshal(answer.Body, &review))
	is := review.Status.UserInfo
	if is.Username != "jwt:ann" || is.UID != "uid-of-ann" || !slices.Contains(is.Groups, "jwt:"+scalers) || !slices.Contains(is.Groups, "jwt:staff") {
		t.Errorf("user %+v, want jwt:ann with the groups of the claim", is)
	}
	if team := is.Extra[teamKey]; len(team) != 1 || team[0] != "payments" {
		t.Errorf("extra %v, want the team", is.Extra)
	}

	config := s.config(t, person{name: "ann"})
	config.BearerToken, err = s.issuer.Sign(person{name: "ann"}.claims(), issuer.Token{Expired: true})
	must(t, err)
	w, err := corpus.NewWire(config)
	must(t, err)
	expect(t, s.patch(t, w, plain, replicas(2)), http.StatusUnauthorized)
}

// TestKEP3331_A1_TokenUsersChangeTheirFields: a user that is a member of a group by its token holds the granular verbs of the group, and
// may change exactly those fields. kube-apiserver itself calls /authorize with a token.
func TestKEP3331_A1_TokenUsersChangeTheirFields(t *testing.T) {
	s := on(t, broken)
	kubectl := s.kubectl(t, person{name: "kim", groups: []string{scalers}})
	stdout, stderr, err := kubectl.Run(t.Context(), "", "-n", plain, "scale", "deployment/web", "--replicas=3")
	if err == nil {
		t.Errorf("kubectl scale needs deployments/scale, which is not granted, and did: %s", stdout)
	}
	if !strings.Contains(stderr, `User "jwt:kim" cannot patch resource "deployments/scale"`) {
		t.Errorf("kubectl says %q", stderr)
	}
	if _, stderr, err = kubectl.Run(t.Context(), "", "-n", plain, "patch", "deployment/web", "--type=merge", "-p", replicas(3)); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
	if _, stderr, err = kubectl.Run(t.Context(), "", "-n", plain, "set", "image", "deployment/web", "web=evil:1"); err == nil {
		t.Error("the image was set by a holder of granular:scale")
	}
	for _, part := range []string{`User "jwt:kim" may not change .spec.template.spec.containers`, "granular:image(web)"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("kubectl says %q, which lacks %q", stderr, part)
		}
	}
	// The user is not in the group and gets kube-apiserver's own refusal.
	expect(t, s.patch(t, s.wire(t, person{name: "kit", groups: []string{"staff"}}), plain, replicas(4)), http.StatusForbidden,
		`User "jwt:kit" cannot patch resource "deployments"`)
}

// TestKEP3221_ExtraReachesAuthorizersAndConditions: a claim that is mapped to the extra reaches kube-apiserver's webhook authorizers and
// their conditions, both for the request itself and for fieldperm's checks.
func TestKEP3221_ExtraReachesAuthorizersAndConditions(t *testing.T) {
	s := on(t, broken)
	with, without := person{name: "tess", groups: []string{scalers}, team: "payments"}, person{name: "tom", groups: []string{scalers}}
	expect(t, s.patch(t, s.wire(t, with), plain, replicas(5)), http.StatusOK)
	expect(t, s.patch(t, s.wire(t, without), plain, replicas(6)), http.StatusOK)
	asked := of(s.watcher.questions(), "jwt:tess")
	verbs := map[string]bool{}
	for _, q := range asked {
		if team := q.Extra[teamKey]; len(team) != 1 || team[0] != "payments" {
			t.Errorf("%+v: has no team", q)
		}
		if q.UID != "uid-of-tess" || !slices.Contains(q.Groups, "jwt:"+scalers) {
			t.Errorf("%+v: is not the user of the token", q)
		}
		verbs[q.ResourceAttributes.Verb] = true
	}
	// RBAC has no opinion on the request itself and on the more general verb.
	if !verbs["patch"] || !verbs["granular:*"] {
		t.Errorf("the watcher was asked about %v, want patch, and granular:* by way of fieldperm", verbs)
	}
	if asked := of(s.watcher.questions(), "jwt:tom"); len(asked) > 0 {
		t.Errorf("was asked about a user without a team: %+v", asked)
	}
}
