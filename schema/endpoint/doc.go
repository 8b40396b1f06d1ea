// Package endpoint knows which endpoint of the API writes which stored object, and which of its fields.
//
// What it knows of built-in resources was observed on a real kube-apiserver, request by request, and is generated:
// observed.yaml. test/endpoints records it, and holds it against a new run. For custom resources there is a rule,
// observed on one. Start reading at [Endpoint], then [Lookup], [Class] and [Writers].
//
// What the API server writes by itself because of another field is recorded too, by test/fields: written.yaml. The
// decisions in charged.yaml are made by hand. Start reading at [Write].
//
// The package is immutable and imports nothing of fieldperm.
package endpoint
