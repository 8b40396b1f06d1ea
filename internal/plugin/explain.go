package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
)

// explanation is one call of the explain command.
type explanation struct {
	inquirer
	recursive, all bool
}

func (o *explanation) run(ctx context.Context, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	known, err := o.known(ctx)
	if err != nil {
		return err
	}
	var out []byte
	if o.all {
		out, err = o.pageOfAll(known)
	} else {
		out, err = o.explain(known, args[0])
	}
	if err != nil {
		return o.withMissing(known, err)
	}
	if err := o.write(out); err != nil {
		return err
	}
	return o.incomplete(known)
}

func (o *explanation) validate(args []string) error {
	if err := o.outputIs(outputText, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	switch {
	case o.all && len(args) > 0:
		return fmt.Errorf("--all is every kind, and %q is one: drop one of the two", args[0])
	case o.all && o.apiVersion != "":
		return errors.New("--all is every kind, and --api-version is about one: drop one of the two")
	case o.all && o.output != outputHTML:
		return fmt.Errorf("--all makes a page: add -o %s, or name a kind", outputHTML)
	case !o.all && len(args) == 0:
		return fmt.Errorf("KIND is missing: name a kind, such as deployments, or give --all with -o %s", outputHTML)
	}
	// Files are an answer of their own, without any cluster.
	o.fromFiles = o.fromFiles || len(o.files()) > 0
	return nil
}

// explain returns the answer about one kind.
func (o *explanation) explain(known *traced, text string) ([]byte, error) {
	asked, err := o.ask(known, text)
	if err != nil {
		return nil, err
	}
	k, err := asked.tree(known)
	if err != nil {
		return nil, err
	}
	p, err := k.Find(asked.path)
	if err != nil {
		return nil, err
	}
	o.warnUnserved(asked)
	switch o.output {
	case outputHTML:
		return page.Render("Verbs of "+k.Kind, page.Notes{Lacks: known.notes()}, &fieldtree.Forest{Kinds: []*fieldtree.Kind{k}})
	case outputJSON, outputYAML:
		return encoded(newAnswer(p, o.recursive, known.missing), o.output)
	}
	return newText(o.streams.Out, p).explain(p, o.recursive), nil
}

// pageOfAll returns the page of every kind.
func (o *explanation) pageOfAll(known *traced) ([]byte, error) {
	var failed []string
	for gvk, err := range known.compiled.Failed() {
		failed = append(failed, fmt.Sprintf("The page lacks %s: %v.", gvk, err))
	}
	slices.Sort(failed)
	for _, why := range failed {
		o.warn("%s", why)
	}
	return page.Render("Verbs of all kinds", page.Notes{Lacks: append(known.notes(), failed...)}, fieldtree.New(known.compiled))
}
