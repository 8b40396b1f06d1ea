// Package analyzer is a go/analysis analyzer of permission markers, such as +permission-verb:"x", in Go types. It reports markers with mistakes or
// without effect, names of verbs that break the conventions, and fields with a power by their name. Rules have the IDs of fieldperm-gen lint.
//
// Start at New. comments.go finds what each marker is about, check.go applies the rules. The plug-in of golangci-lint is in golangci, that of
// kube-api-linter in kubeapilinter, and a command that needs neither in cmd/fieldperm-lint. The package is in a module of its own, and imports of
// fieldperm only generators/markers/grammar, internal/lint/convention, and data below them.
package analyzer
