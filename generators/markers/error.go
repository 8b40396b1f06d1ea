package markers

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// Error is a mistake at a place of a Go file.
type Error struct {
	Position token.Position
	// Message starts with the subject and ends with the cure.
	Message string
	// Fix is what the wrong text should be, if there is a single correction of a misspelt marker; "" otherwise.
	Fix string
}

// Error renders "file:line:column: message".
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Position, e.Message) }

// mistakes collects errors.
type mistakes []*Error

func (m *mistakes) at(position token.Position, format string, args ...any) {
	*m = append(*m, &Error{Position: position, Message: fmt.Sprintf(format, args...)})
}

// errors returns the errors in the order of their positions, each once.
func (m mistakes) errors() []error {
	slices.SortStableFunc(m, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(a.Position.Filename, b.Position.Filename), cmp.Compare(a.Position.Offset, b.Position.Offset), cmp.Compare(a.Message, b.Message),
		)
	})
	var out []error
	for i, e := range m {
		if i == 0 || e.Error() != m[i-1].Error() {
			out = append(out, e)
		}
	}
	return out
}

// packageErrors returns what the loader and controller-gen have found in packages and in what they import. Like controller-gen it leaves
// out errors of type checking, most of which come from imports that are deliberately not loaded.
func packageErrors(roots []*loader.Package) []error {
	var out []error
	seen := map[string]bool{}
	raw := make([]*packages.Package, len(roots))
	for i, root := range roots {
		raw[i] = root.Package
	}
	packages.Visit(raw, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			if err.Kind != packages.TypeError && !seen[err.Error()] {
				seen[err.Error()] = true
				if strings.Contains(err.Msg, "*ast.Index") {
					err.Msg += ": a generic type has no schema: declare a type without parameters"
				}
				out = append(out, err)
			}
		}
	})
	return out
}
