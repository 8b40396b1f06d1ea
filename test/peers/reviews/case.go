package reviews

import (
	"encoding/json"
	"fmt"
	"sort"
	"testing"
)

// Case is one AdmissionReview of an UPDATE, as a kube-apiserver sends it, with its only correct answer.
type Case struct {
	// Name is the name of the case: the size of the body, or what changes, and the answer.
	Name    string
	Body    []byte
	Allowed bool
}

// These are the users of the reviews, and what each may change.
const (
	// Scaler may change .spec.replicas of Deployments and nothing else.
	Scaler = "scaler"
	// Deployer may change .spec of Deployments and nothing else.
	Deployer = "deployer"
)

// Namespace is the namespace of all objects.
const Namespace = "shop"

// sizes are those of the bodies in KiB. A body holds two objects.
var sizes = []int{2, 16, 256}

// review is the body for an update of a Deployment by a user: the members in the order of kube-apiserver's types, the new object before
// the old one, no white space.
func review(user string, object, old []byte) []byte {
	const kind, resource = `{"group":"apps","version":"v1","kind":"Deployment"}`, `{"group":"apps","version":"v1","resource":"deployments"}`
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0c9d2f1a-7d5e-4f35-8f0b-3a5f5f0f7c11",`+
		`"kind":%[1]s,"resource":%[2]s,"requestKind":%[1]s,"requestResource":%[2]s,"name":"store","namespace":%[3]q,"operation":"UPDATE",`+
		`"userInfo":{"username":%[4]q,"groups":["system:authenticated"]},"object":%[5]s,"oldObject":%[6]s,"dryRun":false,`+
		`"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`, kind, resource, Namespace, user, object, old)
}

// fill returns the body that make returns for the largest part count with which it has at most size bytes, and for a text of as many bytes
// as are then left for each of the two objects.
func fill(tb testing.TB, size int, make func(parts, text int) []byte) []byte {
	tb.Helper()
	// Each part takes at least 40 bytes, so there are fewer than size of them.
	parts := sort.Search(size/40, func(n int) bool { return len(make(n+1, 0)) > size })
	left := size - len(make(parts, 0))
	if left < 0 {
		tb.Fatalf("a body of %d bytes has no room for two objects: it lacks %d", size, -left)
	}
	// The text has a name, which takes bytes too.
	body := make(parts, max(0, left/2-40))
	if !json.Valid(body) || len(body) > size {
		tb.Fatalf("%d bytes, at most %d are wanted, or no JSON: %.200s", len(body), size, body)
	}
	return body
}
