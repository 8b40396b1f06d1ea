// Package endpoint records which API endpoint writes which stored object, and which of its fields.
//
// The data for built-in resources was observed on a real kube-apiserver, request by request, and is generated: observed.yaml.
// test/endpoints records it, and compares it with a new run. Custom resources share one rule, which was observed on one of them. Start
// reading at [Endpoint], then [Lookup], [Class] and [Writers].
//
// The fields that the API server writes by itself because of another field are recorded by test/fields: written.yaml. The decisions in
// charged.yaml are made by hand. Start reading at [Write].
//
// The package is immutable and imports nothing of fieldperm.
package endpoint
