// Package contrib has PermissionSchemas for the kinds of other projects, one file per project; README.md describes them. They are not
// part of any command: an administrator applies a file with kubectl. Files gives them to test/contrib, which checks them, and to programs
// that install them.
//
// Start reading at README.md. The package is data and must not import any package of fieldperm.
package contrib
