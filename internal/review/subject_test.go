package review

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/admission"
)

// whole is a caller with every attribute that an authorizer may look at.
var whole = &user.DefaultInfo{Name: "alice", UID: "7", Groups: []string{"team", "system:authenticated"}, Extra: map[string][]string{"example.com/tenant": {"a", "b"}}}

func TestSubjectIsTheCallerUnlessAnotherIsNamed(t *testing.T) {
	for name, sent := range map[string]string{
		"absent":                    "",
		"null":                      `,"userInfo":null`,
		"empty":                     `,"userInfo":{}`,
		"empty in every field":      `,"userInfo":{"username":"","uid":"","groups":[],"extra":{}}`,
		"itself":                    `,"userInfo":{"username":"alice","uid":"7","groups":["team","system:authenticated"],"extra":{"example.com/tenant":["a","b"]}}`,
		"itself, groups reordered":  `,"userInfo":{"username":"alice","uid":"7","groups":["system:authenticated","team","team"],"extra":{"example.com/tenant":["a","b"]}}`,
		"itself, spelled otherwise": `,"userInfo":{"username":"\u0061lice","uid":"7","groups":["team","system:authenticated"],"extra":{"example.com/tenant":["a","b"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.MayReview = func(context.Context, user.Info) (bool, error) {
				t.Error("asked whether the caller may ask about itself")
				return false, nil
			}
			expect(t, f.post(whole, question(scale+sent)), http.StatusOK, `"allowed": true`)
			want := authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"team", "system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"example.com/tenant": {"a", "b"}}}
			if got := f.grants.asked[0].UserInfo; !reflect.DeepEqual(got, want) {
				t.Errorf("asked about %+v, want %+v", got, want)
			}
		})
	}
}

func TestSubjectOtherThanTheCallerTakesAPermission(t *testing.T) {
	const extra = `"extra":{"example.com/tenant":["a","b"]}`
	for name, sent := range map[string]string{
		"another name":            `"username":"bob"`,
		"another name's case":     `"username":"Alice","uid":"7","groups":["team","system:authenticated"],` + extra,
		"a group more":            `"username":"alice","uid":"7","groups":["team","system:authenticated","system:masters"],` + extra,
		"a group less":            `"username":"alice","uid":"7","groups":["team"],` + extra,
		"no groups":               `"username":"alice"`,
		"another uid":             `"username":"alice","uid":"8","groups":["team","system:authenticated"],` + extra,
		"no uid":                  `"username":"alice","groups":["team","system:authenticated"],` + extra,
		"no extra":                `"username":"alice","uid":"7","groups":["team","system:authenticated"]`,
		"a key of extra more":     `"username":"alice","uid":"7","groups":["team","system:authenticated"],"extra":{"example.com/tenant":["a","b"],"x":["y"]}`,
		"a value of extra more":   `"username":"alice","uid":"7","groups":["team","system:authenticated"],"extra":{"example.com/tenant":["a","b","c"]}`,
		"values of extra swapped": `"username":"alice","uid":"7","groups":["team","system:authenticated"],"extra":{"example.com/tenant":["b","a"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			body := question(scale + `,"userInfo":{` + sent + `}`)
			w := f.post(whole, body)
			expect(t, w, http.StatusForbidden, `user "alice" may not ask about anyone else`)
			expect(t, w, http.StatusForbidden, "needs create on subjectaccessreviews.authorization.k8s.io")
			f.undecided(t)
			f.MayReview = nil
			expect(t, f.post(whole, body), http.StatusForbidden, "needs create on subjectaccessreviews.authorization.k8s.io")
			f.undecided(t)

			var asked user.Info
			f.MayReview = func(_ context.Context, caller user.Info) (bool, error) {
				asked = caller
				return true, nil
			}
			expect(t, f.post(whole, body), http.StatusOK, `"allowed"`)
			if asked != user.Info(whole) {
				t.Errorf("the permission of %v was asked for, not the caller's", asked)
			}
			if got := f.grants.asked[0].UserInfo; sameUser(got, userInfo(whole)) {
				t.Errorf("the question was about the caller: %+v", got)
			}
		})
	}
}

