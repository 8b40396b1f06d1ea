package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// outputSARIF is the Static Analysis Results Interchange Format.
const outputSARIF = "sarif"

// auditing is one call of the audit command.
type auditing struct {
	inquirer
	failOn string
	many   int
	all    bool

	progress *progress
	found    []audit.Finding
	counts   audit.Counts
	failed   bool
	// interrupted means that the context ended while objects were read.
	interrupted bool
}

func (o *auditing) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	source, err := o.source()
	if err != nil {
		return err
	}
	known, err := o.known(ctx)
	if err != nil {
		return err
	}
	o.progress = o.newProgress("objects", 1)
	scan := &audit.Scan{
		Known: audit.NewKnown(known.compiled, &known.Documents), Incomplete: len(known.missing) > 0, Files: o.offline(),
		Namespace: *o.cluster.Namespace, Many: o.many, All: o.all, Report: o.report, Progress: o.visited,
	}
	missing, err := scan.Run(ctx, source)
	known.missing = append(known.missing, unread(missing)...)
	switch {
	case err != nil:
		o.interrupted = true
	case !o.offline():
		more, err := o.enforcement(ctx, scan)
		known.missing = append(known.missing, more...)
		o.interrupted = err != nil
	}
	o.progress.clear()
	return o.finish(scan, known)
}

// visited takes an object that was read. The second pass reads a kind again.
func (o *auditing) visited(pass int, kind string) {
	what := kind + "s"
	if pass > 1 {
		what += again
	}
	o.progress.step(what, 1)
}

// again marks the second reading of a kind.
const again = " again"

func unread(missing []audit.Missing) []sources.Missing {
	var out []sources.Missing
	for _, m := range missing {
		out = append(out, sources.Missing{What: m.What, Err: m.Err})
	}
	return out
}

func (o *auditing) validate() error {
	if err := o.outputIs(outputText, outputJSON, outputYAML, outputSARIF, outputHTML); err != nil {
		return err
	}
	switch {
	case !slices.Contains(finding.Levels(), audit.Level(o.failOn)):
		return fmt.Errorf("--fail-on %q is no level: use %s, %s or %s", o.failOn, audit.Error, audit.Warning, audit.Note)
	case o.many < 1:
		return fmt.Errorf("--many %d lets no subject hold a verb: use 1 or more", o.many)
	case len(o.files()) > 0 && len(o.grants) == 0:
		return errors.New("--grants is missing: --permissions and --crd stand in for a cluster, and so name the files to audit as well")
	}
	return nil
}

// report takes a finding. As text it is written at once.
func (o *auditing) report(f audit.Finding) {
	o.counts.Add(f.Level)
	o.failed = o.failed || f.Level.AtLeast(audit.Level(o.failOn))
	if o.output != outputText {
		o.found = append(o.found, f)
		return
	}
	o.progress.clear()
	_ = o.write([]byte(lineOf(&f)))
}

// finish writes what is left, and says what the answer lacks.
func (o *auditing) finish(scan *audit.Scan, known *traced) error {
	finding.Sort(o.found)
	if err := o.print(scan, known); err != nil {
		return err
	}
	err := o.incomplete(known)
	if o.interrupted {
		o.warn("%s", interruption)
		err = ErrUnread
	}
	if err == nil && o.failed {
		err = ErrFindings
	}
	return err
}

// interruption is what an interrupted audit lacks.
const interruption = "the audit was interrupted, and the answer lacks objects that were not read, and all findings about what subjects hold in total: run it again"
