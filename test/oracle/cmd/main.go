// Command cmd runs the storage oracle: make test-oracle.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fieldperm/fieldperm/test/oracle"
	"github.com/fieldperm/fieldperm/test/stack"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var config oracle.Config
	var static bool
	var only string
	flag.IntVar(&config.Writes, "writes", 10_000, "how many writes")
	flag.Uint64Var(&config.Seed, "seed", 1, "where chance begins")
	flag.IntVar(&config.Shards, "shards", 0, "how many at a time")
	flag.IntVar(&config.Epoch, "epoch", 0, "writes between two draws of users and schemas")
	flag.IntVar(&config.MaxFound, "max-found", 0, "how many failures end the run")
	flag.IntVar(&config.Definitions, "definitions", 0, "definitions of an epoch; -1 for none")
	flag.BoolVar(&static, "static", false, "static manifests in place of objects")
	flag.StringVar(&only, "only", "", "resources, separated by commas")
	flag.StringVar(&config.Record, "record", "", "folder for what test/previous replays")
	flag.StringVar(&config.Bin, "bin", "bin", "directory of the commands")
	flag.Parse()
	config.Topology = stack.REST
	if static {
		config.Topology = stack.Static
	}
	if only != "" {
		config.Only = strings.Split(only, ",")
	}
	config.Log = os.Stdout
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	report, err := oracle.Run(ctx, config)
	if report != nil {
		fmt.Print(report.Text)
	}
	if err != nil {
		return err
	}
	fmt.Println(report.Last)
	if n := len(report.Failures) + len(report.Unjudged); n > 0 {
		return fmt.Errorf("%d writes were not permitted or could not be judged: see above", n)
	}
	return nil
}
