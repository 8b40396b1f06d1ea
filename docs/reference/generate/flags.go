package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/fieldperm/fieldperm/internal/generate"
	"github.com/fieldperm/fieldperm/internal/plugin"
	"github.com/fieldperm/fieldperm/internal/server"
)

const flagsIntroduction = `Every flag of the three commands, as ` + "`--help`" + ` has them. ` + "`--help`" + ` of a command has examples too.

A flag of several values, such as ` + "`--permission-schemas`" + `, takes them with commas between them, or is given several times.`

// program is one of the three commands.
type program struct {
	root *cobra.Command
	// libraries has the flags that a library of Kubernetes adds, libraryTitle is their title.
	libraries    *pflag.FlagSet
	libraryTitle string
}

// programs returns the three.
func programs() []program {
	logging := pflag.NewFlagSet("", pflag.ContinueOnError)
	logsapi.AddFlags(logsapi.NewLoggingConfiguration(), logging)
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(connection)
	kubectl := &cobra.Command{Use: "kubectl-fieldperm", Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fieldperm"}}
	discard := genericiooptions.NewTestIOStreamsDiscard()
	kubectl.AddCommand(plugin.Commands(discard)...)
	return []program{
		{server.NewCommand(), logging, "Logging"},
		{generate.NewCommand(), pflag.NewFlagSet("", pflag.ContinueOnError), ""},
		{kubectl, connection, "Connection to the cluster"},
	}
}

// flagsPage lists the flags of every command that can be run.
func flagsPage(string) ([]byte, error) {
	// The cache of kubectl's libraries has a default that depends on it.
	if err := os.Unsetenv("KUBECACHEDIR"); err != nil {
		return nil, err
	}
	page := newPage("Flags", flagsIntroduction)
	all := programs()
	var index [][]string
	for _, p := range all {
		for _, command := range runnable(p.root) {
			index = append(index, []string{fmt.Sprintf("[`%s`](#%s)", command.CommandPath(), strings.ReplaceAll(command.CommandPath(), " ", "-")), sentence(command.Short)})
		}
	}
	page.table([]string{"command", ""}, index)
	for _, p := range all {
		shared := map[string][]string{}
		for _, command := range runnable(p.root) {
			if err := page.command(command, p, shared); err != nil {
				return nil, err
			}
		}
		if len(shared) > 0 {
			page.heading(2, p.libraryTitle)
			page.paragraph("Flags that Kubernetes' own commands have too. A command with a flag of the same name in its own table has only that one.")
			var rows [][]string
			for _, name := range slices.Sorted(maps.Keys(shared)) {
				rows = append(rows, shared[name])
			}
			page.table(flagColumns, rows)
		}
	}
	return page.Bytes(), nil
}

// runnable returns the commands at and below root that have none below them, in the order of their names.
func runnable(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	if !root.HasSubCommands() {
		out = append(out, root)
	}
	for _, command := range root.Commands() {
		out = append(out, runnable(command)...)
	}
	return out
}

var flagColumns = []string{"flag", "default", "meaning"}

// command writes a command with its own flags, and adds those of the library to shared.
func (m *markdown) command(command *cobra.Command, p program, shared map[string][]string) error {
	m.heading(2, command.CommandPath())
	m.paragraph(sentence(command.Short))
	m.fenced("text", command.UseLine())
	if command.Long != "" {
		m.fenced("text", command.Long)
	}
	var own [][]string
	var err error
	hasLibrary := false
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case flag.Hidden:
		case flag.Usage == "":
			err = fmt.Errorf("%s: flag --%s has no usage: write it where the flag is defined", command.CommandPath(), flag.Name)
		case isOf(p.libraries, flag):
			hasLibrary, shared[flag.Name] = true, flagRow(flag)
		default:
			own = append(own, flagRow(flag))
		}
	})
	if len(own) == 0 && err == nil {
		err = fmt.Errorf("%s has no flags", command.CommandPath())
	}
	m.table(flagColumns, own)
	if !hasLibrary {
		return err
	}
	lacks := ""
	p.libraries.VisitAll(func(flag *pflag.Flag) {
		if _, known := shared[flag.Name]; known && command.Flags().Lookup(flag.Name) == nil {
			lacks += ", without " + code("--"+flag.Name)
		}
	})
	m.paragraph("And the flags of " + link(p.libraryTitle) + lacks + ".")
	return err
}

// isOf reports whether a flag is the library's: one of the same name with another usage is fieldperm's.
func isOf(library *pflag.FlagSet, flag *pflag.Flag) bool {
	found := library.Lookup(flag.Name)
	return found != nil && found.Usage == flag.Usage
}

func flagRow(flag *pflag.Flag) []string {
	value, usage := pflag.UnquoteUsage(flag)
	name := "--" + flag.Name
	if value != "" {
		name += " " + value
	}
	name = code(name)
	if flag.Shorthand != "" {
		name = code("-"+flag.Shorthand) + ", " + name
	}
	return []string{name, code(defaultOf(flag)), sentence(plain(usage))}
}

// defaultOf is a flag's default as a reader would write it, nothing for none.
func defaultOf(flag *pflag.Flag) string {
	switch value := flag.DefValue; {
	case strings.HasSuffix(value, "/.kube/cache"):
		// kubectl's libraries keep their cache in the home directory of the user.
		return "$HOME/.kube/cache"
	case value == "[]", value == "false", value == "0s":
		return ""
	default:
		return value
	}
}
