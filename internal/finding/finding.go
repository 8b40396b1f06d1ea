package finding

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
	// Error: what was written does not do what it says, or is refused.
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

// Rule is a rule of a command. Its ID does not change.
type Rule struct {
	ID string
	// Level is that of most findings. If less is known, a finding has a lower one.
	Level Level
	// Meaning says in one sentence what a finding means, Why why it matters, and Cure what to do. All are sentences of Markdown.
	Meaning, Why, Cure string
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
	// File, Line and Column are where the place is, if the object comes from a file. Line and Column count from 1, Column in characters. They
	// are 0 if they are not known.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`

	// About tells findings of one rule in one object apart, and stays the same if the parts of the object are reordered.
	About string `json:"-"`
}

// Compare orders findings by kind, namespace and name, then by path and rule.
func (f *Finding) Compare(other *Finding) int {
	return cmp.Or(
		cmp.Compare(f.Object.Kind, other.Object.Kind), cmp.Compare(f.Object.Namespace, other.Object.Namespace), cmp.Compare(f.Object.Name, other.Object.Name),
		comparePaths(f.Path, other.Path), cmp.Compare(f.Rule, other.Rule), cmp.Compare(f.About, other.About), cmp.Compare(f.Message, other.Message),
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
