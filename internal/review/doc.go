// Package review is the command "kubectl fieldperm review": one decision on one write request, asked on a
// laptop with the grants in files, or of a cluster.
//
// Read NewCommand first (the contract with users), then options.run (the way from flags to a report),
// then report.Report (the output). The decision is admission.Reviewer's, the same that the webhook makes,
// and the schema of a cluster is sources.Once's, of the same loader; here is only what brings a request, a schema and an
// authorizer together.
package review
