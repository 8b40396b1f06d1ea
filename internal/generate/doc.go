// Package generate is the command line of fieldperm-gen: it reads flags and files, calls package generators, and writes the results.
// Start reading at NewCommand; each subcommand has a file.
//
// It does not decide the content of files, and must not import admission, fieldperm or a client.
package generate
