// Package checkconfig is fieldperm-webhook check-config: it reads configuration and permission schemas
// as serve does, serves nothing, and says what they amount to or everything that is wrong with them.
//
// Start at NewCommand. Reading is configfile's and sources', and the network is asked only by Probes,
// which the server's packages provide; this package does not import them.
package checkconfig
