package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// whoCan is one call of the who-can command.
type whoCan struct {
	inquirer
	field         string
	allNamespaces bool
}

func (o *whoCan) run(ctx context.Context, verb, text string) error {
	if err := o.validate(verb); err != nil {
		return err
	}
	known, err := o.known(ctx)
	if err != nil {
		return err
	}
	asked, name, err := o.target(known, text, o.subresource)
	if err != nil {
		return o.withMissing(known, err)
	}
	kind, err := asked.tree(known)
	if err != nil {
		return o.withMissing(known, err)
	}
	place, err := kind.Find(o.field)
	if err != nil {
		return o.withMissing(known, err)
	}
	w := &access.Write{Verb: verb, Group: asked.kind.Group, Version: asked.kind.Version, Resource: asked.resource, Subresource: asked.subresource, Name: name}
	notes, namespaced, err := o.place(ctx, known, w)
	if err != nil {
		return err
	}
	cluster, err := o.grantsAbout(ctx, known, w, namespaced)
	if err != nil {
		return err
	}
	notes = append(notes, access.Notes(w, place)...)
	if err := o.answer(known, cluster, w, place, notes); err != nil {
		return err
	}
	return o.incomplete(known)
}

func (o *whoCan) validate(verb string) error {
	if err := o.outputIs(outputTable, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	switch {
	case !slices.Contains(genericVerbs, verb):
		return fmt.Errorf("verb %q is no write of fields: use create, update or patch", verb)
	case !o.offline() && len(o.files()) > 0:
		return errors.New("--permissions and --crd stand in for a cluster: give --grants too, or drop them")
	case o.allNamespaces && o.cluster.Namespace != nil && *o.cluster.Namespace != "":
		return fmt.Errorf("--all-namespaces is every namespace, and --namespace %q is one: drop one of the two", *o.cluster.Namespace)
	}
	return nil
}

// grantsAbout reads the RBAC objects and policies that are about a write. What cannot be read is missing.
func (o *whoCan) grantsAbout(ctx context.Context, known *traced, w *access.Write, namespaced bool) (*access.Cluster, error) {
	set, err := o.policies(ctx)
	if err != nil {
		if o.offline() {
			return nil, err
		}
		known.missing = append(known.missing, sources.Missing{What: "what ConditionalPolicies allow and deny", Err: err})
	}
	var policies access.Policies
	if !set.Empty() {
		// An interrupt ends the reading. What was read is decided on.
		policies = &policiesOf{context.WithoutCancel(ctx), set}
	}
	selection := w.Selection(namespaced)
	var grants *rbac.Grants
	if o.offline() {
		all, err := rbac.Read(o.grants)
		if err != nil {
			return nil, err
		}
		// As in a cluster, the rules of an aggregated role are those of the roles that it selects.
		if err := all.Aggregate(); err != nil {
			return nil, err
		}
		grants = all.Select(selection)
	} else {
		var errs []error
		if grants, errs = o.listAbout(ctx, selection); len(errs) > 0 {
			for _, err := range errs {
				known.missing = append(known.missing, sources.Missing{What: "subjects by some bindings", Err: err})
			}
		}
	}
	return access.New(*grants, policies)
}

// answer writes the answer.
func (o *whoCan) answer(known *traced, c *access.Cluster, w *access.Write, p *fieldtree.Place, notes []string) error {
	rows := c.WhoCan(w, p)
	out := newWhoCanAnswer(w, o.field, p, rows, notes, known.missing)
	var more []page.Table
	if o.field == "" {
		of, truncated := c.Of(w, p.Kind, objectText(w))
		if truncated {
			out.Notes = append([]string{"There are more fields than were looked at: ask about one with --field."}, out.Notes...)
		}
		if o.output == outputHTML {
			return o.page(known, w, p, of, out.Notes)
		}
		out.Verbs, out.Fields = holdersOf(c, w, p.Kind), fieldEntriesOf(of)
		more = []page.Table{verbsTable(out.Verbs), fieldsTable(p.Kind, out.Fields)}
	}
	if o.output == outputJSON || o.output == outputYAML {
		text, err := encoded(out, o.output)
		if err != nil {
			return err
		}
		return o.write(text)
	}
	return o.print(known, w, p, rows, out.Notes, more...)
}
