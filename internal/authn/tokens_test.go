package authn

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/fieldperm/fieldperm/test/issuer"
)

func TestKEP3331_Signatures(t *testing.T) {
	i, thief := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	public, err := i.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, i, claims(), issuer.Token{})
	accepted(t, a, good, "ann")
	accepted(t, a, sign(t, i, claims(), issuer.Token{ClaimedKeyID: "-"}), "ann")
	parts := strings.Split(good, ".")
	other := strings.Split(sign(t, i, claims(map[string]any{"sub": "bob"}), issuer.Token{}), ".")
	for name, c := range map[string]struct{ token, want string }{
		"alg none":                   {sign(t, i, claims(), issuer.Token{Algorithm: "none"}), "is signed by an algorithm that is not accepted"},
		"HS256 with the public key":  {sign(t, i, claims(), issuer.Token{Algorithm: "HS256", Secret: public}), "is signed by an algorithm that is not accepted"},
		"another issuer's key":       {sign(t, thief, claims(map[string]any{"iss": i.URL()}), issuer.Token{}), "is signed by none of the issuer's keys"},
		"a key that is not there":    {sign(t, i, claims(), issuer.Token{ClaimedKeyID: "key-9"}), "is signed by none of the issuer's keys"},
		"other claims":               {parts[0] + "." + other[1] + "." + parts[2], "is signed by none of the issuer's keys"},
		"no signature":               {parts[0] + "." + parts[1] + ".", "is "},
		"another iss":                {sign(t, i, claims(map[string]any{"iss": "https://else.example.com"}), issuer.Token{}), `issuer "https://else.example.com": is none of jwt[].issuer.url`},
		"no iss":                     {sign(t, i, claims(map[string]any{"iss": nil}), issuer.Token{}), `issuer "": is none of jwt[].issuer.url`},
		"iss with one more slash":    {sign(t, i, claims(map[string]any{"iss": i.URL() + "/"}), issuer.Token{}), "is none of jwt[].issuer.url"},
		"expired":                    {sign(t, i, claims(), issuer.Token{Expired: true}), "is expired"},
		"no exp":                     {sign(t, i, claims(map[string]any{"exp": nil}), issuer.Token{}), "is expired"},
		"nbf in two minutes":         {sign(t, i, claims(map[string]any{"nbf": time.Now().Add(2 * time.Minute).Unix()}), issuer.Token{}), "is not valid yet"},
		"exp is a text":              {sign(t, i, claims(map[string]any{"exp": "tomorrow"}), issuer.Token{}), "has claims that are not of the types"},
		"no JWT":                     {"abc", "bearer token: is not a JWT"},
		"three parts that are none":  {"a.b.c", "bearer token: is not a JWT"},
		"four parts":                 {good + ".x", "bearer token: is not a JWT"},
		"JSON, not compact":          {`{"payload":"x","signatures":[]}`, "bearer token: is not a JWT"},
		"claims that are not a JSON": {parts[0] + ".AAAA." + parts[2], "bearer token: is not a JWT"},
		"a header that is not one":   {"AAAA." + parts[1] + "." + parts[2], "is not a JWT"},
	} {
		t.Run(name, func(t *testing.T) { refusedWith(t, a, c.token, c.want) })
	}
	// The library allows clocks to differ by a minute, and ignores iat.
	accepted(t, a, sign(t, i, claims(map[string]any{"nbf": time.Now().Add(30 * time.Second).Unix()}), issuer.Token{}), "ann")
	accepted(t, a, sign(t, i, claims(map[string]any{"iat": time.Now().Add(time.Hour).Unix()}), issuer.Token{}), "ann")
	accepted(t, a, sign(t, i, claims(map[string]any{"iat": nil}), issuer.Token{}), "ann")
}

func TestKEP3331_AllAsymmetricAlgorithms(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	for _, algorithm := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"} {
		if _, err := i.Add(algorithm, false); err != nil {
			t.Fatal(err)
		}
		acceptedSoon(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
	}
}

