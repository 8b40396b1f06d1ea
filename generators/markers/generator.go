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
)

// Generator is controller-gen's generator of CustomResourceDefinitions, which also writes the permission keys. It runs beside
// controller-gen's other generators and shares the loaded packages with them.
type Generator struct {
	crd.Generator
	Form Form
	// Warnings takes a line for each definition whose permissions are in a file of their own, and for each lossy version. It may be nil.
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
	definitions, errs := CRDs(ctx, g.Generator, g.Form)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, d := range definitions {
		if err := write(ctx, d.CRD); err != nil {
			return err
		}
		for _, lossy := range d.Lossy {
			if g.Warnings != nil {
				fmt.Fprintf(g.Warnings, "warning: %v\n", lossy)
			}
		}
		if d.Permissions == nil {
			continue
		}
		if err := write(ctx, *d.Permissions); err != nil {
			return err
		}
		if g.Warnings != nil {
			fmt.Fprintf(g.Warnings, "warning: %s: %s\n", d.CRD.Name, d.Warning())
		}
	}
	return nil
}

func write(ctx *genall.GenerationContext, file generators.File) error {
	out, err := ctx.Open(nil, file.Name)
	if err != nil {
		return err
	}
	_, err = out.Write(file.Data)
	return errors.Join(err, out.Close())
}

// Run runs the generators of a runtime as controller-gen does, but in place of controller-gen's generator of CRDs this one, which runs
// first. It stops at the first generator with errors and returns them instead of writing them, those of loading included.
func Run(runtime *genall.Runtime, form Form, warnings io.Writer) []error {
	order := make(genall.Generators, 0, len(runtime.Generators))
	for _, generator := range runtime.Generators {
		if plain, ok := (*generator).(crd.Generator); ok {
			*generator = Generator{Generator: plain, Form: form, Warnings: warnings}
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
