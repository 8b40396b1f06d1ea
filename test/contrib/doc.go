// Package contrib tests the catalogues of other projects in schema/catalog/contrib against the CustomResourceDefinitions of those projects.
//
// It owns modules.yaml: the Go modules that have the definitions, each with a version and its checksum, and the kinds that are left out. It
// writes docs/reference/contrib.md. The definitions are read from the module cache and are not part of this repository. Start reading at
// modules.yaml, then at TestContrib_CompilesWithoutWarnings. The test with the tag integration installs definitions in a real API server.
//
// It must not require the modules in a go.mod: only their files are read, and a module such as Argo CD would bring hundreds of others.
package contrib
