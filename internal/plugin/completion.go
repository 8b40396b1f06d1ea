package plugin

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

// completer returns the words that can take the place of the beginning of one. A shell shows no errors, so there is none.
type completer func(ctx context.Context, o *options, begun string) ([]string, cobra.ShellCompDirective)

// completes makes a command complete the values of --output and its arguments, each by the completer at its place.
func completes(cmd *cobra.Command, o *options, outputs string, arguments ...completer) {
	fixed := cobra.FixedCompletions(strings.Fields(outputs), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", fixed); err != nil {
		panic(err) // The command has no such flag: the first call of the program shows it.
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		quiet := *o
		quiet.streams.ErrOut = io.Discard
		return arguments[len(args)](cmd.Context(), &quiet, begun)
	}
}

// begins returns the words that begin with a text, sorted, each once.
func begins(words []string, begun string) []string {
	out := slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, begun) })
	slices.Sort(out)
	return slices.Compact(out)
}

// kinds completes the name of a resource: those of Kubernetes 1.37, and those that the cache of kubectl has of the cluster.
func kinds(ctx context.Context, o *options, begun string) ([]string, cobra.ShellCompDirective) {
	return begins(o.kindNames(ctx), begun), cobra.ShellCompDirectiveNoFileComp
}

// kindsAndPaths completes KIND, and the path below it: deploy.spec.rep. Kinds without verbs of Kubernetes take files or a cluster, and
// their paths are not completed.
func kindsAndPaths(ctx context.Context, o *options, begun string) ([]string, cobra.ShellCompDirective) {
	at := strings.LastIndexByte(begun, '.')
	if at < 0 {
		return begins(o.kindNames(ctx), begun), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	return begins(o.fieldsBelow(ctx, begun[:at]), begun), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// fieldsBelow returns the paths one level below a path, by the files of the flags and the kinds of Kubernetes.
func (o *options) fieldsBelow(ctx context.Context, text string) []string {
	q := inquirer{options: *o}
	q.fromFiles = true
	known, err := q.known(ctx)
	if err != nil {
		return nil
	}
	asked, err := q.ask(known, text)
	if err != nil {
		return nil
	}
	tree, err := asked.tree(known)
	if err != nil {
		return nil
	}
	place, err := tree.Find(asked.path)
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range fieldsOf(place.Node()) {
		out = append(out, text+"."+c)
	}
	return out
}

// fieldsOf returns the names of the fields of a node, or of its items. Names that a path has in brackets are left out.
func fieldsOf(n *fieldtree.Node) []string {
	var out []string
	for range 8 { // Lists of lists end soon; a list that contains itself does not.
		items := (*fieldtree.Node)(nil)
		for _, c := range n.Children {
			if c.Any {
				items = c.Node
			} else if !strings.ContainsAny(c.Name, "./[") {
				out = append(out, c.Name)
			}
		}
		if items == nil {
			break
		}
		n = items
	}
	return out
}

// kindNames returns the names of resources, without a request if the cache of kubectl is fresh.
func (o *options) kindNames(ctx context.Context) []string {
	q := inquirer{options: *o}
	q.fromFiles = true
	var out []string
	if known, err := q.known(ctx); err == nil {
		for _, n := range namesOf(known.compiled) {
			out = append(out, n.names...)
		}
	}
	if o.fromFiles || o.cluster == nil {
		return out
	}
	if patience := o.cluster.Timeout; patience != nil && *patience == "0" {
		*patience = "2s" // The user waits with a key pressed.
	}
	client, err := o.cluster.ToDiscoveryClient()
	if err != nil {
		return out
	}
	// A server that does not answer leaves the other names.
	lists, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return out
	}
	for _, list := range lists {
		for i := range list.APIResources {
			out = append(append(out, list.APIResources[i].Name), list.APIResources[i].ShortNames...)
		}
	}
	return out
}

// oneOf completes one of some words.
func oneOf(words ...string) completer {
	return func(_ context.Context, _ *options, begun string) ([]string, cobra.ShellCompDirective) {
		return begins(slices.Clone(words), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// verbsOfWrites completes a verb of a write: a generic one, the marker, or a granular one of Kubernetes 1.37.
func verbsOfWrites(ctx context.Context, o *options, begun string) ([]string, cobra.ShellCompDirective) {
	out := []string{"create", "update", "patch", "delete", "deletecollection", "granular"}
	q := inquirer{options: *o}
	q.fromFiles = true
	if known, err := q.known(ctx); err == nil {
		for i := range known.Documents.Permissions {
			for _, e := range known.Documents.Permissions[i].Entries {
				if e.Verb != "" {
					out = append(out, "granular:"+e.Verb)
				}
			}
		}
	}
	return begins(out, begun), cobra.ShellCompDirectiveNoFileComp
}
