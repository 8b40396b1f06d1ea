// Command fieldperm-gen generates the manifests, schemas and reference pages that users of fieldperm install.
package main

import (
	"os"

	"github.com/fieldperm/fieldperm/internal/generate"
)

func main() {
	command := generate.NewCommand()
	command.SetArgs(os.Args[1:])
	os.Exit(generate.Run(command))
}
