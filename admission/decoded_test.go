package admission

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// wholeReview is a review with every field that an API server writes.
const wholeReview = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"autoscaling","version":"v1","kind":"Scale"},` +
	`"resource":{"group":"apps","version":"v1","resource":"deployments"},"subResource":"scale","requestKind":{"group":"autoscaling","version":"v1","kind":"Scale"},` +
	`"requestResource":{"group":"apps","version":"v1","resource":"deployments"},"requestSubResource":"scale","name":"web","namespace":"shop","operation":"UPDATE",` +
	`"userInfo":{"username":"alice","uid":"1","groups":["a","b"],"extra":{"k/x":["1","2"],"l":[]}},"object":{"spec":{"replicas":2}},"oldObject":{"spec":{"replicas":1}},` +
	`"dryRun":true,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`

// readBoth compares Read with the library on the whole body, including the objects.
func readBoth(t *testing.T, body []byte) (plain bool) {
	t.Helper()
	var want admissionv1.AdmissionReview
	wantErr := jsonv2.Unmarshal(body, &want)
	if wantErr == nil && (want.Kind != "AdmissionReview" || want.APIVersion != admissionVersion || want.Request == nil) {
		return false // The test does not compare this with the library.
	}
	got, err := Read(body)
	if wantErr != nil {
		// Diff decides about a name that occurs twice within an object. No component reads the options.
		below := regexp.MustCompile(`duplicate object member name .* within "/request/(object|oldObject|options)`)
		if err == nil && !below.MatchString(wantErr.Error()) {
			t.Fatalf("%s: is read; the library says %v", body, wantErr)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v; the library reads it", body, err)
	}
	defer got.Release()
	var in admissionv1.AdmissionReview
	plain = new(DecodedReview).decodeKnown(got.doc.Root(), &in)
	for _, raw := range []*[]byte{&want.Request.Object.Raw, &want.Request.OldObject.Raw, &want.Request.Options.Raw, &got.Request.Options.Raw} {
		*raw = bytes.TrimSpace(*raw)
	}
	want.Request.Options.Object, got.Request.Options.Object = nil, nil
	if a, b := marshalled(t, want.Request), marshalled(t, got.Request); a != b {
		t.Fatalf("got  %s\nwant %s", b, a)
	}
	if !reflect.DeepEqual(want.Request.UserInfo, got.Request.UserInfo) && marshalled(t, want.Request.UserInfo) != marshalled(t, got.Request.UserInfo) {
		t.Fatalf("got %v, want %v", got.Request.UserInfo, want.Request.UserInfo)
	}
	return plain
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRead_AgreesWithTheLibrary(t *testing.T) {
	if !readBoth(t, []byte(wholeReview)) {
		t.Error("a review as API servers write it is left to the library")
	}
	for _, change := range [][2]string{
		{`"uid":"u-1"`, `"uid":"u-1","uid":"u-2"`}, {`"uid":"u-1"`, `"uid":"u-1","\u0075id":"u-2"`}, {`"uid"`, `"UID"`}, {`"uid":"u-1"`, `"uid":null`}, {`"uid":"u-1"`, `"uid":1`},
		{`"uid":"u-1"`, `"uid":"\u0061","new":{"a":1}`}, {`"username":"alice"`, `"username":"alice","username":"bob"`}, {`"username":"alice"`, `"Username":"alice"`}, {`"groups":["a","b"]`, `"groups":null`},
		{`"groups":["a","b"]`, `"groups":"a"`}, {`"groups":["a","b"]`, `"groups":["a",1]`}, {`"extra":{`, `"extra":{"l":["3"],`}, {`"extra":{"k/x":["1","2"],"l":[]}`, `"extra":{"k":null}`}, {`"dryRun":true`, `"dryRun":"true"`},
		{`"dryRun":true`, `"dryRun":null`}, {`"options":{`, `"options":{"a":1,"a":2,`}, {`"object":{"spec":{"replicas":2}}`, `"object":null`}, {`"object":{"spec":{"replicas":2}}`, `"object":[1]`},
		{`"object":{"spec"`, `"object":{"a":1},"object":{"spec"`}, {`"oldObject":{`, `"old\u004fbject":{`}, {`"kind":"Scale"},`, `"kind":"Scale","resource":"x"},`}, {`"request":{`, `"request":{},"request":{`},
		{`"request":{`, `"Request":{`}, {`"kind":"AdmissionReview"`, `"kind":"AdmissionReview","response":{"uid":"x","allowed":true}`}, {`"name":"web"`, `"name": "web" `}, {`"oldObject":{"spec":{"replicas":1}},`, ``},
		{`"oldObject":{"spec":{"replicas":1}}`, `"oldObject":"text"`}, {`"subResource":"scale",`, `"subresource":"scale",`}, {`"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`, `"options":null`},
	} {
		if !strings.Contains(wholeReview, change[0]) {
			t.Fatalf("%q is not in the review", change[0])
		}
		readBoth(t, []byte(strings.Replace(wholeReview, change[0], change[1], 1)))
	}
}

