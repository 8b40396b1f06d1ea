// Package uncovered keeps the ValidatingWebhookConfiguration for the resources with barriers: its
// rules follow the permission schemas (W2). It tells whether the rules that a barrier needs are in the
// API server.
//
// Start at Keeper, then plan, which says why several replicas may keep the same object, and
// observation. Of fieldperm the package imports generators, schema, api and refresh.
package uncovered
