package admission

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/schematest"
)

// causesOf returns the causes of a denial of an update to the holder of some verbs.
func causesOf(t *testing.T, req *admissionv1.AdmissionRequest, at Endpoint, verbs ...string) (causes []metav1.StatusCause, checks int) {
	t.Helper()
	result, err := reviewer(schematest.Schema(t), holding(verbs...)).Review(t.Context(), at, req)
	response := Response(result, err, req)
	if err != nil || response.Allowed {
		t.Fatalf("got %+v, %v", response, err)
	}
	return response.Result.Details.Causes, len(result.Checks)
}

func TestP5_CausesNameEveryChangeThatIsNotCovered(t *testing.T) {
	req := update(`{"replicas":1,"paused":false,"minReadySeconds":1}`, `{"replicas":2,"paused":true,"minReadySeconds":2}`)
	causes, _ := causesOf(t, req, Granular, "granular")
	if len(causes) != 3 {
		t.Fatalf("causes %+v, want one for each change", causes)
	}
	for _, c := range causes[1:] {
		if c.Field == causes[0].Field || !strings.HasPrefix(c.Message, "needs ") || strings.Contains(c.Message, "forbidden") {
			t.Errorf("cause %+v", c)
		}
	}
	if causes[1].Field == causes[2].Field {
		t.Errorf("%q is named twice", causes[1].Field)
	}
}

func TestP5_CausesLeaveOutWhatACheckHasCovered(t *testing.T) {
	req := update(`{"replicas":1,"paused":false}`, `{"replicas":2,"paused":true}`)
	causes, _ := causesOf(t, req, Granular, "granular", "granular:scale")
	if len(causes) != 1 || causes[0].Field != ".spec.paused" {
		t.Errorf("causes %+v, want .spec.paused alone", causes)
	}
}

func TestP5_CausesAreBounded(t *testing.T) {
	for _, length := range []int{8, 200, 4000} {
		labels := make([]string, 200)
		for i := range labels {
			labels[i] = fmt.Sprintf("%q:\"1\"", fmt.Sprintf("%0*d", length, i))
		}
		req := update(`{}`, `{}`)
		req.Object.Raw = []byte(strings.Replace(string(req.Object.Raw), `"metadata":{`, `"metadata":{"labels":{`+strings.Join(labels, ",")+`},`, 1))
		causes, _ := causesOf(t, req, Granular, "granular")
		size := 0
		for i, c := range causes {
			size += len(c.Field) + len(c.Message)
			if i > 0 && len(c.Field) > maxCauseText+len("…") {
				t.Errorf("field of %d bytes", len(c.Field))
			}
		}
		last := causes[len(causes)-1]
		if len(causes) > maxDenialCauses || size > maxCauseBytes || len(causes) < 2 || !strings.HasSuffix(last.Message, " further changes are not listed") {
			t.Errorf("names of %d bytes: %d causes of %d bytes, the last %+v", length, len(causes), size, last)
			continue
		}
		// Each change is in a cause, or counted.
		if want := fmt.Sprintf("%d further changes are not listed", len(labels)-(len(causes)-1)); last.Message != want {
			t.Errorf("names of %d bytes: last cause %q, want %q", length, last.Message, want)
		}
	}
}
