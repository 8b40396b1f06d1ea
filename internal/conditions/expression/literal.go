package expression

import (
	"strings"
	"unicode/utf8"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxLiteral is the largest known value that a residual has as a literal, in bytes of its strings. A residual refers to a larger one by its name,
// such as request.userInfo.groups, because admission has it too.
const maxLiteral = 512

// printable returns a literal with the value, if its text has exactly this value in CEL.
func printable(id int64, value ref.Val) (celast.Expr, bool) {
	f := celast.NewExprFactory()
	switch v := value.(type) {
	case types.Bool, types.Null:
		return f.NewLiteral(id, value), true
	case types.String:
		// The text of another string has escapes of bytes, which are code points in CEL.
		return f.NewLiteral(id, value), utf8.ValidString(string(v))
	case types.Int:
		// A sign before a number may be read as an operator.
		return f.NewLiteral(id, value), v >= 0
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		elements := make([]celast.Expr, n)
		for i := range n {
			element, ok := printable(id, v.Get(i))
			if !ok {
				return nil, false
			}
			elements[i] = element
		}
		return f.NewList(id, elements, nil), true
	default:
		return nil, false
	}
}

// size returns the bytes that the text of a value takes at least.
func size(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		total := 0
		for i := types.Int(0); i < n && total <= maxLiteral; i++ {
			total += 4 + size(v.Get(i))
		}
		return total
	default:
		return 8
	}
}

// shortened returns a message for the text of a residual.
func shortened(message string) string {
	// A message that is not empty is no key of the map; see failed.
	message = "error: " + strings.ToValidUTF8(message, "\ufffd")
	for i := range message {
		if i > 160 {
			return message[:i] + "…"
		}
	}
	return message
}
