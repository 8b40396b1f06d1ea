// Package reference holds the pages that are generated from the code: flags, metrics, alerts and the
// fields of configuration files. Change the code, or the texts beside the generator, and run make generate.
package reference

//go:generate go run ./generate
