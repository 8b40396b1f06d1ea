package openapi

import (
	"go/ast"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/generators/markers"
)

const (
	openAPITag = "k8s:openapi-gen"
	modelTag   = "k8s:openapi-model-package"
)

// hasDefinition reports whether openapi-gen makes a definition of an exported struct type.
func hasDefinition(t *markers.Type) bool {
	own := tagValues(openAPITag, typeComments(t)...)
	if slices.Contains(tagValues(openAPITag, packageComments(t)...), "true") {
		return !slices.Contains(own, "false")
	}
	return slices.Contains(own, "true")
}

// definitionNames returns the names that the definition of a type may have.
func definitionNames(t *markers.Type) []string {
	var out []string
	for _, model := range append(tagValues(modelTag, typeComments(t)...), tagValues(modelTag, packageComments(t)...)...) {
		out = append(out, model+"."+t.Name)
	}
	return append(out, t.Package.PkgPath+"."+t.Name)
}

func packageComments(t *markers.Type) []*ast.CommentGroup {
	var out []*ast.CommentGroup
	for _, file := range t.Package.Syntax {
		out = append(out, file.Doc)
	}
	return out
}

// typeComments returns the documentation of a type, which may be that of its declaration.
func typeComments(t *markers.Type) []*ast.CommentGroup {
	if t.Spec.Doc != nil {
		return []*ast.CommentGroup{t.Spec.Doc}
	}
	for _, file := range t.Package.Syntax {
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok && !types.Lparen.IsValid() && slices.Contains(types.Specs, ast.Spec(t.Spec)) {
				return []*ast.CommentGroup{types.Doc}
			}
		}
	}
	return nil
}

func tagValues(tag string, comments ...*ast.CommentGroup) []string {
	var out []string
	for _, group := range comments {
		if group == nil {
			continue
		}
		for _, comment := range group.List {
			if value, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")), "+"+tag+"="); ok {
				out = append(out, value)
			}
		}
	}
	return out
}
