package markers

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// generate runs controller-gen's generator. It panics on some packages that compile, such as one with a field of a type that is imported with a
// dot. That is an error here, at each such import.
func generate(generator crd.Generator, ctx *genall.GenerationContext) (errs []error) {
	defer func() {
		if cause := recover(); cause != nil {
			errs = panicked(ctx.Roots, cause)
		}
	}()
	if err := generator.Generate(ctx); err != nil {
		return []error{err}
	}
	return nil
}

// panicked returns the errors for a panic of controller-gen.
func panicked(roots []*loader.Package, cause any) []error {
	var out mistakes
	for _, root := range roots {
		for _, file := range root.Syntax {
			for _, spec := range file.Imports {
				if path, err := strconv.Unquote(spec.Path.Value); err == nil && spec.Name != nil && spec.Name.Name == "." {
					out.at(root.Fset.Position(spec.Pos()), "import %q has a dot, and controller-gen cannot follow its types (%v): import the package by its name", path, cause)
				}
			}
		}
	}
	if len(out) == 0 {
		return []error{fmt.Errorf("controller-gen's generator: panics: %v: look for what is uncommon in the types, such as imports with a dot, and report this", cause)}
	}
	return out.errors()
}
