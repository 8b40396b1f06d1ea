package review

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// FuzzP4_Body checks that no body makes a question about another user if the caller may not ask about others, and that every error
// response is text.
func FuzzP4_Body(f *testing.F) {
	for _, seed := range []string{
		"", "{", "null", "[]", question(""), question(scale), question(about + `,"operation":"CREATE","object":` + one),
		question(about + `,"operation":"DELETE","oldObject":` + one), question(scale + `,"userInfo":{"username":"bob"}`),
		question(scale + `,"userInfo":null`), question(scale + `,"userInfo":{"username":"alice","groups":["system:masters"]}`),
		question(scale + `,"userInfo":{"username":"alice","groups":["system:authenticated"]}`),
		question(scale + `,"userInfo":{"username":"fieldperm:probe"}`), question(scale + `,"UserInfo":{"username":"bob"}`),
		question(scale + `,"user\u0049nfo":{"username":"bob"}`), question(strings.ReplaceAll(scale, `"web"`, "\"\xff\"")),
		question(scale + `,"dryRun":true,"requestResource":{"resource":"pods"},"requestSubResource":"status"`),
		question(about + `,"subResource":"scale","operation":"UPDATE","oldObject":` + one + `,"object":` + two),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		x := newFixture(t)
		w := x.post(named("alice"), body)
		switch w.Code {
		case http.StatusOK:
			var r Report
			if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || r.Allowed != (r.Message == "") {
				t.Errorf("answer %s: %v", w.Body, err)
			}
			if len(x.grants.asked) == 0 {
				t.Error("an answer without any grants")
			}
		case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable:
			if w.Body.Len() == 0 {
				t.Errorf("code %d without a text", w.Code)
			}
		default:
			t.Errorf("code %d: %s", w.Code, w.Body)
		}
		for i := range x.grants.asked {
			if !sameUser(x.grants.asked[i].UserInfo, userInfo(named("alice"))) {
				t.Errorf("asked about %+v", x.grants.asked[i].UserInfo)
			}
		}
	})
}
