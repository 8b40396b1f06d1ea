package audit

import "github.com/fieldperm/fieldperm/internal/finding"

// Tool returns the audit as the author of a log.
func Tool() finding.Tool {
	return finding.Tool{Name: "kubectl-fieldperm audit", Page: "audit.md", Fingerprint: "fieldpermAudit/v1", Rules: Rules()}
}