// TestRead_BrokenReviews: Read and the library agree on broken reviews and on reviews with duplicate names.
func TestRead_BrokenReviews(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 3617))
	plain := 0
	for range 20000 {
		body := []byte(wholeReview)
		switch at := r.IntN(len(body)); r.IntN(3) {
		case 0:
			body[at] = `{}[]:,"\ 1nx`[r.IntN(12)]
		case 1:
			body = append(body[:at], body[at+1:]...)
		case 2:
			until := at + r.IntN(min(60, len(body)-at))
			body = append(body[:until:until], body[at:]...) // Said twice.
		}
		if readBoth(t, body) {
			plain++
		}
	}
	if plain == 0 {
		t.Error("no review is read in place: the draw proves little")
	}
}

// readings reads the review of a request as it arrives over HTTP, where its objects are not copied: in the form that API servers write,
// and with a part that only the library decodes.
func readings(t *testing.T, req *admissionv1.AdmissionRequest) map[string]*DecodedReview {
	t.Helper()
	out := map[string]*DecodedReview{"from a request": {Request: req}}
	for name, more := range map[string]string{"in place": "", "by the library": `"newField":1,`} {
		body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{` + more + `"uid":"u","kind":` + marshalled(t, req.Kind) + `,"resource":` + marshalled(t, req.Resource) +
			`,"name":"web","namespace":"shop","operation":"` + string(req.Operation) + `","userInfo":{"username":"alice"},"object":` + string(req.Object.Raw) + `,"oldObject":` + string(req.OldObject.Raw) + `}}`
		in, err := Read([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if plain := new(DecodedReview).decodeKnown(in.doc.Root(), &admissionv1.AdmissionReview{}); plain != (more == "") {
			t.Fatalf("%s: is read in place: %t", name, plain)
		}
		t.Cleanup(in.Release)
		out[name] = in
	}
	return out
}

func TestC5_CreateHasNoOldObjectInBothDecoders(t *testing.T) {
	req := scaling()
	req.Operation, req.OldObject = admissionv1.Create, req.Object
	for name, in := range readings(t, req) {
		if result, err := reviewer(schematest.Schema(t), holding("granular")).ReviewDecoded(t.Context(), Granular, in); err != nil || result.Allowed || len(result.Requirements) == 0 {
			t.Errorf("%s: an oldObject beside CREATE hides the new fields: %+v, %v", name, result, err)
		}
	}
}

func TestD1_OldAndNewObjectsInBothDecoders(t *testing.T) {
	for name, in := range readings(t, update(`{"paused":true}`, `{"replicas":2}`)) {
		result, err := reviewer(schematest.Schema(t), holding("update")).ReviewDecoded(t.Context(), Granular, in)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]fieldperm.Operation{}
		for _, r := range result.Requirements {
			got[r.Path.String()] = r.Operation
		}
		if len(got) != 2 || got[".spec.paused"] != fieldperm.Removed || got[".spec.replicas"] != fieldperm.Added {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBadInput_ADuplicateUnknownFieldIsRefused(t *testing.T) {
	for _, in := range []string{`"uid":"u-1"`, `"username":"alice"`, `"kind":"AdmissionReview"`, `"resource":"deployments"`} {
		for more, ok := range map[string]bool{`,"newField":1`: true, `,"newField":1,"newField":2`: false} {
			body := strings.Replace(wholeReview, in, in+more, 1)
			if got, err := Read([]byte(body)); (err == nil) != ok {
				t.Errorf("%s: %v, %v", body, got, err)
			}
		}
	}
}

// FuzzRead tests Read with hostile bodies, which any caller of the webhook could send.
func FuzzRead(f *testing.F) {
	f.Add([]byte(wholeReview))
	f.Fuzz(func(t *testing.T, body []byte) { readBoth(t, body) })
}
