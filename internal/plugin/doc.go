// Package plugin has the commands of the kubectl plugin kubectl-fieldperm; Commands lists them. Each is a file COMMAND_command.go with its contract,
// and files COMMAND_*.go from flags to output. What answers a question is a package of its own that knows no cluster: fieldtree (explain), anyvalue and
// livefield (can-i), access (who-can), needs and applied (diff), audit, diagnosis (status), refusal (why), tighten. inquirer.go reads what several
// commands need, caller.go is the user that an answer is about, and output.go writes tables, JSON, YAML and pages.
//
// "kubectl fieldperm review" makes one decision on one write request, on a workstation: with grants from files, or by asking a cluster.
// Read NewReviewCommand first (the contract with users), then options.run (from flags to a report), then review.Report (the output).
// admission.Reviewer makes the decision, as in the webhook. sources.Once loads the schema of a cluster, with the same loader as the
// webhook. policies.Once and authz.Once do so for policies and for the authorizers of a file, and authz.ConditionalAfter puts them in the order of
// the webhook. This package only combines a request, a schema and authorizers.
package plugin
