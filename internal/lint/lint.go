package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// Options are the choices of a run.
type Options struct {
	// Registry has the well-known verbs; nil means those of the built-in catalogue.
	Registry *convention.Registry
	// Roles are files with Roles and ClusterRoles. Without any, and without any among the linted files, no rule is about holders.
	Roles []File
	// Enable are rules that are off by default, and Disable rules that are on.
	Enable, Disable []string
}

// Finding is a finding, and its only fix if there is one.
type Finding struct {
	finding.Finding
	// Fix says what Fix would change, "" if there is not one fix.
	Fix   string `json:"fix,omitempty"`
	edits []edit
	// within are the lines to which a suppression may belong.
	within []int
}

// String returns the finding as a line, in the form of compilers: the place first, the rule last.
func (f *Finding) String() string {
	path := ""
	if f.Path != "" {
		path = f.Path + ": "
	}
	return printable.Text(fmt.Sprintf("%s:%d:%d: %s: %s: %s%s: %s [%s]", f.File, f.Line, f.Column, f.Level, f.Object, path, f.Message, f.Cure, f.Rule))
}

// Result is what a run found, in the order of the files.
type Result struct {
	Findings []Finding
	// Objects counts the objects that were linted.
	Objects int
	// Suppressed counts the findings that comments and annotations leave out.
	Suppressed int
}

// Run lints files. The errors are about files that cannot be read as documents, and about options. Then nothing was linted.
func Run(files []File, options Options) (*Result, []error) {
	l := &linter{on: map[string]bool{}}
	if errs := l.choose(options); len(errs) > 0 {
		return nil, errs
	}
	if errs := l.read(files, options.Roles); len(errs) > 0 {
		return nil, errs
	}
	if errs := l.compile(); len(errs) > 0 {
		return nil, errs
	}
	l.names()
	for _, o := range l.objects {
		l.duplicates(o)
		l.parameters(o)
		l.reach(o)
		if d := o.definition; d != nil {
			l.versionsOf(o, d)
			l.coverage(o, d)
			l.types(o, d)
		}
	}
	if l.grants != nil {
		l.barriers()
	}
	suppressed := l.suppress()
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(l.order[a.File], l.order[b.File]), byPlace(a, b))
	})
	return &Result{Findings: l.found, Objects: len(l.objects), Suppressed: suppressed}, nil
}

// byPlace orders the findings of one file.
func byPlace(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), a.Finding.Compare(&b.Finding))
}

// linter is one run.
type linter struct {
	checker convention.Checker
	on      map[string]bool
	objects []*object
	// order is the order of the files by name.
	order map[string]int
	// grants are the roles, nil if there are none.
	grants   *rbac.Grants
	compiled *schema.Schema
	// catalogue are the built-in permissions.
	catalogue []compile.PermissionDocument
	found     []Finding
}

// choose takes the rules that are on, and the registry.
func (l *linter) choose(options Options) []error {
	var errs []error
	known := map[string]bool{}
	for _, r := range Rules() {
		known[r.ID] = true
		l.on[r.ID] = !offByDefault[r.ID]
	}
	for _, id := range options.Enable {
		if !known[id] {
			errs = append(errs, unknownRule("--enable", id))
		}
		l.on[id] = true
	}
	for _, id := range options.Disable {
		switch {
		case !known[id]:
			errs = append(errs, unknownRule("--disable", id))
		case fixed[id]:
			errs = append(errs, fmt.Errorf("--disable %q: fieldperm refuses such a document, so the rule cannot be disabled: leave it out", id))
		}
		l.on[id] = false
	}
	registry := options.Registry
	if registry == nil {
		var err error
		if registry, err = convention.BuiltIn(); err != nil {
			errs = append(errs, err)
			return errs
		}
	}
	l.checker.Registry = *registry
	return errs
}

func (l *linter) read(files, roles []File) []error {
	var errs []error
	var grants rbac.Grants
	l.order = map[string]int{}
	add := func(f *File) {
		more, err := rbac.Decode(f.Name, f.Raw)
		if err != nil {
			errs = append(errs, err)
			return
		}
		grants.Append(more)
		l.grants = &grants
	}
	for i := range files {
		f := &files[i]
		l.order[f.Name] = i
		objects, hasRoles, faults := read(f)
		l.objects, errs = append(l.objects, objects...), append(errs, faults...)
		if hasRoles {
			add(f)
		}
	}
	for i := range roles {
		add(&roles[i])
	}
	if len(errs) == 0 && len(l.objects) == 0 {
		errs = append(errs, fmt.Errorf("no file has a document to lint: give %s", accepted))
	}
	return errs
}

// compile decodes and compiles the objects. Faults of the objects are findings.
func (l *linter) compile() []error {
	var err error
	if l.catalogue, err = load.Catalogue(false); err != nil {
		return []error{err}
	}
	documents := compile.Documents{Permissions: l.catalogue, Traced: true}
	var parts []compile.Documents
	var faults []error
	bySource := map[string]*object{}
	needsKinds := false
	for _, o := range l.objects {
		bySource[o.source] = o
		needsKinds = needsKinds || o.ref.Kind != definitionKind
		faults = append(faults, o.decode()...)
		parts = append(parts, o.docs)
	}
	if needsKinds {
		builtIn, err := load.BuiltIn()
		if err != nil {
			return []error{err}
		}
		documents.Topologies = append(documents.Topologies, builtIn)
	}
	compiled, _, more := schemacheck.Compile(documents.Append(parts...))
	l.compiled = compiled
	for _, fault := range append(faults, more...) {
		var e *schema.Error
		if !errors.As(fault, &e) || bySource[e.Source] == nil {
			return []error{fault}
		}
		l.fault(bySource[e.Source], e)
	}
	return nil
}

// report adds a finding about a place of an object.
func (l *linter) report(o *object, pointer, path string, f finding.Finding, edits ...edit) {
	if !l.on[f.Rule] {
		return
	}
	at := o.at(pointer)
	f.Object, f.Path, f.File, f.Line, f.Column = o.ref, path, o.file.Name, at.line, at.column
	f.About = strings.TrimSpace(path + " " + f.About)
	out := Finding{Finding: f, edits: edits, within: at.within}
	for i, e := range edits {
		if i > 0 {
			out.Fix += "; "
		}
		out.Fix += e.what
	}
	l.found = append(l.found, out)
}

// kind returns the compiled kind of one version, nil if it did not compile.
func (l *linter) kind(group, version, kind string) *schema.Kind {
	k, err := l.compiled.Kind(runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	if err != nil {
		return nil
	}
	return k
}

// kinds returns the compiled versions that an entry is about, by version.
func (l *linter) kinds(u *use) []*schema.Kind {
	var out []*schema.Kind
	for _, k := range l.compiled.Kinds() {
		if k.Group == u.group && k.GroupVersionKind.Kind == u.kind && u.isAbout(k.Version) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *schema.Kind) int { return strings.Compare(a.Version, b.Version) })
	return out
}
