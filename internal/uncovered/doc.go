// Package uncovered maintains the ValidatingWebhookConfiguration for the resources with barriers. Its rules follow the permission
// schemas (W2). The package reports whether the rules that a barrier needs are in the API server.
//
// Start at Keeper, then read plan, which explains why several replicas may maintain the same object, and observation. Of fieldperm
// the package imports generators, schema, api and refresh.
package uncovered