// acceptedSoon is accepted for a token with a new key. For a moment after fetching keys, the library still uses the previous ones
// (go-oidc, keysFromRemote).
func acceptedSoon(t *testing.T, a authenticator.Request, token, name string) {
	t.Helper()
	eventually(t, "a key that is new is known", func() bool {
		_, err := identify(a, token)
		return err == nil
	})
	accepted(t, a, token, name)
}

func TestKEP3331_KeysRotate(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	// Each token has different claims, because the cache answers for a token that it knows.
	token := func(sub, key string) string {
		return sign(t, i, claims(map[string]any{"sub": sub}), issuer.Token{KeyID: key})
	}
	accepted(t, a, token("1", "key-1"), "1")
	before := i.Requests().Keys
	accepted(t, a, token("2", "key-1"), "2")
	if after := i.Requests().Keys; after != before {
		t.Errorf("keys were fetched %d times for a key that is known", after-before)
	}
	if _, err := i.Rotate(true); err != nil {
		t.Fatal(err)
	}
	acceptedSoon(t, a, token("3", "key-2"), "3")
	if after := i.Requests().Keys; after != before+1 {
		t.Errorf("keys were fetched %d times for a key that is new, want once", after-before)
	}
	accepted(t, a, token("4", "key-1"), "4")
	if _, err := i.Rotate(false); err != nil {
		t.Fatal(err)
	}
	acceptedSoon(t, a, token("5", "key-3"), "5")
	for _, gone := range []string{"key-1", "key-2"} {
		n := 0
		eventually(t, "a key that is gone is not known", func() bool {
			n++
			_, err := identify(a, token(fmt.Sprint(gone, n), gone))
			return err != nil && strings.Contains(err.Error(), "is signed by none of the issuer's keys")
		})
	}
	i.Behave(issuer.Behaviour{Only: issuer.Keys, Status: http.StatusInternalServerError, Body: "secret"})
	eventually(t, "that keys cannot be fetched is said", func() bool {
		_, err := identify(a, sign(t, i, claims(), issuer.Token{ClaimedKeyID: "key-9"}))
		return err != nil && strings.Contains(err.Error(), "the issuer's keys cannot be fetched")
	})
	accepted(t, a, token("8", "key-3"), "8")
}

// A token that was refused because its issuer failed is accepted as soon as the issuer works.
func TestKEP3331_RefusalsAreNotRemembered(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	token := sign(t, i, claims(), issuer.Token{})
	i.Behave(issuer.Behaviour{Only: issuer.Keys, Status: http.StatusServiceUnavailable})
	refusedWith(t, a, token, "the issuer's keys cannot be fetched")
	i.Behave(issuer.Behaviour{})
	began := time.Now()
	acceptedSoon(t, a, token, "ann")
	if took := time.Since(began); took >= acceptedFor/2 {
		t.Errorf("it took %v", took)
	}
}

// No cause contains text of the token, wherever the library's message has it.
func TestCauseHoldsNothingOfTheToken(t *testing.T) {
	for message, want := range map[string]string{
		`oidc: required claim hd value does not match. Got = secret value does not match. , want = acme`:                     `claimValidationRules: claim "hd" has another value`,
		`oidc: verify token: oidc: expected audience "a" got ["oidc: required claim secret not present in ID token"]`:        "is for none of issuer.audiences",
		`oidc: verify token: oidc: token is expired (Token Expiry: 2001-01-01)`:                                              "is expired",
		`oidc: error evaluating claim validation expression: expression 'int(claims.n)' resulted in error: parsing "secret"`: "claimValidationRules: expression fails",
		`something new about a secret`: "is not accepted",
	} {
		if got := cause(message); got != want {
			t.Errorf("cause of %q is %q, want %q", message, got, want)
		}
	}
}

