// Package status tells administrators, in the status of PermissionSchemas and UncoveredPermissionSets,
// whether each compiled and whether its barriers are enforced.
//
// Start at Writer. It reads what internal/sources knows, writes by server-side apply and only what
// differs, and bears on no decision: whatever goes wrong here is logged and tried again.
package status
