package audit

import "github.com/fieldperm/fieldperm/internal/finding"

// The words of findings are those of package finding.
type (
	// Level says how grave a finding is.
	Level = finding.Level
	// Ref names an object.
	Ref = finding.Ref
	// Finding is one fault of one object. Its JSON is a contract.
	Finding = finding.Finding
	// Rule is a rule of the audit.
	Rule = finding.Rule
	// Counts are the numbers of findings by level.
	Counts = finding.Counts
)

// These are the levels.
const (
	// Error: the grant or the barrier does not do what it says.
	Error = finding.Error
	// Warning: it does more or less than its author probably means, or it cannot be told for sure that it is an Error.
	Warning = finding.Warning
	// Note is to be known.
	Note = finding.Note
)

// These are the kinds of RBAC objects.
const (
	roleKind               = "Role"
	clusterRoleKind        = "ClusterRole"
	roleBindingKind        = "RoleBinding"
	clusterRoleBindingKind = "ClusterRoleBinding"
)

// Location is where an object is in a file. The zero Location is of an object of a cluster.
type Location struct {
	File string
	// Line returns the line of a path in the object, 0 if it is not known. It may be nil.
	Line func(path string) int
}

// at sets the file and the line of a finding.
func (l Location) at(f Finding) Finding {
	f.File = l.File
	if l.Line != nil {
		f.Line = l.Line(f.Path)
	}
	return f
}
