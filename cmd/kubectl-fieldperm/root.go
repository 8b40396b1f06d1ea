package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/plugin"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// run executes the command line and returns the exit code. It writes errors to the streams' ErrOut, one per line.
func run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := newRoot(streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := plugin.ExitCode(err)
	if code > 1 && !errors.Is(err, plugin.ErrUnread) {
		for line := range strings.Lines(err.Error()) {
			_, _ = fmt.Fprintf(streams.ErrOut, "error: %s\n", printable.Text(strings.TrimSuffix(line, "\n")))
		}
	}
	return code
}

func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-fieldperm",
		Short:         "Per-field write permission for Kubernetes",
		Long:          "Per-field write permission for Kubernetes: who may change which fields, and why.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fieldperm"},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(plugin.Commands(streams)...)
	return root
}
