package plugin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/refusal"
)

// ErrNoRefusal means that the input was read, and that it has no refusal of fieldperm or of missing permission.
var ErrNoRefusal error = negative("the input has no refusal of fieldperm, and none of missing permission")

// asking is one call of the why command.
type asking struct {
	options
	all, who bool
	// message is given in place of a file.
	message string
}

// NewWhyCommand returns the why command. It writes the answer to the streams' Out. The caller handles errors and the exit code; see ExitCode.
func NewWhyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &asking{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), maxChecks: fieldperm.DefaultMaxChecks, instead: "give the message of the refusal"}}
	cmd := &cobra.Command{
		Use:   "why [MESSAGE | -f FILE]",
		Short: "Explain why a write was refused, and what would lift it",
		Long: `Read the message of a refused write, and show which check failed, by which rule, and the least Role and RoleBinding
that would lift it. The input is one of:

  - the error of kubectl or of another client
  - an event or a log of audit.k8s.io/v1
  - an AdmissionReview, which without a response is decided as by kubectl fieldperm review

A refusal names the first change only, and no namespace: give -n. A message that is cut gets no grant.

--who needs list on roles, clusterroles, rolebindings and clusterrolebindings.

Ends with 0 if a refusal was found, 1 if there is none, 2 for an error.`,
		Example: `  # Why was this refused?
  kubectl scale deployment web --replicas=5 2>&1 | kubectl fieldperm why -n shop

  # The same, with the message as an argument.
  kubectl fieldperm why 'deployments.apps "web" is forbidden: ...' -n shop

  # What was the last write that was refused, by the audit log?
  kubectl fieldperm why -f audit.log

  # Which users and groups could grant it?
  kubectl fieldperm why -f error.txt -n shop --who`,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.Flags().Changed("filename") {
				return errors.New("a message and -f: give one of the two")
			}
			o.message = strings.Join(args, " ")
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "-", `file with the message, the event or the review; - is standard input`)
	flags.BoolVar(&o.all, "all", false, `show every refusal of the input, not only the last`)
	flags.BoolVar(&o.who, "who", false, `list the users and groups that could make the grant`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html")
	return cmd
}

func (o *asking) run(ctx context.Context) error {
	if err := o.outputIs(outputText, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	found, others, err := o.refusals(ctx)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.warn("%s", others)
		return ErrNoRefusal
	}
	if !o.all {
		found = found[len(found)-1:]
	}
	answers := make([]whyAnswer, len(found))
	for i := range found {
		answers[i] = o.answer(&found[i])
	}
	unread := o.who && !o.addGrantors(ctx, answers)
	if err := o.print(answers); err != nil {
		return err
	}
	if unread {
		return ErrUnread
	}
	return nil
}

const (
	// maxInput bounds a text and a review, which are read into memory. maxFound bounds the refusals of a log.
	maxInput = 32 << 20
	maxFound = 1000
)

// refusals reads the input. Without a refusal it returns what the input may be.
func (o *asking) refusals(ctx context.Context) (found []refusal.Refusal, others string, err error) {
	in, closeIn, err := o.input()
	if err != nil {
		return nil, "", err
	}
	defer closeIn()
	buffered := bufio.NewReaderSize(in, 1<<16)
	if !isJSON(buffered) {
		raw, err := io.ReadAll(io.LimitReader(buffered, maxInput))
		if err != nil {
			return nil, "", fmt.Errorf("-f: %w: name a file that can be read", err)
		}
		if document, err := yaml.YAMLToJSON(raw); err == nil && bytes.HasPrefix(document, []byte("{")) && bytes.Contains(document, []byte(`"kind":`)) {
			return o.records(ctx, bytes.NewReader(document))
		}
		return refusal.Parse(string(raw)), refusal.Other(string(raw)), nil
	}
	return o.records(ctx, buffered)
}

// input opens the file. A terminal that waits for a text looks as if nothing happened.
func (o *asking) input() (in io.Reader, closeIn func(), err error) {
	if o.message != "" {
		return strings.NewReader(o.message), func() {}, nil
	}
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, nil, fmt.Errorf("-f: %w: name a file that can be read", err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	if file, ok := o.streams.In.(*os.File); ok && terminal(file) {
		o.warn("paste the message of the refusal, and end it with Ctrl-D")
	}
	return o.streams.In, func() {}, nil
}

// isJSON reports whether the first character that is no space is a brace.
func isJSON(in *bufio.Reader) bool {
	for {
		c, _, err := in.ReadRune()
		if err != nil {
			return false
		}
		if !unicode.IsSpace(c) {
			return in.UnreadRune() == nil && c == '{'
		}
	}
}

// records reads events, reviews and Statuses. A review without a response is decided, if it is all of the input.
func (o *asking) records(ctx context.Context, in io.Reader) (found []refusal.Refusal, others string, err error) {
	kept := &beginning{}
	log := refusal.Log{Visit: func(r refusal.Refusal) {
		if o.all && len(found) < maxFound {
			found = append(found, r)
		} else if !o.all {
			found = []refusal.Refusal{r}
		}
	}}
	if err := log.Read(io.TeeReader(in, kept)); err != nil {
		return nil, "", err
	}
	if log.Broken > 0 {
		o.warn("%d lines are no JSON and were skipped: see that the log is whole", log.Broken)
	}
	if len(found) == maxFound {
		o.warn("there are more than %d refusals, of which these are the first: give a part of the log", maxFound)
	}
	if log.Undecided && log.Records == 1 && !kept.cut {
		return o.decideReview(ctx, kept.Bytes())
	}
	return found, fmt.Sprintf("%d records were read, and none is a refusal of fieldperm or of missing permission; %d were refused or failed for another reason", log.Records, log.Others), nil
}

// beginning keeps the first bytes that are written to it.
type beginning struct {
	bytes.Buffer
	cut bool
}

func (b *beginning) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxInput {
		b.cut = true
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// decideReview decides a review as the review command does, and returns the refusal.
func (o *asking) decideReview(ctx context.Context, raw []byte) (found []refusal.Refusal, others string, err error) {
	asked := o.options
	asked.streams.In, asked.file = bytes.NewReader(raw), "-"
	request, known, err := asked.load(ctx)
	if err != nil {
		return nil, "", err
	}
	chain, err := asked.chain(ctx, request)
	if err != nil {
		return nil, "", err
	}
	set, err := asked.policies(ctx)
	if err != nil {
		return nil, "", err
	}
	report, err := asked.reportOn(ctx, known, set, chain, request)
	switch {
	case err != nil:
		return nil, "", err
	case report.Allowed:
		return nil, "the review has no response, and the cluster would allow it now", nil
	}
	found = refusal.Parse(report.Message)
	for i := range found {
		namespaced := request.Namespace != ""
		found[i].User, found[i].Groups, found[i].Namespace, found[i].Namespaced = request.UserInfo.Username, request.UserInfo.Groups, request.Namespace, &namespaced
	}
	return found, "the cluster would refuse it now with a message that is not known: " + report.Message, nil
}
