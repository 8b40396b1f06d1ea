package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// run returns an error if a mutation survived or could not be tried, or if the unchanged tree fails.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	pattern := flags.String("run", "", "try only mutations whose rule or name matches the `regexp`")
	write := flags.String("write", "", "write a table of all mutations, and of the tests that caught them, to the `file`")
	corpus := flags.Bool("corpus", false, "run the scenarios against every mutation, not only against those that they must notice")
	parallel := flags.Int("parallel", 2, "how many mutations to try at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *write != "" && *pattern != "" {
		return fmt.Errorf("-write needs all mutations: leave out -run")
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fieldperm-mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A temporary directory may stay.
	tree := filepath.Join(dir, "tree")
	if err := copyTree(ctx, root, tree); err != nil {
		return err
	}
	mutations, err := load(tree)
	if err != nil {
		return err
	}
	mutations = choose(mutations, selected)
	if len(mutations) == 0 {
		return fmt.Errorf("-run %q matches no mutation: choose another", *pattern)
	}
	withCorpus := *corpus || slices.ContainsFunc(mutations, func(m Mutation) bool { return m.Corpus })
	if err := baseline(ctx, tree, mutations, withCorpus, *parallel); err != nil {
		return err
	}
	results, err := tryAll(ctx, tree, dir, mutations, *corpus, *parallel, out)
	if err != nil {
		return err
	}
	if *write != "" {
		if err := writeTable(filepath.Join(root, *write), results); err != nil {
			return err
		}
	}
	return summarize(out, results)
}

// tryAll tries every mutation and prints each result immediately, in the order of the list. dir is for their files.
func tryAll(ctx context.Context, root, dir string, mutations []Mutation, corpus bool, parallel int, out io.Writer) ([]Result, error) {
	results := make([]Result, len(mutations))
	var mu sync.Mutex
	printed := 0
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(max(parallel, 1))
	for i := range mutations {
		workers.Go(func() error {
			result, err := try(ctx, root, filepath.Join(dir, fmt.Sprint(i)), &mutations[i], corpus)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			results[i] = result
			for printed < len(results) && results[printed].done() {
				fmt.Fprintln(out, results[printed].line())
				printed++
			}
			return nil
		})
	}
	return results, workers.Wait()
}
