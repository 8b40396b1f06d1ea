// Generate writes the reference pages of docs/reference. It runs in that folder.
//
// Names, types and defaults are the code's: flag sets, registered metrics, Go types, CRDs, the alerts
// and the values of the chart. The text that the code does not have is in alerts.yaml and fields.yaml; an
// entry there that nothing has, and an alert or a field that has no entry, is an error. Start at pages.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(filepath.Join("..", "..")); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run writes the pages into the checkout at root.
func run(root string) error {
	written, err := pages(root)
	if err != nil {
		return err
	}
	for name, text := range written {
		if err := os.WriteFile(filepath.Join(root, "docs", "reference", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages returns the text of each page by its name. root is the checkout.
func pages(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, page := range map[string]func(root string) ([]byte, error){
		"flags.md":         flagsPage,
		"metrics.md":       metricsPage,
		"alerts.md":        alertsPage,
		"audit.md":         auditPage,
		"lint.md":          lintPage,
		"configuration.md": configurationPage,
	} {
		text, err := page(root)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = text
	}
	return out, nil
}
