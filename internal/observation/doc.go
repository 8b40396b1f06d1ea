// Package observation records which granular verbs the updates of users need, for PermissionObservations. It refuses nothing.
//
// Start at Recorder, which the webhook asks about each update, then read Keeper, which maintains the webhook configuration and the status
// of the objects, and merge, which adds the records of a replica to a status. Of fieldperm the package imports admission, api,
// generators/webhooks, refresh, schema, shorten, sources and uncovered.
package observation
