package admission

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// wholeAccess is a review with every field that an API server writes about an object.
const wholeAccess = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"resourceAttributes":{"namespace":"shop","verb":"update",` +
	`"group":"apps","version":"v1","resource":"deployments","subresource":"scale","name":"web"},"user":"alice","groups":["a","b"],"extra":{"k/x":["1","2"],"l":[]},"uid":"1"},` +
	`"status":{"allowed":false}}`

// accessBoth compares knownAccess with the library, and reports whether knownAccess read the body.
func accessBoth(t *testing.T, body []byte) bool {
	t.Helper()
	got := knownAccess(body)
	if got == nil {
		return false
	}
	var want authorizationv1.SubjectAccessReview
	if err := decodeDocument(body, &want, &want.TypeMeta, authorizationVersion, accessKind); err != nil {
		t.Fatalf("%s: is read; the library says %v", body, err)
	}
	if !reflect.DeepEqual(got, &want.Spec) {
		t.Fatalf("%s:\ngot  %+v\nwant %+v", body, got, &want.Spec)
	}
	return true
}

func TestBadInput_AccessReviewsAreReadAsByTheLibrary(t *testing.T) {
	if !accessBoth(t, []byte(wholeAccess)) {
		t.Error("a review as API servers write it is left to the library")
	}
	for change, read := range map[[2]string]bool{
		{`"user":"alice"`, `"user":"alice","user":"bob"`}: false, {`"user":"alice"`, `"User":"bob"`}: false, {`"user":"alice"`, `"user":null`}: false, {`"user":"alice"`, `"user":1`}: false,
		{`"user"`, `"us\u0065r"`}: true, {`"alice"`, `"\u0061lice"`}: true, {`"alice"`, `"al\ud800"`}: false, {`"alice"`, "\"al\xff\""}: false,
		{`"metadata":{}`, `"metadata":{"name":"x"}`}: false, {`"metadata":{},`, ``}: true, {`"metadata":{}`, `"metadata":null`}: false, {`"metadata":{}`, `"metadata":[]`}: false,
		{`"status":{"allowed":false}`, `"status":{"allowed":true}`}: true, {`"status":{"allowed":false}`, `"status":{"allowed":1}`}: false, {`"status":{"allowed":false}`, `"status":{"denied":true}`}: false,
		{`/v1"`, `/v1beta1"`}: false, {`"kind":"SubjectAccessReview",`, ``}: false, {`"apiVersion":"authorization.k8s.io/v1",`, ``}: false, {`"kind":"S`, `"kind":"s`}: false,
		{`"groups":["a","b"]`, `"groups":null`}: false, {`"groups":["a","b"]`, `"groups":[]`}: true, {`"groups":["a","b"]`, `"groups":["a",null]`}: false,
		{`"extra":{`, `"extra":{"l":["3"],`}: false, {`"extra":{"k/x":["1","2"],"l":[]}`, `"extra":{}`}: true, {`"extra":{"k/x"`, `"extra":{"new":null,"k/x"`}: false,
		{`"name":"web"`, `"name":"web","fieldSelector":{}`}: false, {`"user":"alice"`, `"user":"alice","nonResourceAttributes":{"path":"/"}`}: false,
		{`"spec":{`, `"spec":{},"spec":{`}: false, {`"spec":{`, `"spec": {`}: true, {`"uid":"1"}`, `"uid":"1","new":1}`}: false,
	} {
		if !strings.Contains(wholeAccess, change[0]) {
			t.Fatalf("%q is not in the review", change[0])
		}
		if got := accessBoth(t, []byte(strings.Replace(wholeAccess, change[0], change[1], 1))); got != read {
			t.Errorf("%q in place of %q: is read %t", change[1], change[0], got)
		}
	}
}

func TestBadInput_BrokenAccessReviews(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 3617))
	known := 0
	for range 50000 {
		body := []byte(wholeAccess)
		for range 1 + r.IntN(2) {
			switch at := r.IntN(len(body)); r.IntN(3) {
			case 0:
				body[at] = "{}[]:,\"\\ 1nx\xff\x00"[r.IntN(14)]
			case 1:
				body = append(body[:at], body[at+1:]...)
			case 2:
				until := at + r.IntN(min(60, len(body)-at))
				body = append(body[:until:until], body[at:]...) // Said twice.
			}
		}
		if accessBoth(t, body) {
			known++
		}
	}
	if known < 100 {
		t.Errorf("%d reviews are read: the draw proves little", known)
	}
}

// FuzzAccess tests knownAccess with hostile bodies.
func FuzzAccess(f *testing.F) {
	f.Add([]byte(wholeAccess))
	f.Fuzz(func(t *testing.T, body []byte) { accessBoth(t, body) })
}
