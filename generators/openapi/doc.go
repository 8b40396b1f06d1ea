// Package openapi makes the Go file that adds permission verbs to the OpenAPI definitions of an aggregated API server: fieldperm-gen openapi.
//
// openapi-gen copies only markers of its own form, and only those of structs and their fields. The file has the markers of both forms, and
// those of other named types. Start reading at Permissions, which collects the keys of every definition; render.go writes them as Go.
//
// Every marker of the packages ends at a place of a definition or is an error: a marker that is silently dropped may be a barrier. The package
// imports generators/markers, and reads and writes no files.
package openapi
