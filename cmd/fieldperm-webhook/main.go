// Command fieldperm-webhook serves fieldperm's admission and authorization webhooks.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"github.com/fieldperm/fieldperm/internal/server"
)

func main() {
	os.Exit(cli.Run(server.NewCommand()))
}
