package generate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	ctmarkers "sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/controller-tools/pkg/rbac"
	"sigs.k8s.io/controller-tools/pkg/webhook"

	"github.com/fieldperm/fieldperm/generators/markers"
	"github.com/fieldperm/fieldperm/internal/spelling"
)

// crdGenerator is the name of the generator of CRDs among the arguments.
const crdGenerator = "crd"

// fromTypes runs the generators that the arguments name, in the syntax of controller-gen.
func (f *crdFlags) fromTypes(command *cobra.Command, args []string) error {
	options, err := newOptions()
	if err != nil {
		return err
	}
	paths, err := options.check(command, args)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(args, isCRD) {
		args = append(args, crdGenerator)
	}
	if _, err := genall.RegistryFromOptions(options.registry, args); err != nil {
		return fmt.Errorf("%w: see %q", err, command.CommandPath()+" --help")
	}
	config := &packages.Config{BuildFlags: []string{"-tags=" + strings.Join(f.buildTags, ",")}}
	runtime, err := genall.FromOptionsWithConfig(config, options.registry, args)
	if err != nil {
		return relativePlaces(fmt.Errorf("%s: %w: name directories with Go packages, such as paths=./api/..., or import paths", paths, err))
	}
	if len(runtime.Roots) == 0 {
		return fmt.Errorf("%s: no Go package: name directories such as paths=./api/... or import paths", paths)
	}
	toStdout(&runtime.OutputRules, command.OutOrStdout())
	registry, errs := readRegistry(f.registry)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	errs = markers.Run(runtime, markers.Generator{Form: markers.Form(f.form), Registry: registry, Earlier: earlierOf(&runtime.OutputRules), Warnings: command.ErrOrStderr()})
	for i, err := range errs {
		if errors.Is(err, markers.ErrNone) {
			errs[i] = fmt.Errorf("%s: %w", paths, err)
		}
	}
	return relativePlaces(errors.Join(errs...))
}

// earlierOf returns how files of an earlier run are read: from the directory of the generator of CRDs, nil if it writes to none.
func earlierOf(rules *genall.OutputRules) func(name string) ([]byte, error) {
	rule := rules.Default
	for generator, specific := range rules.ByGenerator {
		if _, isCRD := (*generator).(crd.Generator); isCRD {
			rule = specific
		}
	}
	var dir string
	switch rule := rule.(type) {
	case genall.OutputToDirectory:
		dir = string(rule)
	case genall.OutputArtifacts:
		dir = string(rule.Config)
	default:
		return nil
	}
	return func(name string) ([]byte, error) { return earlier(dir, name) }
}

// isCRD reports whether an argument is the generator of CRDs, with options or without.
func isCRD(arg string) bool {
	name, _, _ := strings.Cut(arg, ":")
	return name == crdGenerator
}

// stdoutRule is output:stdout. toStdout gives it the stream of the command.
type stdoutRule struct{}

// Open implements genall.OutputRule.
func (stdoutRule) Open(*loader.Package, string) (io.WriteCloser, error) {
	return nil, errors.New("the standard output is not set")
}

type writerRule struct{ io.Writer }

// Open implements genall.OutputRule.
func (r writerRule) Open(*loader.Package, string) (io.WriteCloser, error) { return r, nil }

// Close implements io.Closer. The stream stays open for the next file.
func (writerRule) Close() error { return nil }

func toStdout(rules *genall.OutputRules, w io.Writer) {
	if rules.Default == (stdoutRule{}) {
		rules.Default = writerRule{w}
	}
	for generator, rule := range rules.ByGenerator {
		if rule == (stdoutRule{}) {
			rules.ByGenerator[generator] = writerRule{w}
		}
	}
}

// options are the arguments that exist.
type options struct {
	registry *ctmarkers.Registry
	names    []string
}

func newOptions() (*options, error) {
	o := &options{registry: &ctmarkers.Registry{}, names: []string{"paths"}}
	all := map[string]genall.Generator{
		crdGenerator: crd.Generator{}, "object": deepcopy.Generator{}, "rbac": rbac.Generator{}, "webhook": webhook.Generator{},
	}
	rules := map[string]genall.OutputRule{
		"artifacts": genall.OutputArtifacts{}, "dir": genall.OutputToDirectory(""), "none": genall.OutputToNothing, "stdout": stdoutRule{},
	}
	define := func(name string, value any) error {
		o.names = append(o.names, name)
		return o.registry.Define(name, ctmarkers.DescribesPackage, value)
	}
	errs := []error{genall.RegisterOptionsMarkers(o.registry)}
	for name, generator := range all {
		errs = append(errs, define(name, generator))
		for form, rule := range rules {
			errs = append(errs, define("output:"+name+":"+form, rule))
		}
	}
	for form, rule := range rules {
		errs = append(errs, define("output:"+form, rule))
	}
	slices.Sort(o.names)
	return o, errors.Join(errs...)
}

// elsewhere are the generators of controller-gen that do not run here.
var elsewhere = map[string]string{
	"applyconfiguration": "run controller-gen for it",
	"schemapatch":        "it writes no permission keys: use the generator crd",
}

// check refuses arguments that do not exist, with the nearest one that does. It returns those that name packages.
func (o *options) check(command *cobra.Command, args []string) (paths string, err error) {
	var found []string
	var errs []error
	for _, arg := range args {
		if strings.HasPrefix(arg, "paths=") && len(arg) > len("paths=") {
			found = append(found, arg)
		}
		if arg != "" && o.registry.Lookup("+"+strings.TrimPrefix(arg, "+"), ctmarkers.DescribesPackage) != nil {
			continue
		}
		name, _, _ := strings.Cut(arg, "=")
		cure := "use one of " + strings.Join(o.names, ", ")
		generator, _, _ := strings.Cut(name, ":")
		if text := elsewhere[generator]; text != "" {
			cure = text
		} else if near := spelling.Nearest(name, o.names); near != "" {
			cure = "write " + near
		} else if fileFormats[filepath.Ext(arg)] {
			cure = "name a definition with --in " + arg
		}
		errs = append(errs, fmt.Errorf("argument %q: is unknown: %s: see %q", arg, cure, command.CommandPath()+" --help"))
	}
	if len(found) == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("argument paths= is missing: name Go packages as in paths=./api/v1"))
	}
	return strings.Join(found, " "), errors.Join(errs...)
}

// fileFormats are the extensions of files that are no Go packages.
var fileFormats = map[string]bool{".yaml": true, ".yml": true, ".json": true}

// relativePlaces shortens the places in errors to paths in the working directory.
func relativePlaces(err error) error {
	dir, failed := os.Getwd()
	if err == nil || failed != nil {
		return err
	}
	var out []error
	for _, err := range flatten(err) {
		out = append(out, errors.New(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")))
	}
	return errors.Join(out...)
}
