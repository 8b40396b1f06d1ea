package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Result is what came of one mutation. The zero Result is of none.
type Result struct {
	*Mutation
	// Package and Test are what noticed, and More is how many other tests did; "" if none did.
	Package, Test string
	More          int
	// Scenario is the one that noticed; "" if none did, or none was run.
	Scenario string
	// Problem is why the mutation could not be tried, and Output what the go command said of it.
	Problem, Output string
}

func (r *Result) done() bool { return r.Mutation != nil }

func (r *Result) caught() bool {
	return r.done() && r.Problem == "" && r.Test != "" && (r.Scenario != "" || !r.Corpus)
}

func (r *Result) line() string {
	head := fmt.Sprintf("%-9s %s\n          ", r.Rule, r.Name)
	switch {
	case r.Problem != "":
		return head + "ERROR " + r.Problem + "\n" + r.Output
	case r.Test == "":
		return head + "SURVIVED " + strings.Join(r.Packages, " ") + ": " + r.Why
	}
	head += "caught by " + r.Package + " " + r.Test
	if r.More > 0 {
		head += fmt.Sprintf(" and %d more", r.More)
	}
	switch {
	case r.Scenario != "":
		head += ", by scenario " + r.Scenario
	case r.Corpus:
		head += "\n          SURVIVED the corpus: " + r.Why
	}
	return head
}

func summarize(out io.Writer, results []Result) error {
	caught := 0
	for i := range results {
		if results[i].caught() {
			caught++
		}
	}
	fmt.Fprintf(out, "mutation: %d mutations, %d caught\n", len(results), caught)
	if caught < len(results) {
		return errors.New("not every mutation is caught: write the test that is missing, or correct the list")
	}
	return nil
}

// writeTable writes the table of the results to a file.
func writeTable(file string, results []Result) error {
	return os.WriteFile(file, []byte(table(results)), 0o644)
}

func table(results []Result) string {
	var b strings.Builder
	b.WriteString("| rule | mutation | what it would let happen | caught by | by scenario |\n|---|---|---|---|---|\n")
	for i := range results {
		r := &results[i]
		by, scenario := "**SURVIVED**", ""
		switch {
		case r.Problem != "":
			by = "**not tried**"
		case r.Test != "":
			by = fmt.Sprintf("%s `%s`", strings.TrimPrefix(r.Package, "./"), r.Test)
		}
		switch {
		case r.Corpus && r.Scenario != "":
			scenario = r.Scenario
		case r.Corpus:
			scenario = "**SURVIVED**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", cell(r.Rule), cell(r.Name), cell(r.Why), cell(by), cell(scenario))
	}
	return b.String()
}

// cell keeps a text from ending the cell that it is in.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
