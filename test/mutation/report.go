package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Result is the result of one mutation. The zero Result belongs to none.
type Result struct {
	*Mutation
	// Package and Test are the ones that failed first, and More is the number of other failed tests; "" if none failed.
	Package, Test string
	More          int
	// Scenario is the scenario that failed; "" if none failed, or none was run.
	Scenario string
	// Problem is the reason why the mutation could not be tried, and Output the output of the go command.
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
	b.WriteString("| rule | mutation | effect | caught by | by scenario |\n|---|---|---|---|---|\n")
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

// cell escapes a text so that it does not end its table cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
