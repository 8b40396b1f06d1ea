package analyzer

import (
	"go/ast"
	"go/token"
	"strings"
)

// directive is the beginning of a comment that suppresses a rule. It is a directive of Go, without a space, so that it is no documentation.
const directive = "//fieldperm:lint "

// directives reads the suppressions of a file. One above a type or field is about that, with its comments; one behind something is about its line.
func (p *packageCheck) directives(file *ast.File) {
	above := map[*ast.CommentGroup]ast.Node{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Doc != nil {
				above[n.Doc] = n
			}
		case *ast.GenDecl:
			if n.Doc != nil {
				above[n.Doc] = n
			}
		case *ast.TypeSpec:
			if n.Doc != nil {
				above[n.Doc] = n
			}
		}
		return true
	})
	for _, group := range file.Comments {
		for _, c := range group.List {
			text, ok := strings.CutPrefix(c.Text, directive)
			if !ok {
				continue
			}
			from, to := c.Pos(), c.End()
			if node := above[group]; node != nil {
				from, to = group.Pos(), node.End()
			}
			p.suppress(c, text, from, to)
		}
	}
}

// suppress takes "disable=RULE reason" for the lines between two places.
func (p *packageCheck) suppress(c *ast.Comment, text string, from, to token.Pos) {
	const form = "write //fieldperm:lint disable=RULE and a reason"
	rest, isDisable := strings.CutPrefix(strings.TrimSpace(text), "disable=")
	rule, reason, _ := strings.Cut(rest, " ")
	switch {
	case !isDisable || rule == "":
		p.report(c.Pos(), c.End(), suppressionInvalid, "the suppression names no rule", form)
		return
	case strings.TrimSpace(reason) == "":
		p.report(c.Pos(), c.End(), suppressionInvalid, "the suppression has no reason", form)
		return
	}
	if err := mayDisable("the suppression", rule); err != nil {
		p.diagnose(c.Pos(), c.End(), suppressionInvalid, err.Error())
		return
	}
	begin, end := p.pass.Fset.Position(from), p.pass.Fset.Position(to)
	lines := p.suppressed[begin.Filename]
	if lines == nil {
		lines = map[int]map[string]bool{}
		p.suppressed[begin.Filename] = lines
	}
	for line := begin.Line; line <= end.Line; line++ {
		if lines[line] == nil {
			lines[line] = map[string]bool{}
		}
		lines[line][rule] = true
	}
}