// Nothing in the body can change the caller's identity. An ambiguous body is refused.
func TestSubjectRefusesInvalidUsers(t *testing.T) {
	for name, test := range map[string]struct{ userInfo, want string }{
		"groups without a name": {`"userInfo":{"groups":["system:masters"]}`, "has no username: send one, or leave userInfo out"},
		"uid without a name":    {`"userInfo":{"uid":"7"}`, "has no username"},
		"extra without a name":  {`"userInfo":{"extra":{"a":null}}`, "has no username"},
		"null name":             {`"userInfo":{"username":null,"groups":["system:masters"]}`, "has no username"},
		"userInfo twice":        {`"userInfo":{"username":"alice"},"userInfo":{"username":"bob"}`, `duplicate object member name "userInfo" within "/request"`},
		"username twice":        {`"userInfo":{"username":"alice","username":"bob"}`, `duplicate object member name "username" within "/request/userInfo"`},
		"twice by an escape":    {`"userInfo":{"username":"alice","user\u006eame":"bob"}`, `duplicate object member name "username" within "/request/userInfo"`},
		"UserInfo":              {`"UserInfo":{"username":"bob"}`, `unknown field "request.UserInfo": correct the name`},
		"userinfo":              {`"userinfo":{"username":"bob"}`, `unknown field "request.userinfo": correct the name`},
		"userName":              {`"userInfo":{"userName":"bob"}`, `unknown field "request.userInfo.userName"`},
		"another letter I":      {`"userİnfo":{"username":"bob"}`, "correct the name"},
		"a string":              {`"userInfo":"bob"`, "send one JSON document"},
	} {
		for _, caller := range []string{"alice", "sarah"} {
			t.Run(name+" by "+caller, func(t *testing.T) {
				f := newFixture(t)
				expect(t, f.post(named(caller), question(scale+","+test.userInfo)), http.StatusBadRequest, test.want)
				f.undecided(t)
			})
		}
	}
}

func TestA5_TheProbeUserIsNeitherCallerNorSubject(t *testing.T) {
	for name, test := range map[string]struct{ caller, userInfo string }{
		"about":                  {"sarah", `,"userInfo":{"username":"fieldperm:probe"}`},
		"about with more":        {"sarah", `,"userInfo":{"username":"fieldperm:probe","groups":["system:masters"],"extra":{"fieldperm.dev/probe":["x"]}}`},
		"about by an escape":     {"sarah", `,"userInfo":{"username":"fieldperm\u003aprobe"}`},
		"by itself":              {admission.ProbeUser, ""},
		"by itself about itself": {admission.ProbeUser, `,"userInfo":{"username":"fieldperm:probe","groups":["system:authenticated"]}`},
		"by itself about others": {admission.ProbeUser, `,"userInfo":{"username":"bob"}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.MayReview = func(context.Context, user.Info) (bool, error) { return true, nil }
			expect(t, f.post(named(test.caller), question(scale+test.userInfo)), http.StatusForbidden, "ask as and about another user")
			f.undecided(t)
		})
	}
}

func TestCallerComesFromTheContextAlone(t *testing.T) {
	f := newFixture(t)
	for name, caller := range map[string]user.Info{"nobody": nil, "without a name": &user.DefaultInfo{Groups: []string{"system:masters"}}} {
		t.Run(name, func(t *testing.T) {
			w := f.post(caller, question(scale+`,"userInfo":{"username":"bob"}`))
			expect(t, w, http.StatusUnauthorized, "caller is not authenticated")
			// A caller without authentication does not learn what is wrong with its body.
			if other := f.post(caller, "{"); other.Code != w.Code || other.Body.String() != w.Body.String() {
				t.Errorf("a faulty question: %d %s", other.Code, other.Body)
			}
			f.undecided(t)
		})
	}
	r := httptest.NewRequest(http.MethodPost, "/review", strings.NewReader(question(scale)))
	r.Header.Set("Content-Type", "application/json")
	for _, header := range []string{"X-Remote-User", "Impersonate-User", "Authorization"} {
		r.Header.Set(header, "bob")
	}
	expect(t, f.serve(named("carol"), r), http.StatusOK, `User \"carol\"`)
	if strings.Contains(f.grants.asked[0].UserInfo.Username, "bob") {
		t.Error("a header set the caller")
	}
}