func TestKEP3331_HowATokenIsPresented(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	token := sign(t, i, claims(), issuer.Token{})
	const noUser, bad = "", "bad"
	for name, c := range map[string]struct {
		headers []string
		target  string
		want    string
	}{
		"bearer":                          {headers: []string{"bearer " + token}, want: "ann"},
		"BEARER":                          {headers: []string{"BEARER " + token}, want: "ann"},
		"with space around":               {headers: []string{"  Bearer " + token + "  "}, want: "ann"},
		"with more after it":              {headers: []string{"Bearer " + token + " more"}, want: "ann"},
		"two spaces":                      {headers: []string{"Bearer  " + token}, want: noUser},
		"no header":                       {want: noUser},
		"empty bearer":                    {headers: []string{"Bearer "}, want: noUser},
		"no Bearer":                       {headers: []string{token}, want: noUser},
		"another scheme":                  {headers: []string{"Basic " + token}, want: noUser},
		"two headers, the first is good":  {headers: []string{"Bearer " + token, "Bearer a.b.c"}, want: "ann"},
		"two headers, the second is good": {headers: []string{"Bearer a.b.c", "Bearer " + token}, want: bad},
		"in the query":                    {target: "/permissions?access_token=" + token, want: noUser},
	} {
		t.Run(name, func(t *testing.T) {
			if c.target == "" {
				c.target = "/permissions"
			}
			r := httptest.NewRequest(http.MethodGet, c.target, nil)
			for _, header := range c.headers {
				r.Header.Add("Authorization", header)
			}
			response, ok, err := a.AuthenticateRequest(r)
			if ok != (c.want == "ann") || (err != nil) != (c.want == bad) {
				t.Fatalf("caller is %v, %v, %v, want %q", response, ok, err, c.want)
			}
			if ok && (response.User.GetName() != "ann" || r.Header.Get("Authorization") != "") {
				t.Errorf("caller is %v, and the header %q", response.User, r.Header)
			}
			if !ok && response != nil {
				t.Errorf("a response without a user: %v", response)
			}
		})
	}
}

func TestKEP3331_Anonymous(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	token := sign(t, i, claims(), issuer.Token{})
	for name, c := range map[string]struct {
		text string
		path map[string]bool
	}{
		"not said":       {"", map[string]bool{"/permissions": false, "/review": false}},
		"disabled":       {"anonymous: {enabled: false}\n", map[string]bool{"/permissions": false, "/review": false}},
		"enabled":        {"anonymous: {enabled: true}\n", map[string]bool{"/permissions": true, "/review": true}},
		"for a path":     {"anonymous: {enabled: true, conditions: [{path: /permissions}]}\n", map[string]bool{"/permissions": true, "/review": false, "/permissions/": false}},
		"without issuer": {"none", map[string]bool{"/permissions": true}},
	} {
		t.Run(name, func(t *testing.T) {
			text := configuration(entry(i, named)) + c.text
			if c.text == "none" {
				text = configuration() + "anonymous: {enabled: true}\n"
			}
			a, _ := start(t, settings(t, text))
			for path, want := range c.path {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				response, ok, err := a.AuthenticateRequest(r)
				if ok != want || err != nil {
					t.Fatalf("%s: %v, %v, want %v", path, ok, err, want)
				}
				if ok && (response.User.GetName() != user.Anonymous || strings.Join(response.User.GetGroups(), " ") != user.AllUnauthenticated) {
					t.Errorf("%s: caller is %+v", path, response.User)
				}
			}
			// A bad token does not make the request anonymous, even on paths that accept anonymous requests.
			refusedWith(t, a, "a.b.c", "is not a JWT")
			if c.text != "none" {
				accepted(t, a, token, "ann")
			}
		})
	}
}

// The user is in the request's context in the form that later handlers read.
func TestUserOfTheContext(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named))
	got := accepted(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
	if from, ok := request.UserFrom(request.WithUser(t.Context(), got)); !ok || from.GetName() != "ann" {
		t.Errorf("user of the context is %v", from)
	}
}
