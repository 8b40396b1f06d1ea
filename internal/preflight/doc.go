// Package preflight is the command fieldperm-webhook check-config. It reads configuration and permission schemas like serve, but
// does not serve. It reports a summary, or all faults.
//
// Start at NewCommand. configfile and sources read the files. Only Probes use the network; the server's packages provide them, and
// this package does not import those.
package preflight
