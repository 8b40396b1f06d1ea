package main

import (
	"fmt"
	"strings"
)

const configurationIntroduction = `The fields of every file that configures fieldperm. Flags are in [flags.md](flags.md).

` + "`[]`" + ` is an item of a list. A field whose default is "required" has to be there wherever the object that holds it is there.`

const chartIntroduction = `The values of [charts/fieldperm](../../charts/fieldperm). A value that is not below is refused.`

// configurationPage lists the fields of configuration files, of fieldperm's own kinds, and of the chart.
func configurationPage(root string) ([]byte, error) {
	page := newPage("Configuration", configurationIntroduction)
	known, err := texts()
	if err != nil {
		return nil, err
	}
	objects, err := kinds(root)
	if err != nil {
		return nil, err
	}
	values, err := chartRows(root)
	if err != nil {
		return nil, err
	}
	var index [][]string
	for _, f := range files() {
		index = append(index, []string{link(f.kind), "the file of " + code(f.flag)})
	}
	for _, o := range objects {
		where := "an object in the cluster"
		if o.inFiles {
			where += ", or in a file of " + code("--permission-schemas")
		}
		index = append(index, []string{link(o.kind), where})
	}
	index = append(index, []string{link(chartTitle), "for " + code("helm install --values")})
	page.table([]string{"configuration", "where"}, index)

	header := []string{"field", "type", "default", "meaning"}
	for _, f := range files() {
		rows, err := fileRows(f, known[f.kind])
		if err != nil {
			return nil, err
		}
		delete(known, f.kind)
		page.heading(2, f.kind)
		page.paragraph(fmt.Sprintf("The file of `%s`, as kube-apiserver reads it: `apiVersion: apiserver.config.k8s.io/v1`, `kind: %s`. %s", f.flag, f.kind, f.about))
		page.table(header, rows)
	}
	for kind := range known {
		return nil, fmt.Errorf("fields.yaml: there is no file of kind %q: remove it", kind)
	}
	for _, o := range objects {
		page.heading(2, o.kind)
		page.paragraph(fmt.Sprintf("`apiVersion: %s`, `kind: %s`, in no namespace. %s", o.version, o.kind, o.about))
		page.table([]string{"field", "type", "bounds", "meaning"}, o.rows)
	}
	page.heading(2, chartTitle)
	page.paragraph(chartIntroduction)
	page.table([]string{"value", "type", "default", "meaning"}, values)
	return page.Bytes(), nil
}

// link leads to a heading of the same page.
func link(heading string) string {
	return fmt.Sprintf("[%s](#%s)", heading, strings.ToLower(strings.ReplaceAll(heading, " ", "-")))
}
