// Package applied computes the object that an API server would store for an apply, without one: by apimachinery's field managers, as an API
// server does. It is for requests that the API server refuses, so that it returns no result. Defaults, mutating webhooks and validation of the
// API server are not in the result.
//
// Start at Merger. The package reads no cluster and no flags.
package applied
