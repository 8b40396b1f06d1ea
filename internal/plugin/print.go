package plugin

import "github.com/fieldperm/fieldperm/internal/review"

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
	if err != nil {
		return err
	}
	return o.write(out)
}
