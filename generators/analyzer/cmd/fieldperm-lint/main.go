// Command fieldperm-lint checks permission markers in Go types, as go vet does: fieldperm-lint [-fix] ./api/...
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/fieldperm/fieldperm/generators/analyzer"
)

func main() { singlechecker.Main(analyzer.NewWithFlags()) }
