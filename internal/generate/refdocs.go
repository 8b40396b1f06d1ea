package generate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/crdrefdocs"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

const (
	formatMarkdown   = "markdown"
	formatHTML       = "html"
	formatCRDRefDocs = "crd-ref-docs"
	// filePage is the name of the page in HTML.
	filePage = "verbs.html"
	// docsAddress is the address of fieldperm's documentation.
	docsAddress = "https://github.com/fieldperm/fieldperm/blob/main/docs/"
	// coreGroup is how users call the group without a name.
	coreGroup = "core"
)

// reference is the flags of refdocs.
type reference struct {
	out, powers, format string
	only                []string
	files               sourceFiles
}

func newRefdocs() *cobra.Command {
	o := &reference{}
	command := &cobra.Command{
		Use:   "refdocs --out DIR [--only GROUPS] [--format FORMAT]",
		Short: "Write the reference of verbs and kinds",
		Long: `refdocs describes the built-in catalogue and what the files add to it. It writes into --out:

  verbs.md, kinds.md          with --format markdown: verbs with their fields, kinds with their permission trees
  verbs.html                  with --format html: a page that needs no network
  config.yaml and templates/  with --format crd-ref-docs: a column of verbs for elastic/crd-ref-docs 0.3

Ends with 1 for an error.`,
		Example: `  # The reference of an author's own kinds.
  fieldperm-gen refdocs --out ./docs/reference --only example.com --crd ./config/crd/bases

  # A page of the kinds of an aggregated API server.
  kubectl get --raw /openapi/v3/apis/wardle.example.com/v1 >wardle.json
  fieldperm-gen refdocs --out ./docs --format html --only wardle.example.com --openapi wardle.json

  # The reference of a cluster with CRDs and permission schemas of its own.
  fieldperm-gen refdocs --out ./reference --permission-schemas ./crds,./permissions`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command) },
	}
	flags := command.Flags()
	flags.StringVar(&o.out, "out", "", "`DIR` to write into; made if missing")
	flags.StringVar(&o.format, "format", formatMarkdown, "`FORMAT`: markdown, html or crd-ref-docs")
	flags.StringSliceVar(&o.only, "only", nil, "`GROUPS` of the kinds, core for the group without a name; all if not given")
	flags.StringVar(&o.powers, "powers", "", "`FILE` of a page whose table of powers is written anew")
	o.files.flags(flags)
	return command
}

func (o *reference) run(command *cobra.Command) error {
	switch {
	case o.out == "":
		return errors.New("--out is missing: name the directory to write into")
	case !slices.Contains([]string{formatMarkdown, formatHTML, formatCRDRefDocs}, o.format):
		return fmt.Errorf("--format %q: does not exist: use %s, %s or %s", o.format, formatMarkdown, formatHTML, formatCRDRefDocs)
	case o.powers != "" && (o.format != formatMarkdown || len(o.only) > 0):
		return errors.New("--powers is about all kinds in Markdown: leave out --format and --only")
	}
	documents, compiled, err := o.files.compile(command.ErrOrStderr())
	if err != nil {
		return err
	}
	groups, err := o.groups(compiled)
	if err != nil {
		return err
	}
	if o.powers != "" {
		if err := writePowers(o.powers, compiled, documents); err != nil {
			return err
		}
	}
	var files []generators.File
	switch o.format {
	case formatHTML:
		files, err = htmlPage(compiled, groups)
	case formatCRDRefDocs:
		files, err = crdrefdocs.Files(compiled, groups)
	default:
		options := generators.RefdocsOptions{Groups: groups, Docs: docsAddress}
		if o.powers != "" {
			options.Docs = ""
		}
		files = generators.Refdocs(compiled, documents, options)
	}
	if err != nil {
		return err
	}
	return write(o.out, files)
}

// groups returns the groups of --only, nil for all.
func (o *reference) groups(compiled *schema.Schema) ([]string, error) {
	var known, out []string
	for _, k := range compiled.Kinds() {
		known = append(known, k.Group)
	}
	for _, group := range o.only {
		if group == coreGroup {
			group = ""
		}
		if !slices.Contains(known, group) {
			slices.Sort(known)
			if near := spelling.Nearest(group, slices.Compact(known)); near != "" {
				return nil, fmt.Errorf("--only %q: no kind is of this group: use %q, or give its definitions with --crd or --openapi", group, near)
			}
			return nil, fmt.Errorf("--only %q: no kind is of this group: give its definitions with --crd or --openapi", group)
		}
		out = append(out, group)
	}
	return out, nil
}

// htmlPage returns the page of the kinds of some groups.
func htmlPage(compiled *schema.Schema, groups []string) ([]generators.File, error) {
	forest := fieldtree.New(compiled)
	title := "Verbs of all kinds"
	if groups != nil {
		title = "Verbs of " + strings.Join(groups, ", ")
		forest.Kinds = slices.DeleteFunc(forest.Kinds, func(k *fieldtree.Kind) bool { return !slices.Contains(groups, k.Group) })
	}
	text, err := page.Render(title, page.Notes{}, forest)
	return []generators.File{{Name: filePage, Data: text}}, err
}

// writePowers writes the table of powers to a page, if the page has a marker for it.
func writePowers(file string, compiled *schema.Schema, documents compile.Documents) error {
	page, err := os.ReadFile(file) //nolint:gosec // The user of the command chooses the path.
	if err != nil {
		return err
	}
	if page, err = generators.Powers(page, compiled, documents); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644) //nolint:gosec // All users may read documentation.
}
