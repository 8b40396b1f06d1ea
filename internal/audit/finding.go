package audit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Level says how grave a finding is.
type Level string

// These are the levels.
const (
	// Error: the grant or the barrier does not do what it says.
	Error Level = "error"
	// Warning: it does more or less than its author probably means, or it cannot be told for sure that it is an Error.
	Warning Level = "warning"
	// Note is to be known.
	Note Level = "note"
)

// Levels returns the levels, the gravest first.
func Levels() []Level { return []Level{Error, Warning, Note} }

// AtLeast reports whether a level is as grave as another, or graver. An unknown level is as grave as an Error.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(Levels(), l) <= slices.Index(Levels(), other)
}

// Ref names an object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the kind and the name: Role team/deployer.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// These are the kinds of RBAC objects.
const (
	roleKind               = "Role"
	clusterRoleKind        = "ClusterRole"
	roleBindingKind        = "RoleBinding"
	clusterRoleBindingKind = "ClusterRoleBinding"
)

// Finding is one fault of one object. Its JSON is a contract.
type Finding struct {
	Rule   string `json:"rule"`
	Level  Level  `json:"level"`
	Object Ref    `json:"object"`
	// Path is the place in the object, such as rules[2].verbs[0]; "" for the object as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong, and Cure what to do.
	Message string `json:"message"`
	Cure    string `json:"cure"`
	// File and Line are where the object is, if it comes from a file. Line is 0 if it is not known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`

	// about tells findings of one rule in one object apart, and stays the same if rules are reordered.
	about string
}

// Compare orders findings by kind, namespace and name, then by path and rule.
func (f *Finding) Compare(other *Finding) int {
	return cmp.Or(
		cmp.Compare(f.Object.Kind, other.Object.Kind), cmp.Compare(f.Object.Namespace, other.Object.Namespace), cmp.Compare(f.Object.Name, other.Object.Name),
		comparePaths(f.Path, other.Path), cmp.Compare(f.Rule, other.Rule), cmp.Compare(f.about, other.about), cmp.Compare(f.Message, other.Message),
	)
}

// comparePaths orders paths by their steps, indexes as numbers: rules[2] comes before rules[10].
func comparePaths(a, b string) int {
	split := func(path string) []string {
		return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	}
	return slices.CompareFunc(split(a), split(b), func(x, y string) int {
		i, errOfX := strconv.Atoi(x)
		j, errOfY := strconv.Atoi(y)
		if errOfX == nil && errOfY == nil {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(x, y)
	})
}

// Sort orders findings.
func Sort(findings []Finding) {
	slices.SortFunc(findings, func(a, b Finding) int { return a.Compare(&b) })
}

// Counts are the numbers of findings by level.
type Counts struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
}

// Add counts a finding.
func (c *Counts) Add(l Level) {
	switch l {
	case Error:
		c.Errors++
	case Warning:
		c.Warnings++
	case Note:
		c.Notes++
	}
}

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
