// Package edit changes a text of the module by name, so that a deliberate fault stays in force when code moves or is
// formatted.
//
// An edit of Go code names a declaration, as fieldperm/differ.charge, and Go tokens in it. White space, line breaks and
// comments do not count, nor does the file of the directory that holds the declaration. An edit of another file
// names the file and an exact text. Both have to match exactly once.
//
// Start at Edit and Tree.Apply. The package imports nothing of the module.
package edit
