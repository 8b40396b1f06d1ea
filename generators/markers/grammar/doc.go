// Package grammar reads one line of a Go comment as a permission marker: +permission-verb:"x" and its siblings, or the same keys in the
// form of openapi-gen, +k8s:openapi-gen=x-kubernetes-permission-verb:x. It also recognises lines that are probably meant as markers and
// are none.
//
// Start reading at Parse, then Suspect. Both are pure functions of one line. The package does not know Go syntax, types or what a value
// means. It may import the standard library and internal/spelling only, because linters outside this module's generators use it.
package grammar
