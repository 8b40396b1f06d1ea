// Command fieldperm-gen generates what fieldperm's users install.
package main

import (
	"os"

	"github.com/fieldperm/fieldperm/internal/gencmd"
)

func main() {
	command := gencmd.NewCommand()
	command.SetArgs(os.Args[1:])
	os.Exit(gencmd.Run(command))
}
