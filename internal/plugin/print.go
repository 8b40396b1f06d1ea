package plugin

import (
	"fmt"

	"github.com/fieldperm/fieldperm/internal/review"
)

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

func (o *options) print(r *review.Report) error {
	var out []byte
	var err error
	switch o.output {
	case outputJSON:
		out, err = r.JSON()
	case outputYAML:
		out, err = r.YAML()
	default:
		out = r.Table()
	}
	if err == nil {
		_, err = o.streams.Out.Write(out)
	}
	if err != nil {
		return fmt.Errorf("report: %w: give an output that can be written to", err)
	}
	return nil
}
