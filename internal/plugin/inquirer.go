package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// ErrUnread means that an answer was written and that a source could not be read, which a warning names.
var ErrUnread = errors.New("the answer lacks what could not be read")

// inquirer has the flags of the commands that answer questions about the fields of a kind.
type inquirer struct {
	options
	apiVersion string
}

// traced is a permission schema with the sources of its verbs.
type traced struct {
	*sources.Snapshot
	// compiled is the schema of the snapshot, compiled with its sources.
	compiled *schema.Schema
	missing  []sources.Missing
	// rules are how many of missing, the first ones, are rules of fieldperm.
	rules int
}

// known reads the permission schema, as far as it may be read.
func (o *inquirer) known(ctx context.Context) (*traced, error) {
	out := &traced{}
	if o.offline() {
		documents, compiled, unmatched, err := sources.TracedFiles(o.files())
		if err != nil {
			return nil, err
		}
		for _, err := range unmatched {
			o.warn("%v", err)
		}
		// A traced compile decides as any other does.
		out.Snapshot, out.compiled = &sources.Snapshot{Schema: compiled, Documents: documents}, compiled
		return out, nil
	}
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
	out.rules = len(out.missing)
	for _, warning := range out.Warnings {
		o.warn("%v", warning)
	}
	documents := out.Documents
	documents.Traced = true
	// The faults are known: the snapshot was compiled from the same documents.
	out.compiled, _ = compile.Compile(documents)
	return out, nil
}

// withMissing returns the error for a question without an answer, with the sources that might have one.
func (o *inquirer) withMissing(known *traced, err error) error {
	errs := []error{err}
	for _, m := range known.missing {
		errs = append(errs, fmt.Errorf("%s could not be read: %w", m.What, m.Err))
	}
	return errors.Join(errs...)
}

// incomplete warns of what the answer lacks. It returns ErrUnread if it lacks something.
func (o *inquirer) incomplete(known *traced) error {
	var unreadable []string
	for i, m := range known.missing {
		if i < known.rules && apierrors.IsForbidden(m.Err) {
			unreadable = append(unreadable, m.What)
			continue
		}
		o.warn("the answer lacks %s: %v", m.What, m.Err)
	}
	if len(unreadable) > 0 {
		o.warn("the answer lacks %s, which you may not read: an administrator binds the ClusterRole fieldperm-rules-viewer to you", strings.Join(unreadable, "; "))
	}
	if len(known.missing) > 0 {
		return ErrUnread
	}
	return nil
}

// target finds the kind and the name of an object in a text: KIND[/NAME]. The subresource is that of a flag.
func (o *inquirer) target(known *traced, text, subresource string) (of *inquiry, name string, err error) {
	kind, name, named := strings.Cut(text, "/")
	if named && name == "" {
		return nil, "", fmt.Errorf("%q names no object: write KIND/NAME, or KIND for all objects", text)
	}
	if of, err = o.ask(known, kind); err != nil {
		return nil, "", err
	}
	if of.path != "" {
		return nil, "", fmt.Errorf("%q has a path: write KIND/NAME, and give the path with --field", text)
	}
	of.subresource = subresource
	return of, name, nil
}

// miss adds what could not be read.
func (t *traced) miss(what string, err error) {
	t.missing = append(t.missing, sources.Missing{What: what, Err: err})
}

// notes returns sentences about what an answer lacks.
func (t *traced) notes() []string {
	var out []string
	for _, m := range t.missing {
		out = append(out, fmt.Sprintf("This page lacks %s: %v.", m.What, m.Err))
	}
	return out
}
