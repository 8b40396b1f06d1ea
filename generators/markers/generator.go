package markers

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// Generator is controller-gen's generator of CustomResourceDefinitions, which also writes the permission keys. It runs beside
// controller-gen's other generators and shares the loaded packages with them.
type Generator struct {
	crd.Generator
	Form Form
	// Registry has the well-known verbs. A verb in a reserved domain is an error, and a verb that is not well known, or is in the domain of
	// another group, a warning. nil checks no names.
	Registry *convention.Registry
	// Earlier returns the content of a file that an earlier run has written to the output, nil for none. It may be nil. A file of
	// PermissionSchemas that are not written any more is an error.
	Earlier func(name string) ([]byte, error)
	// Warnings takes a line for each warning. It may be nil.
	Warnings io.Writer
}

var (
	_ genall.Generator         = Generator{}
	_ genall.NeedsTypeChecking = Generator{}
)

// RegisterMarkers implements genall.Generator. The permission markers are not registered, because their grammar is not that of
// controller-gen's markers.
func (g Generator) RegisterMarkers(into *markers.Registry) error {
	return g.Generator.RegisterMarkers(into)
}

// CheckFilter implements genall.NeedsTypeChecking.
func (g Generator) CheckFilter() loader.NodeFilter { return g.Generator.CheckFilter() }

// Generate implements genall.Generator. It writes all files or none. The error joins all errors.
func (g Generator) Generate(ctx *genall.GenerationContext) error {
	definitions, errs := CRDs(ctx, g)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if errs := g.earlier(definitions); len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, d := range definitions {
		// A definition without its permissions has no barrier: they are written first.
		if d.Permissions != nil {
			if err := write(ctx, *d.Permissions); err != nil {
				return err
			}
		}
		if err := write(ctx, d.CRD); err != nil {
			return err
		}
		for _, warning := range d.Warnings {
			g.warn("%v", warning)
		}
		if d.Permissions != nil {
			g.warn("%s: %s", d.CRD.Name, d.Warning())
		}
	}
	return nil
}

// earlier checks the files of an earlier run.
func (g Generator) earlier(definitions []generators.CRDFiles) []error {
	var errs []error
	for _, d := range definitions {
		if g.Earlier == nil || d.PermissionsName == "" {
			continue
		}
		content, err := g.Earlier(d.PermissionsName)
		if err == nil {
			err = d.Earlier(content)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (g Generator) warn(format string, args ...any) {
	if g.Warnings != nil {
		fmt.Fprintln(g.Warnings, printable.Text(fmt.Sprintf("warning: "+format, args...)))
	}
}

func write(ctx *genall.GenerationContext, file generators.File) error {
	out, err := ctx.Open(nil, file.Name)
	if err != nil {
		return err
	}
	_, err = out.Write(file.Data)
	return errors.Join(err, out.Close())
}

// Run runs the generators of a runtime as controller-gen does, but in place of controller-gen's generator of CRDs g with its options, which
// runs first. It stops at the first generator with errors and returns them instead of writing them, those of loading included.
func Run(runtime *genall.Runtime, g Generator) []error {
	order := make(genall.Generators, 0, len(runtime.Generators))
	for _, generator := range runtime.Generators {
		if plain, ok := (*generator).(crd.Generator); ok {
			g.Generator = plain
			*generator = g
			order = append(order, generator)
		}
	}
	for _, generator := range runtime.Generators {
		if !slices.Contains(order, generator) {
			order = append(order, generator)
		}
	}
	for _, generator := range order {
		ctx := runtime.GenerationContext
		ctx.OutputRule = runtime.OutputRules.ForGenerator(generator)
		if _, checks := (*generator).(genall.NeedsTypeChecking); !checks {
			ctx.Checker = nil
		}
		if err := (*generator).Generate(&ctx); err != nil {
			return []error{err}
		}
		if errs := packageErrors(runtime.Roots); len(errs) > 0 {
			return errs
		}
	}
	return nil
}
