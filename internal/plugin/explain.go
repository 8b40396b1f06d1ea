package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
)

// explanation is one call of the explain command.
type explanation struct {
	options
	apiVersion     string
	recursive, all bool
}

// traced is a permission schema with the sources of its verbs.
type traced struct {
	*sources.Snapshot
	// compiled is the schema of the snapshot, compiled with its sources.
	compiled *schema.Schema
	missing  []sources.Missing
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
	if _, err := o.streams.Out.Write(out); err != nil {
		// A reader such as head has what it wants.
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		return fmt.Errorf("answer: %w: give an output that can be written to", err)
	}
	for _, m := range known.missing {
		o.warn("the answer lacks %s: %v", m.What, m.Err)
	}
	if len(known.missing) > 0 {
		return ErrUnread
	}
	return nil
}

func (o *explanation) validate(args []string) error {
	switch o.output {
	case outputText, outputJSON, outputYAML, outputHTML:
	default:
		return fmt.Errorf("--output %q is not known: use %s, %s, %s or %s", o.output, outputText, outputJSON, outputYAML, outputHTML)
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

// known reads the permission schema, as far as it may be read.
func (o *explanation) known(ctx context.Context) (*traced, error) {
	out := &traced{}
	if o.offline() {
		documents, compiled, unmatched, err := sources.Files(o.files())
		if err != nil {
			return nil, err
		}
		for _, err := range unmatched {
			o.warn("%v", err)
		}
		out.Snapshot = &sources.Snapshot{Schema: compiled, Documents: documents}
	} else {
		config, err := o.config()
		if err != nil {
			return nil, err
		}
		if err := reachable(ctx, config, o.withoutCluster()); err != nil {
			return nil, err
		}
		if out.Snapshot, out.missing, err = sources.Readable(ctx, config); err != nil {
			return nil, err
		}
		for _, warning := range out.Warnings {
			o.warn("%v", warning)
		}
	}
	documents := out.Documents
	documents.Traced = true
	// The faults are known: the snapshot was compiled from the same documents.
	out.compiled, _ = schema.Compile(documents)
	return out, nil
}

// withMissing returns the error for a question without an answer, with the sources that might have one.
func (o *explanation) withMissing(known *traced, err error) error {
	errs := []error{err}
	for _, m := range known.missing {
		errs = append(errs, fmt.Errorf("%s could not be read: %w", m.What, m.Err))
	}
	return errors.Join(errs...)
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
	switch o.output {
	case outputHTML:
		return page.Render("Verbs of "+k.Kind, known.notes(), &fieldtree.Forest{Kinds: []*fieldtree.Kind{k}})
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
	return page.Render("Verbs of all kinds", append(known.notes(), failed...), fieldtree.New(known.compiled))
}

// notes returns sentences about what an answer lacks.
func (t *traced) notes() []string {
	var out []string
	for _, m := range t.missing {
		out = append(out, fmt.Sprintf("This page lacks %s: %v.", m.What, m.Err))
	}
	return out
}
