package refusal

import (
	"fmt"
	"strings"
	"testing"
)

const (
	message = `admission webhook \"granular.fieldperm.dev\" denied the request: deployments.apps \"web\" is forbidden: User \"cut…\" may not change .spec.paused: needs granular:*`
	event   = `{"kind":"Event","stage":"ResponseComplete","verb":"patch","user":{"username":"admin"},"impersonatedUser":{"username":"scaler","groups":["g"]},"objectRef":{"resource":"deployments","subresource":"status","namespace":"shop","name":"web","apiGroup":"apps"},"responseStatus":{"code":%d,"message":"%s"}}`
)

func read(t *testing.T, text string) (Log, []Refusal) {
	t.Helper()
	var found []Refusal
	l := Log{Visit: func(r Refusal) { found = append(found, r) }}
	if err := l.Read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return l, found
}

// TestLog_FactsOfTheRecordCount: the user that the write is authorized for, with its whole name, and the namespace.
func TestLog_FactsOfTheRecordCount(t *testing.T) {
	_, found := read(t, fmt.Sprintf(event, 403, message))
	if len(found) != 1 || found[0].User != "scaler" || found[0].Namespace != "shop" || found[0].Resource != "deployments.apps/status" || found[0].Groups[0] != "g" || found[0].Verb != "patch" || found[0].Webhook != "granular.fieldperm.dev" {
		t.Errorf("%+v", found)
	}
	_, found = read(t, `{"kind":"AdmissionReview","request":{"namespace":"shop","name":"web","userInfo":{"username":"scaler"}},"response":{"allowed":false,"status":{"message":"`+strings.ReplaceAll(message, `admission webhook \"granular.fieldperm.dev\" denied the request: `, "")+`"}}}`)
	if len(found) != 1 || found[0].User != "scaler" || found[0].Namespace != "shop" || found[0].Field != ".spec.paused" {
		t.Errorf("%+v", found)
	}
	_, found = read(t, "{\n \"kind\": \"Status\", \"code\": 403, \"message\": \""+message+"\"}")
	if len(found) != 1 || found[0].User != "cut…" {
		t.Errorf("%+v", found)
	}
}

func TestLog_ReadsLinesListsAndBrokenLines(t *testing.T) {
	good, allowed := fmt.Sprintf(event, 403, message), fmt.Sprintf(event, 200, "")
	earlier := strings.Replace(good, "ResponseComplete", "ResponseStarted", 1)
	l, found := read(t, good+"\n\n"+allowed+"\n{broken\n"+earlier+"\n"+`{"kind":"EventList","items":[`+good+","+fmt.Sprintf(event, 422, "invalid")+"]}\n")
	if len(found) != 2 || l.Broken != 1 || l.Others != 1 || l.Records != 5 {
		t.Errorf("%d found, %+v", len(found), l)
	}
	if _, found = read(t, `{"ts":1,"level":"error","msg":"Reconciler error","error":"`+message+`"}`); len(found) != 1 {
		t.Errorf("a log of a controller: %d found", len(found))
	}
	l, found = read(t, `{"kind":"AdmissionReview","request":{"name":"web"}}`)
	if len(found) != 0 || !l.Undecided {
		t.Errorf("%d found, %+v", len(found), l)
	}
	l, found = read(t, `{"kind":"AdmissionReview","request":{"name":"web"},"response":{"allowed":true}}`)
	if len(found) != 0 || l.Undecided {
		t.Errorf("%d found, %+v", len(found), l)
	}
}

// TestLog_TextsOfOthersAreNoRefusal: the text of another webhook, of a policy, and of a field with a hostile key may look like a message.
func TestLog_TextsOfOthersAreNoRefusal(t *testing.T) {
	for _, before := range []string{
		`admission webhook \"other.example.com\" denied the request: `, `admission webhook \"other.example.com\" denied the request: no\n`,
		`admission webhook \"other.example.com\" denied the request: no: `, `Internal error occurred: failed calling webhook \"other.example.com\": `,
		`configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `, `Pod \"x\" is invalid: spec.limits[a: `,
	} {
		l, found := read(t, fmt.Sprintf(event, 403, before+message))
		if len(found) != 0 || l.Others != 1 {
			t.Errorf("%s: %+v", before, found)
		}
	}
}

// TestLog_ImpersonationIsOfAnotherResource: the event is of the request that would follow, and the message is of the permission to impersonate.
func TestLog_ImpersonationIsOfAnotherResource(t *testing.T) {
	_, found := read(t, `{"kind":"Event","stage":"ResponseComplete","verb":"patch","user":{"username":"eve"},"objectRef":{"resource":"deployments","namespace":"shop","name":"web","apiGroup":"apps"},"responseStatus":{"code":403,"message":"groups \"ops\" is forbidden: User \"eve\" cannot impersonate resource \"groups\" in API group \"\" at the cluster scope"}}`)
	if len(found) != 1 || found[0].Resource != "groups" || found[0].Name != "ops" || found[0].Namespace != "" || *found[0].Namespaced {
		t.Errorf("%+v", found)
	}
}
