package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/internal/spelling"
)

// ErrDifferences means that an apply would change an object. The answer has been written.
var ErrDifferences error = negative("an apply would change objects")

const outputRole = "role"

// difference is one call of the diff command.
type difference struct {
	inquirer
	manifests      genericclioptions.FileNameFlags
	selector       string
	serverSide     bool
	forceConflicts bool
	manager        string
	// check means that only a verb that is not held is an exit code.
	check bool

	caller *caller
	server *published
}

// written is one object of the manifests.
type written struct {
	info      *resource.Info
	operation string
	// computed means that the result is not from the API server.
	computed bool
	// unchanged means that the client sends no request.
	unchanged bool
	answer    needs.Answer
	// seen are changes that only the API server saw.
	seen []needs.Change
	// byFieldperm means that a webhook of fieldperm refuses the dry run.
	byFieldperm bool
	// unnamed is that of needs.Question.
	unnamed bool
	// refusal is why the API server refuses the request of the user of the kubeconfig for another reason than its verbs.
	refusal string
	notes   []string
}

// allowed reports whether the user may make the write.
func (a *written) allowed() bool {
	return (a.unchanged || a.answer.Allowed && a.refusal == "") && len(a.answer.Ask) == 0
}

func (o *difference) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	var err error
	if o.caller, err = o.inquirer.caller(ctx); err != nil {
		return err
	}
	if o.server, err = o.newServer(); err != nil {
		return err
	}
	found, failed := o.visit(ctx)
	if err := o.print(found, failed); err != nil {
		return err
	}
	unread := o.incomplete(o.caller.traced)
	if failed != nil {
		return failed
	}
	if unread != nil {
		return unread
	}
	return o.outcome(found)
}

// outcome returns the error for the exit code of a complete answer.
func (o *difference) outcome(found []*written) error {
	for _, a := range found {
		if o.check && !a.allowed() {
			return ErrDenied
		}
		if !o.check && len(a.answer.Changes)+len(a.seen) > 0 {
			return ErrDifferences
		}
	}
	return nil
}

func (o *difference) validate() error {
	if err := o.outputIs(outputTable, outputJSON, outputYAML, outputHTML, outputRole); err != nil {
		return err
	}
	switch {
	case len(*o.manifests.Filenames) == 0 && *o.manifests.Kustomize == "":
		return errors.New("manifests are missing: give -f with files or directories, -f - for standard input, or -k with a directory of kustomize")
	case o.as == "" && len(o.asGroups) > 0:
		return errors.New("--as-group is given without --as: name the user")
	case o.forceConflicts && !o.serverSide:
		return errors.New("--force-conflicts is about server-side apply: add --server-side")
	case o.maxChecks < 1:
		return fmt.Errorf("--max-checks %d allows no check: use 1 or more", o.maxChecks)
	}
	if o.manager == "" {
		o.manager = "kubectl-client-side-apply"
		if o.serverSide {
			o.manager = "kubectl"
		}
	}
	return nil
}

// visit compares each object of the manifests. An object that cannot be compared is an error beside the others; what was found before an
// interrupt is returned with it.
func (o *difference) visit(ctx context.Context) ([]*written, error) {
	namespace, enforce, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("namespace: %w: correct --namespace or the kubeconfig", err)
	}
	files := o.manifests.ToOptions()
	named := len(files.Filenames)
	files.Filenames = slices.DeleteFunc(slices.Clone(files.Filenames), func(name string) bool { return name == "-" })
	builder := resource.NewBuilder(o.cluster).Unstructured().ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().FilenameParam(enforce, &files).Flatten()
	if files.Kustomize == "" {
		// kubectl's builder refuses a selector with -k.
		builder = builder.LabelSelectorParam(o.selector)
	}
	if len(files.Filenames) < named {
		builder = builder.Stream(o.streams.In, "standard input")
	}
	result := builder.Do()
	if err := result.Err(); err != nil {
		return nil, fmt.Errorf("manifests: %w: correct them, or name others", err)
	}
	var found []*written
	var failed []error
	visited := result.Visit(func(info *resource.Info, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return o.unmapped(err)
		}
		a, err := o.compare(ctx, info)
		switch {
		case apierrors.IsForbidden(err):
			o.caller.miss(fmt.Sprintf("the changes of %s, because it cannot be read", nameOf(info)), err)
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", nameOf(info), err))
		default:
			found = append(found, a)
		}
		return nil
	})
	return found, errors.Join(append(failed, visited)...)
}

// unmapped names the nearest kind in the error for a kind that the API server does not serve.
func (o *difference) unmapped(err error) error {
	var none *meta.NoKindMatchError
	if !errors.As(err, &none) {
		return err
	}
	kind, groups := none.GroupKind, []string{}
	var kinds []string
	for _, k := range o.caller.compiled.Kinds() {
		kinds = append(kinds, k.Kind)
		if k.Kind == kind.Kind {
			groups = append(groups, k.GroupVersion().String())
		}
	}
	cure := "correct apiVersion and kind, or install the definition of the kind first"
	if len(groups) > 0 {
		cure = fmt.Sprintf("use apiVersion %q, or install the definition of the kind first", groups[0])
	} else if near := spelling.Nearest(kind.Kind, kinds); near != "" {
		cure = fmt.Sprintf("did you mean %q? Or install the definition of the kind first", near)
	}
	return fmt.Errorf("kind %q of %q is not served: %s", kind.Kind, strings.TrimPrefix(kind.Group+"/"+strings.Join(none.SearchedVersions, ","), "/"), cure)
}

// compare finds what an apply of one object changes, and what it needs. The error is Forbidden if the object may not be read.
func (o *difference) compare(ctx context.Context, info *resource.Info) (*written, error) {
	wanted, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("object is a %T, no object of a manifest: correct it", info.Object)
	}
	if info.Name == "" {
		return nil, errors.New("object has no name, and an apply needs one: give metadata.name")
	}
	var live *unstructured.Unstructured
	operation := "create"
	switch err := info.Get(); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		if live, ok = info.Object.(*unstructured.Unstructured); !ok {
			return nil, fmt.Errorf("the API server returns a %T, no object: correct apiVersion and kind", info.Object)
		}
		operation = "update"
	}
	a := &written{info: info, operation: operation}
	stored, err := o.stored(ctx, a, live, wanted)
	if err != nil {
		return nil, err
	}
	if a.unchanged {
		// kubectl apply reads the object to find that out.
		request, err := o.request(a, live, live)
		if err != nil {
			return nil, err
		}
		return a, o.reads(ctx, a, request)
	}
	return a, o.decide(ctx, a, live, stored)
}

// nameOf names an object in texts: Deployment shop/web.
func nameOf(info *resource.Info) string {
	name := info.Name
	if info.Namespace != "" {
		name = info.Namespace + "/" + name
	}
	if info.Mapping == nil {
		return name
	}
	return info.Mapping.GroupVersionKind.Kind + " " + name
}
