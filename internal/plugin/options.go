package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/review"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
)

// options are the flags of one call.
type options struct {
	streams genericiooptions.IOStreams
	cluster *genericclioptions.ConfigFlags

	file             string
	oldFile, newFile string
	as               string
	asGroups         []string
	resource         string
	subresource      string
	permissions      []string
	crds             []string
	grants           []string
	policyFiles      []string
	// authorizationConfig is the file with the authorizers of fieldperm-webhook, "" for those of kube-apiserver.
	authorizationConfig string
	maxChecks           int
	output              string
	// fromFiles means that no cluster is asked, although there are no grants.
	fromFiles bool
	// instead is what a user without a cluster can do, at the end of an error; "" for --grants.
	instead string

	// denialHint is a warning to print if the request is denied.
	denialHint string
}

// run makes a report from the flags. It returns ErrDenied if the request is denied.
func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	request, known, err := o.load(ctx)
	if err != nil {
		return err
	}
	chain, err := o.chain(ctx, request)
	if err != nil {
		return err
	}
	set, err := o.policies(ctx)
	if err != nil {
		return err
	}
	return o.decide(ctx, known, set, chain, request)
}

// policies returns the ConditionalPolicies of the files and the cluster, or of the files alone.
func (o *options) policies(ctx context.Context) (*policies.Set, error) {
	set, warnings, err := o.readPolicies(ctx)
	for _, warning := range warnings {
		o.warn("%v", warning)
	}
	return set, err
}

func (o *options) readPolicies(ctx context.Context) (*policies.Set, []error, error) {
	if o.offline() {
		return policies.Files(ctx, o.policyFiles)
	}
	config, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	return policies.Once(ctx, config, o.policyFiles)
}

// decide writes the report on one request. It returns ErrDenied if the request is denied.
func (o *options) decide(ctx context.Context, known *sources.Snapshot, set *policies.Set, chain *authz.Chain, request *admissionv1.AdmissionRequest) error {
	decided, err := o.reportOn(ctx, known, set, chain, request)
	if err != nil {
		return err
	}
	if err := o.print(decided); err != nil {
		return err
	}
	if decided.Allowed {
		return nil
	}
	if o.denialHint != "" {
		o.warn("%s", o.denialHint)
	}
	return ErrDenied
}

// reportOn returns the report on one request.
func (o *options) reportOn(ctx context.Context, known *sources.Snapshot, set *policies.Set, chain *authz.Chain, request *admissionv1.AdmissionRequest) (*review.Report, error) {
	if err := decidable(known, request); err != nil {
		return nil, err
	}
	return review.Decide(ctx, reviewerOf(known.Schema, set, chain, o.maxChecks), request, 0)
}

// reviewerOf returns the reviewer that decides as the webhooks do.
func reviewerOf(compiled *schema.Schema, set *policies.Set, chain *authz.Chain, maxChecks int) *admission.Reviewer {
	return &admission.Reviewer{
		Schema:     func() *schema.Schema { return compiled },
		Authorizer: chain.For, Conditional: authz.ConditionalAfter(set.Conditional),
		Limits: fieldperm.Limits{MaxChecks: maxChecks, Parallel: 1},
	}
}

// load returns the request and the schema that decides it. It does the fast checks first.
func (o *options) load(ctx context.Context) (request *admissionv1.AdmissionRequest, known *sources.Snapshot, err error) {
	var c change
	if o.file != "" {
		request, err = o.reviewRequest()
	} else {
		c, err = o.objects()
	}
	if err != nil {
		return nil, nil, err
	}
	if known, err = o.schemas(ctx); err != nil {
		return nil, nil, err
	}
	if request == nil {
		request, err = o.objectRequest(c, known)
	}
	return request, known, err
}

func (o *options) validate() error {
	if err := o.outputIs(outputTable, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	if o.maxChecks < 1 {
		return fmt.Errorf("--max-checks %d allows no check: use 1 or more", o.maxChecks)
	}
	objects := o.oldFile != "" || o.newFile != ""
	switch {
	case o.file == "" && !objects:
		return errors.New("request is missing: give -f with an AdmissionReview, or --old and --new with --as")
	case o.file != "" && (objects || o.as != "" || len(o.asGroups) > 0 || o.resource != "" || o.subresource != ""):
		return errors.New("-f has the whole request: drop --old, --new, --as, --as-group, --resource and --subresource, or drop -f")
	case objects && o.as == "":
		return errors.New("--as is missing: name the user who makes the change")
	case o.offline() && o.authorizationConfig != "":
		return errors.New("--authorization-config needs a cluster, and --grants decides in place of one: drop one of the two")
	case o.oldFile == "-" && o.newFile == "-":
		return errors.New("--old and --new both read standard input: give a file for one of them")
	}
	return nil
}

// offline reports whether files decide. An empty file of grants counts too: it grants nothing.
func (o *options) offline() bool { return len(o.grants) > 0 || o.fromFiles }

// withoutCluster returns what a user without a cluster can do.
func (o *options) withoutCluster() string {
	return cmp.Or(o.instead, "decide from files with --grants")
}

// read returns the content of a file, or of standard input for "-".
func (o *options) read(flag, name string) ([]byte, error) {
	var raw []byte
	var err error
	if name == "-" {
		raw, err = io.ReadAll(o.streams.In)
	} else {
		raw, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: name a file that can be read", flag, err)
	}
	return raw, nil
}

// warn writes a warning. It ignores errors of the write.
func (o *options) warn(format string, args ...any) {
	_, _ = io.WriteString(o.streams.ErrOut, "warning: "+printf(format, args...)+"\n")
}
