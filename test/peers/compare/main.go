// Command compare builds the benchmarks of the peers, runs them by turns, and prints what a review costs each. Ratios are of one turn, so
// that other work of the machine harms all peers alike; each figure is the median over all turns. A peer that does not build is reported
// and left out.
//
//	go -C test/peers run ./compare -rounds 5
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// modules are the directories of the peers. The first has what all others are compared with.
var modules = []string{"fieldperm", "policy", "gatekeeper", "kyverno"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("rounds", 5, "turns of each peer")
	benchtime := flag.Duration("benchtime", 300*time.Millisecond, "how long one review is measured in one turn")
	only := flag.String("peers", strings.Join(modules, ","), "directories of peers")
	flag.Parse()
	folder, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	var built []string
	for _, module := range strings.Split(*only, ",") {
		build := exec.Command("go", "-C", module, "test", "-vet=off", "-c", "-o", filepath.Join(folder, module+".test"), ".")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Printf("%s is left out, it does not build: %v\n%s\n", module, err, out)
			continue
		}
		built = append(built, module)
	}
	var all results
	for round := range *rounds {
		for i := range built {
			module := built[(round+i)%len(built)]
			bench := exec.Command(filepath.Join(folder, module+".test"), "-test.run", "^$", "-test.bench", ".", "-test.benchtime", benchtime.String())
			bench.Dir = module
			out, err := bench.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", module, err, out)
			}
			all.read(round, string(out))
		}
	}
	all.print(os.Stdout)
	return nil
}
