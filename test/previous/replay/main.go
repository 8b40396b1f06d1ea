// Command replay compares the decisions of both cores on the requests that the storage oracle has recorded in a folder:
//
//	make test-previous
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/previous"
)

func main() {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	if err := run(flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "replay: %v\n", err)
		os.Exit(1)
	}
}

// maxReview is the length of the longest review in bytes.
const maxReview = 64 << 20

// maxShown is the number of differences that are printed.
const maxShown = 20

func run(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	requests, unexplained, tally := 0, 0, previous.Tally{}
	for _, file := range files {
		world, err := previous.Offline([]string{file})
		if err != nil { // As on the server: writes to the kinds of these documents are refused.
			fmt.Printf("%s: refused documents:\n%v\n", file, err)
		}
		reviews, err := os.Open(strings.TrimSuffix(file, ".yaml") + ".json")
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(reviews)
		lines.Buffer(nil, maxReview)
		for lines.Scan() {
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(lines.Bytes(), &review); err != nil {
				return fmt.Errorf("%s: %w", reviews.Name(), err)
			}
			if review.Request == nil {
				continue
			}
			requests++
			for _, d := range tally.Add(world.Compare(context.Background(), review.Request)) {
				if unexplained++; unexplained <= maxShown {
					fmt.Printf("%s\n%s\n", d, lines.Bytes())
				}
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", reviews.Name(), err)
		}
		if err := reviews.Close(); err != nil {
			return err
		}
	}
	fmt.Printf("%d requests of %d epochs, differences by row: %v, %d without a row\n", requests, len(files), tally, unexplained)
	if requests == 0 {
		return fmt.Errorf("%s has no requests: record some with test/oracle/cmd -record", dir)
	}
	if unexplained > 0 {
		return fmt.Errorf("%d differences have no row in test/previous/rows.go", unexplained)
	}
	return nil
}
