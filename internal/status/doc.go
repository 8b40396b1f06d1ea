// Package status reports to administrators, in the status of PermissionSchemas and UncoveredPermissionSets, whether each compiled
// and whether its barriers are enforced.
//
// Start at Writer. It reads the state of internal/sources and writes by server-side apply, only if the status differs. It has no
// effect on decisions: failures are logged and tried again.
package status
