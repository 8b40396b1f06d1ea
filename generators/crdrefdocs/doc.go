// Package crdrefdocs makes a configuration and templates for elastic/crd-ref-docs that add a column of verbs to the documentation of Go types.
//
// Start at Files. The program knows a custom marker only by its whole text, and passes its name but no value to templates. So the
// configuration names each marker +permission-verb:"VERB" that the kinds have, and templates/permission.tpl has what to show for each verb.
// The other templates are those of this package, in templates. The package imports generators, schema and verbs, and reads no file.
package crdrefdocs
