package admission

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// The tests of this file are here because test/mutation broke the code and nothing else noticed.

// readings reads the review of a request as it comes by the wire, where its objects are not copied: as API
// servers write it, and with something that the library has to read.
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

func TestC5_CreateComparesWithNothingHoweverItIsRead(t *testing.T) {
	req := scaling()
	req.Operation, req.OldObject = admissionv1.Create, req.Object
	for name, in := range readings(t, req) {
		if result, err := reviewer(compile(t), holding("granular")).ReviewDecoded(t.Context(), Granular, in); err != nil || result.Allowed || len(result.Requirements) == 0 {
			t.Errorf("%s: an oldObject beside CREATE hides what is new: %+v, %v", name, result, err)
		}
	}
}

func TestD1_WhatWasAndWhatIsHoweverTheyAreRead(t *testing.T) {
	for name, in := range readings(t, update(`{"paused":true}`, `{"replicas":2}`)) {
		result, err := reviewer(compile(t), holding("update")).ReviewDecoded(t.Context(), Granular, in)
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

func TestBadInput_AFieldThatNobodyKnowsMayNotStandTwice(t *testing.T) {
	for _, in := range []string{`"uid":"u-1"`, `"username":"alice"`, `"kind":"AdmissionReview"`, `"resource":"deployments"`} {
		for more, ok := range map[string]bool{`,"newField":1`: true, `,"newField":1,"newField":2`: false} {
			body := strings.Replace(wholeReview, in, in+more, 1)
			if got, err := Read([]byte(body)); (err == nil) != ok {
				t.Errorf("%s: %v, %v", body, got, err)
			}
		}
	}
}
