// Package plugin has the commands of the kubectl plugin kubectl-fieldperm. "kubectl fieldperm review" makes one decision on one write
// request, on a workstation: with grants from files, or by asking a cluster. "conditions" lists the conditions under which a user may write, and
// "tighten" proposes granular verbs in place of update and patch.
//
// Read NewReviewCommand first (the contract with users), then options.run (from flags to a report), then review.Report (the output).
// admission.Reviewer makes the decision, as in the webhook. sources.Once loads the schema of a cluster, with the same loader as the
// webhook. policies.Once and authz.Once do so for policies and for the authorizers of a file, and authz.ConditionalAfter puts them in the order of
// the webhook. This package only combines a request, a schema and authorizers.
package plugin
