// Package markers reads permission markers, such as +permission-verb:"x", from Go types, with controller-tools' loader.
//
// Read returns the markers of each type and field, with their positions. Every comment of the packages that is a permission marker, or
// that is probably meant as one, is in the result or is an error: a marker that is silently ignored may be a barrier.
//
// Start reading at Read, then CRDs, which runs controller-gen's own generator of CustomResourceDefinitions and adds the permission keys.
// Generator does the same beside controller-gen's generators in one run. The grammar of one line is in package grammar.
//
// The package may import generators, schema/load and controller-tools. It must not import internal but internal/spelling, nor a client.
// Except for the loading of Go packages it reads and writes no files.
package markers
